#include "httpd/listener.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <utility>

#include "base/errno_text.h"
#include "base/text.h"
#include "base/try.h"

namespace lictor::httpd {
namespace {

constexpr int kBacklog = 64;
constexpr std::string_view kUnix = "unix://";
constexpr std::size_t kMaxUnixPathBytes = sizeof(sockaddr_un::sun_path) - 1;

tl::unexpected<Error> refuse(std::string_view text, const std::string& expected) {
  return fail(ErrorCode::kInvalid, '"' + excerpt(text, 120) + "\": expected " + expected);
}

tl::unexpected<Error> cannot_listen(const ListenAddress& address, int number) {
  const ErrorCode code = number == EACCES || number == EPERM ? ErrorCode::kPermissionDenied
                         : number == EADDRINUSE              ? ErrorCode::kConflict
                                                             : ErrorCode::kFailed;
  return fail(code, "cannot listen on " + address.text + ": " + errno_text(number));
}

// A numeric name without the "::ffff:" of IPv4 clients on an IPv6 socket: logs show one form.
SocketName name_of(const sockaddr_storage& storage) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  std::uint16_t port = 0;
  if (storage.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(storage);
    inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size());
    port = ntohs(v4.sin_port);
  } else if (storage.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(storage);
    inet_ntop(AF_INET6, &v6.sin6_addr, text.data(), text.size());
    port = ntohs(v6.sin6_port);
  }
  constexpr std::string_view kMapped = "::ffff:";  // IPv4 over an IPv6 socket
  std::string host{text.data()};
  if (host.starts_with(kMapped)) host.erase(0, kMapped.size());
  return {std::move(host), port};
}

// A name may have several addresses, of which the first that can be bound is taken.
Result<Listener> listen_tcp(const ListenAddress& address, const std::string& host_name) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int looked_up =
      getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
  if (looked_up != 0) {
    return fail(ErrorCode::kFailed,
                "cannot listen on " + address.text + ": " + gai_strerror(looked_up));
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
      SocketName name = local_name(listener.fd.get());
      listener.trusted = is_loopback(name.host);
      const bool any = name.host == "0.0.0.0" || name.host == "::";
      listener.url = "http://" + (any ? host_name + ':' + std::to_string(name.port) : name.text());
      listener.host = address.host;
      return listener;
    }
    error = errno;
  }
  return cannot_listen(address, error);
}

// A killed daemon leaves its socket file behind.
bool is_abandoned(const sockaddr_un& name) {
  const UniqueFd probe{socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  return probe &&
         connect(probe.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0 &&
         errno == ECONNREFUSED;
}

// A file that is there is removed only if nobody listens on it: a second daemon with the same path
// must not take the socket from one that runs.
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
    struct stat status {};
    if (lstat(address.unix_path.c_str(), &status) == 0 && !S_ISSOCK(status.st_mode)) {
      return fail(ErrorCode::kConflict, "cannot listen on " + address.text +
                                            ": the file there is no socket; choose another path, "
                                            "or remove it");
    }
    if (!is_abandoned(name)) return cannot_listen(address, EADDRINUSE);
    unlink(address.unix_path.c_str());
    bound = bind_it();
  }
  if (bound != 0) return cannot_listen(address, errno);
  listener.unix_path = address.unix_path;
  // Write permission lets a client change things: for owner and group only.
  if (chmod(address.unix_path.c_str(), 0660) != 0 || listen(listener.fd.get(), kBacklog) != 0) {
    return cannot_listen(address, errno);
  }
  listener.url = "unix://" + address.unix_path;
  listener.trusted = true;
  return listener;
}

}  // namespace

Result<ListenAddress> parse_listen_address(std::string_view text) {
  ListenAddress address;
  address.text = text;
  if (text.starts_with(kUnix)) {
    address.unix_path = text.substr(kUnix.size());
    if (!address.unix_path.starts_with('/') || address.unix_path.size() > kMaxUnixPathBytes) {
      return refuse(text, "an absolute path of at most " + std::to_string(kMaxUnixPathBytes) +
                              " bytes after unix://");
    }
    return address;
  }
  const std::string form =
      R"(host:port such as "127.0.0.1:8642" or "[::1]:8642", or "unix:///path")";
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || text.find("://") != std::string_view::npos) {
    return refuse(text, form);
  }
  const std::string_view host = text.substr(0, colon);
  const auto port = to_number<std::uint16_t>(text.substr(colon + 1));
  if (!port) return refuse(text, form + ", a port from 0 (any that is free) to 65535");
  address.port = *port;
  address.host = host_part(host);
  const bool bracketed = host.starts_with('[');
  in6_addr v6{};
  if (bracketed ? !host.ends_with(']') || inet_pton(AF_INET6, address.host.c_str(), &v6) != 1
                : address.host != host || !is_word(host, ".-_")) {
    return refuse(text, form);
  }
  return address;
}

std::string_view host_part(std::string_view text) {
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    return end == std::string_view::npos ? text : text.substr(1, end - 1);
  }
  return text.substr(0, text.find(':'));
}

bool is_loopback(std::string_view host) {
  const std::string text{host};
  in_addr v4{};
  if (inet_pton(AF_INET, text.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24U) == 127;
  in6_addr v6{};
  return inet_pton(AF_INET6, text.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

bool ListenAddress::is_network() const {
  return unix_path.empty() && host != "localhost" && !is_loopback(host);
}

std::string SocketName::text() const {
  const bool v6 = host.find(':') != std::string::npos;
  return (v6 ? '[' + host + ']' : host) + ':' + std::to_string(port);
}

SocketName local_name(int fd) {
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &length) != 0) return {};
  return name_of(storage);
}

std::string client_text(int fd) {
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&storage), &length) != 0) return {};
  if (storage.ss_family != AF_UNIX) return name_of(storage).text();
  ucred peer{};
  length = sizeof peer;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return {};
  return "uid " + std::to_string(peer.uid) + ", pid " + std::to_string(peer.pid);
}

Listener::~Listener() {
  if (fd && !unix_path.empty()) unlink(unix_path.c_str());
}

Result<std::vector<Listener>> open_listeners(const ListenOptions& options) {
  std::vector<Listener> listeners;
  for (const std::string& text : options.addresses) {
    LICTOR_TRY(auto address, parse_listen_address(text));
    auto listener =
        address.unix_path.empty() ? listen_tcp(address, options.host_name) : listen_unix(address);
    if (!listener && listener.error().code == ErrorCode::kConflict && options.any_port_will_do) {
      address.port = 0;
      listener = listen_tcp(address, options.host_name);
      if (listener) {
        options.on_warning(text + " is taken; the admin API listens on " + listener->url +
                           " instead; set admin.listen to choose");
      }
    }
    if (!listener) return tl::unexpected(std::move(listener.error()));
    listeners.push_back(std::move(*listener));
  }
  return listeners;
}

}  // namespace lictor::httpd
