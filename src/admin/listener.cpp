#include "admin/listener.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "base/errno_text.h"

namespace lictor::admin {
namespace {

constexpr int kBacklog = 64;

tl::unexpected<Error> cannot_listen(const ListenAddress& address, int number) {
  const ErrorCode code = number == EACCES || number == EPERM ? ErrorCode::kPermissionDenied
                         : number == EADDRINUSE              ? ErrorCode::kConflict
                                                             : ErrorCode::kFailed;
  return fail(code, "admin.listen: cannot listen on " + address.text + ": " + errno_text(number) +
                        "; choose another address, port 0 for any that is free, or [] for none");
}

// What the socket was bound to, as a URL asks for it.
std::string url_of(int fd, const std::string& host_name) {
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &length) != 0) return {};
  if (storage.ss_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &storage, sizeof v4);
    inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size());
    const std::string host = v4.sin_addr.s_addr == INADDR_ANY ? host_name : text.data();
    return "http://" + host + ':' + std::to_string(ntohs(v4.sin_port));
  }
  sockaddr_in6 v6{};
  std::memcpy(&v6, &storage, sizeof v6);
  inet_ntop(AF_INET6, &v6.sin6_addr, text.data(), text.size());
  const std::string host =
      IN6_IS_ADDR_UNSPECIFIED(&v6.sin6_addr) ? host_name : '[' + std::string{text.data()} + ']';
  return "http://" + host + ':' + std::to_string(ntohs(v6.sin6_port));
}

bool is_loopback_socket(int fd) {
  const std::string url = url_of(fd, "*");
  return is_loopback(host_part(std::string_view{url}.substr(std::strlen("http://"))));
}

Result<Listener> listen_tcp(const ListenAddress& address, const std::string& host_name) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int looked_up =
      getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
  if (looked_up != 0) {
    return fail(ErrorCode::kInvalid, "admin.listen: " + address.text + ": " +
                                         gai_strerror(looked_up) + "; correct the host");
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> list{found, &freeaddrinfo};
  int error = EADDRNOTAVAIL;
  for (const addrinfo* info = found; info != nullptr; info = info->ai_next) {
    Listener listener;
    listener.fd.reset(
        socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, info->ai_protocol));
    const int on = 1;
    if (listener.fd &&
        setsockopt(listener.fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
        bind(listener.fd.get(), info->ai_addr, info->ai_addrlen) == 0 &&
        listen(listener.fd.get(), kBacklog) == 0) {
      listener.url = url_of(listener.fd.get(), host_name);
      listener.host = address.host;
      listener.trusted = is_loopback_socket(listener.fd.get());
      return listener;
    }
    error = errno;
  }
  return cannot_listen(address, error);
}

// A socket file that a daemon left behind when it was killed.
bool is_abandoned(const sockaddr_un& name) {
  const UniqueFd probe{socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  return probe &&
         connect(probe.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0 &&
         errno == ECONNREFUSED;
}

Result<Listener> listen_unix(const ListenAddress& address) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  address.unix_path.copy(name.sun_path, sizeof name.sun_path - 1);
  Listener listener;
  listener.fd.reset(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener.fd) return cannot_listen(address, errno);
  const auto bind_it = [&] {
    return bind(listener.fd.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name);
  };
  int bound = bind_it();
  if (bound != 0 && errno == EADDRINUSE) {
    if (!is_abandoned(name)) return cannot_listen(address, EADDRINUSE);
    unlink(address.unix_path.c_str());
    bound = bind_it();
  }
  if (bound != 0) return cannot_listen(address, errno);
  listener.unix_path = address.unix_path;
  // Whoever may write to it may change things: its owner and its group.
  if (chmod(address.unix_path.c_str(), 0660) != 0 || listen(listener.fd.get(), kBacklog) != 0) {
    return cannot_listen(address, errno);
  }
  listener.url = "unix://" + address.unix_path;
  listener.trusted = true;
  return listener;
}

}  // namespace

Listener::~Listener() {
  if (fd && !unix_path.empty()) unlink(unix_path.c_str());
}

Result<std::vector<Listener>> open_listeners(const ListenOptions& options) {
  std::vector<Listener> listeners;
  for (const std::string& text : options.addresses) {
    auto address = parse_listen_address(text);
    if (!address) return tl::unexpected(std::move(address.error()));
    auto listener = address->unix_path.empty() ? listen_tcp(*address, options.host_name)
                                               : listen_unix(*address);
    if (!listener && listener.error().code == ErrorCode::kConflict && options.any_port_will_do) {
      address->port = 0;
      listener = listen_tcp(*address, options.host_name);
      if (listener) {
        options.on_warning(text + " is taken; the admin face listens on " + listener->url +
                           " instead; set admin.listen to choose");
      }
    }
    if (!listener) return tl::unexpected(std::move(listener.error()));
    listeners.push_back(std::move(*listener));
  }
  return listeners;
}

}  // namespace lictor::admin
