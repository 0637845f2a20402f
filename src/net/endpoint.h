#pragma once

// An agent's certificate often bears a name such as server.dc1.consul, which need not resolve,
// while the address is 10.0.0.5. With tls_server_name, `origin` has the certificate's name, for
// SNI, the Host header and the check, and `connect_to` sends the connection to the address.

#include <string>
#include <string_view>

#include "lictor/result.h"

namespace lictor::net {

/// One parsed address of Consul's HTTP API.
struct Endpoint {
  enum class Kind { kHttp, kHttps, kUnix };

  Kind kind = Kind::kHttp;
  std::string address;  ///< as configured; without user and password, for messages
  std::string origin;   ///< prefix of a target: "http://127.0.0.1:8500"
  std::string unix_path;
  /// libcurl's CURLOPT_CONNECT_TO: where to connect while `origin` names the certificate's host.
  std::string connect_to;
};

/// Reads "http://host:port", "https://host:port", "host:port" (means http) or "unix:///path". With
/// https, `tls_server_name` is the name that the certificate must bear, sent as SNI and as Host;
/// empty: the address's own host.
/// Errors: kInvalid; the message quotes the address, never its user and password.
[[nodiscard]] Result<Endpoint> parse_endpoint(std::string_view address,
                                              std::string_view tls_server_name);

/// Whether `address` names neither http, https nor unix.
[[nodiscard]] bool has_no_scheme(std::string_view address);

}  // namespace lictor::net
