#include "runtime/notifier.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <systemd/sd-daemon.h>

namespace lictor::runtime {
namespace {

// Each kind of state is sent a few times at most.
constexpr std::size_t kMostWaiting = 32;

}  // namespace

Notifier::Notifier() {
  std::uint64_t watchdog_us = 0;
  if (sd_watchdog_enabled(0, &watchdog_us) > 0) {
    watchdog_ = std::chrono::microseconds{watchdog_us};
  }
  const char* path = std::getenv("NOTIFY_SOCKET");
  sockaddr_un address{};
  if (path == nullptr || (*path != '/' && *path != '@')) return;
  const std::size_t size = std::strlen(path);
  if (size >= sizeof address.sun_path) return;
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path, size);
  if (*path == '@') address.sun_path[0] = '\0';  // an abstract address
  address_.assign(reinterpret_cast<const char*>(&address),
                  offsetof(sockaddr_un, sun_path) + size + (*path == '/' ? 1 : 0));
  socket_.reset(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

void Notifier::notify(std::string state) {
  if (!socket_) return;
  if (state.starts_with("STATUS=")) {
    std::erase_if(waiting_, [](const std::string& old) { return old.starts_with("STATUS="); });
  }
  if (waiting_.size() == kMostWaiting) waiting_.pop_front();
  waiting_.push_back(std::move(state));
  flush();
}

void Notifier::alive(Instant now) {
  if (!socket_) return;
  flush();
  if (watchdog_ == Duration::zero()) return;
  if (fed_at_ != Instant::min() && now - fed_at_ < watchdog_ / 3) return;
  if (send("WATCHDOG=1")) fed_at_ = now;
}

// False: the state must be sent again.
bool Notifier::send(std::string_view state) const {
  const auto* address = reinterpret_cast<const sockaddr*>(address_.data());
  const ssize_t sent = sendto(socket_.get(), state.data(), state.size(), MSG_NOSIGNAL, address,
                              static_cast<socklen_t>(address_.size()));
  return sent >= 0 || (errno != EAGAIN && errno != ENOBUFS && errno != EINTR);
}

void Notifier::flush() {
  while (!waiting_.empty() && send(waiting_.front())) waiting_.pop_front();
}

}  // namespace lictor::runtime
