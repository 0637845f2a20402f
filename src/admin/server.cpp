#include "admin/server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/errno_text.h"

namespace lictor::admin {
namespace {

constexpr std::string_view kBusy =
    "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\n"
    "Content-Length: 33\r\nRetry-After: 1\r\nConnection: close\r\n\r\n"
    "{\"error\":\"too many connections\"}\n";
constexpr auto kLastAnswers = std::chrono::seconds{1};
constexpr int kOutOfDescriptorsPauseMs = 100;

}  // namespace

Result<std::unique_ptr<Server>> Server::start(std::vector<Listener> listeners,
                                              const Router& router) {
  UniqueFd wake{eventfd(0, EFD_CLOEXEC)};
  if (!wake) {
    return fail(ErrorCode::kFailed, std::string{"cannot start the admin face: "} + errno_text() +
                                        "; raise the limit of open files");
  }
  return std::unique_ptr<Server>{new Server{std::move(listeners), router, std::move(wake)}};
}

Server::Server(std::vector<Listener> listeners, const Router& router, UniqueFd wake)
    : listeners_(std::move(listeners)), face_(router), wake_(std::move(wake)) {
  thread_ = std::thread{[this] { run(); }};
}

Server::~Server() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(wake_.get(), &one, sizeof one);
  thread_.join();
  {
    // Who waits for something sees the end of its client, and answers with what it has.
    std::unique_lock lock{mutex_};
    shut_down(SHUT_RD);
    ended_.wait_for(lock, kLastAnswers, [this] {
      return std::all_of(slots_.begin(), slots_.end(),
                         [](const Slot& slot) { return slot.fd < 0; });
    });
    shut_down(SHUT_RDWR);
  }
  for (Slot& slot : slots_) {
    if (slot.thread.joinable()) slot.thread.join();
  }
}

// With the mutex held.
void Server::shut_down(int how) {
  for (const Slot& slot : slots_) {
    if (slot.fd >= 0) shutdown(slot.fd, how);
  }
}

void Server::run() {
  std::vector<pollfd> fds{{wake_.get(), POLLIN, 0}};
  for (const Listener& listener : listeners_) fds.push_back({listener.fd.get(), POLLIN, 0});
  while (true) {
    if (poll(fds.data(), fds.size(), -1) < 0) continue;  // EINTR
    if (fds.front().revents != 0) return;
    for (std::size_t i = 1; i < fds.size(); ++i) {
      if (fds[i].revents != 0) accept_from(listeners_[i - 1]);
    }
  }
}

void Server::accept_from(const Listener& listener) {
  UniqueFd connection{accept4(listener.fd.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)};
  if (connection) return take(std::move(connection), listener.trusted);
  if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
    pollfd wake{wake_.get(), POLLIN, 0};  // The connection stays in the queue.
    poll(&wake, 1, kOutOfDescriptorsPauseMs);
  }
}

void Server::take(UniqueFd connection, bool trusted) {
  Slot* free = nullptr;
  {
    const std::lock_guard lock{mutex_};
    const auto it =
        std::find_if(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.fd < 0; });
    if (it != slots_.end()) free = &*it;
  }
  if (free == nullptr) {
    send(connection.get(), kBusy.data(), kBusy.size(), MSG_NOSIGNAL);
    return;
  }
  if (free->thread.joinable()) free->thread.join();
  const int fd = connection.get();
  {
    const std::lock_guard lock{mutex_};
    free->fd = fd;
  }
  try {
    free->thread = std::thread{[this, free, trusted, fd] {
      face_.serve(fd, trusted);
      const std::lock_guard lock{mutex_};
      close(fd);
      free->fd = -1;
      ended_.notify_all();
    }};
    static_cast<void>(connection.release());
  } catch (const std::system_error&) {  // No thread to be had: the connection is closed.
    const std::lock_guard lock{mutex_};
    free->fd = -1;
  }
}

}  // namespace lictor::admin
