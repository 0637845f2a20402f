#pragma once

// The sockets that lictor's HTTP servers listen on: TCP and unix. `trusted` is decided here, for a
// whole listener: a client that comes over loopback or a unix socket is on this host. A killed
// daemon leaves the file of its unix socket; that is replaced, but only when nobody answers there.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "lictor/result.h"

namespace lictor::httpd {

/// One entry of admin.listen.
struct ListenAddress {
  std::string text;        ///< as configured
  std::string host;        ///< name or address, without brackets; empty: a unix socket
  std::uint16_t port = 0;  ///< 0: any free port
  std::string unix_path;

  /// Whether other hosts may reach it; true for a name except localhost.
  [[nodiscard]] bool is_network() const;
};

/// Reads "127.0.0.1:8642", "[::1]:8642", "name:8642" or "unix:///run/lictor/admin.sock".
/// Errors: kInvalid.
[[nodiscard]] Result<ListenAddress> parse_listen_address(std::string_view text);

/// "name", "name:80", "[::1]", "[::1]:80" without port and brackets.
[[nodiscard]] std::string_view host_part(std::string_view host_and_port);

/// Whether `host` is a numeric loopback address: 127.0.0.0/8 or ::1.
[[nodiscard]] bool is_loopback(std::string_view host);

/// One end of a TCP connection.
struct SocketName {
  std::string host;  ///< numeric; empty: a unix socket
  std::uint16_t port = 0;
  [[nodiscard]] std::string text() const;  ///< "192.0.2.7:80", "[::1]:80"
};
[[nodiscard]] SocketName local_name(int fd);
/// The client's address; for a unix socket its user and process: "uid 1000, pid 77".
[[nodiscard]] std::string client_text(int fd);

/// A listening socket. Removes the file of a unix socket at its end.
struct Listener {
  Listener() = default;
  Listener(Listener&&) = default;
  Listener& operator=(Listener&&) = default;
  ~Listener();

  UniqueFd fd;
  std::string url;       ///< for clients: "http://127.0.0.1:8642", "unix:///run/lictor/admin.sock"
  std::string host;      ///< name or address as configured; empty: a unix socket
  bool trusted = false;  ///< loopback or unix socket
  std::string unix_path;
};

struct ListenOptions {
  std::vector<std::string> addresses;  ///< as parse_listen_address() takes them
  /// The addresses are defaults: if a port is taken, perhaps by another daemon of this host, take
  /// any free port.
  bool any_port_will_do = false;
  /// Stands in URLs for an address such as 0.0.0.0, which no client can connect to.
  std::string host_name;
  std::function<void(const std::string&)> on_warning;
};

/// Binds each address. Resolves names, and blocks for that. Errors: kPermissionDenied, kConflict
/// (in use), kFailed.
[[nodiscard]] Result<std::vector<Listener>> open_listeners(const ListenOptions& options);

}  // namespace lictor::httpd
