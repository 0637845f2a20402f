#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lictor/result.h"

namespace lictor::admin {

/// One entry of admin.listen.
struct ListenAddress {
  std::string text;        ///< as configured
  std::string host;        ///< name or address, without brackets; empty: a unix socket
  std::uint16_t port = 0;  ///< 0: any that is free
  std::string unix_path;
};

/// Reads "127.0.0.1:8642", "[::1]:8642", "name:8642" or "unix:///run/lictor/admin.sock".
/// Errors: kInvalid.
[[nodiscard]] Result<ListenAddress> parse_listen_address(std::string_view text);

/// "name", "name:80", "[::1]", "[::1]:80" without port and brackets.
[[nodiscard]] std::string_view host_part(std::string_view host_and_port);

/// Whether `host` is an address of the loopback, as a number: 127.0.0.0/8 or ::1.
[[nodiscard]] bool is_loopback(std::string_view host);

}  // namespace lictor::admin
