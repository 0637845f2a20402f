#include "net/endpoint.h"

#include <sys/un.h>

#include <cstdint>

#include <fmt/format.h>

#include "base/text.h"

namespace lictor::net {
namespace {

constexpr std::size_t kMaxUnixPathBytes = sizeof(sockaddr_un::sun_path) - 1;

tl::unexpected<Error> bad_address(std::string_view address, const std::string& expected,
                                  const std::string& remedy) {
  return fail(ErrorCode::kInvalid, "Consul address \"" + excerpt(address, 120) + "\": expected " +
                                       expected + "; " + remedy);
}

bool is_host_name(std::string_view text) { return text.size() <= 253 && is_word(text, ".-_"); }

// An IPv6 address in brackets: "[::1]", "[fe80::1%eth0]"
bool is_bracketed_ipv6(std::string_view text) {
  if (text.size() < 4 || text.front() != '[' || text.back() != ']') return false;
  text = text.substr(1, text.size() - 2);
  return text.find(':') != std::string_view::npos && is_word(text, ".-_:%");
}

bool is_port(std::string_view text) { return to_number<std::uint16_t>(text).value_or(0) != 0; }

Result<Endpoint> parse_unix(std::string_view address, std::string_view path) {
  if (!path.starts_with('/') || path.size() > kMaxUnixPathBytes) {
    return bad_address(
        address,
        fmt::format("an absolute path of at most {} bytes after unix://", kMaxUnixPathBytes),
        "write it as \"unix:///run/consul.sock\"");
  }
  Endpoint endpoint;
  endpoint.kind = Endpoint::Kind::kUnix;
  endpoint.address = address;
  endpoint.origin = "http://localhost";  // HTTP/1.1 wants a Host; Consul does not look at it.
  endpoint.unix_path = path;
  return endpoint;
}

}  // namespace

bool has_no_scheme(std::string_view address) {
  // "http:/x" has a scheme, although a wrong one; "host:8500" has none.
  return address.find(":/") == std::string_view::npos;
}

Result<Endpoint> parse_endpoint(std::string_view address, std::string_view tls_server_name) {
  constexpr auto kNone = std::string_view::npos;
  const bool bare = has_no_scheme(address);
  const std::size_t end = address.find("://");
  const std::string_view scheme = bare ? "http" : address.substr(0, end);
  std::string_view rest = bare ? address : address.substr(end == kNone ? address.size() : end + 3);
  if (scheme == "unix") return parse_unix(address, rest);
  // Check this before any message that quotes the address: it may hold a password.
  if (const std::size_t at = address.rfind('@'); at != kNone) {
    return bad_address(address.substr(at + 1), "no user and password before the host",
                       "give them as basic_auth or CONSUL_HTTP_AUTH");
  }
  if (rest.ends_with('/')) rest.remove_suffix(1);
  const std::size_t bracket = rest.find(']');
  const std::size_t colon = rest.find(':', bracket == kNone ? 0 : bracket);
  // ":8500" is a port of this host, as the consul command reads it.
  const std::string host{colon == 0 ? "localhost" : rest.substr(0, colon)};
  const std::string_view default_port = scheme == "https" ? "443" : "80";
  const std::string port{colon == kNone ? default_port : rest.substr(colon + 1)};
  if ((scheme != "http" && scheme != "https") || (bare && colon == kNone) || !is_port(port) ||
      (!is_host_name(host) && !is_bracketed_ipv6(host))) {
    return bad_address(address, "http://, https:// or unix:// or nothing, a host and a port",
                       "write it as \"http://127.0.0.1:8500\", \"[::1]:8500\" for IPv6, or "
                       "\"unix:///run/consul.sock\", without a path");
  }

  const bool tls = scheme == "https";
  Endpoint endpoint;
  endpoint.kind = tls ? Endpoint::Kind::kHttps : Endpoint::Kind::kHttp;
  endpoint.address = address;
  if (tls && !tls_server_name.empty()) {
    if (!is_host_name(tls_server_name)) {
      return fail(ErrorCode::kInvalid, "TLS server name \"" + excerpt(tls_server_name) +
                                           "\": expected a host name as the certificate has it, "
                                           "like \"server.dc1.consul\"; correct tls_server_name "
                                           "or CONSUL_TLS_SERVER_NAME");
    }
    endpoint.origin = "https://" + std::string{tls_server_name} + ':' + port;
    // An empty host and port before it match all requests of a handle.
    endpoint.connect_to = "::" + host + ':' + port;
  } else {
    endpoint.origin = std::string{scheme} + "://" + host + ':' + port;
  }
  return endpoint;
}

}  // namespace lictor::net
