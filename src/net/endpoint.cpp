#include "net/endpoint.h"

#include <sys/un.h>

#include <cstdint>

#include <fmt/format.h>

#include "base/text.h"

namespace lictor::net {
namespace {

constexpr std::string_view kSchemeEnd = "://";
constexpr const char* kForm = "write it as \"127.0.0.1:8500\", or \"[::1]:8500\" for IPv6";
constexpr std::size_t kMaxUnixPathBytes = sizeof(sockaddr_un::sun_path) - 1;

tl::unexpected<Error> bad_address(std::string_view address, const std::string& expected,
                                  const std::string& remedy) {
  return fail(ErrorCode::kInvalid, "Consul address \"" + excerpt(address, 120) + "\": expected " +
                                       expected + "; " + remedy);
}

bool is_host_name(std::string_view text) { return text.size() <= 253 && is_word(text, ".-_"); }

// "[::1]", "[fe80::1%eth0]"
bool is_bracketed_ipv6(std::string_view text) {
  if (text.size() < 4 || text.front() != '[' || text.back() != ']') return false;
  text = text.substr(1, text.size() - 2);
  return text.find(':') != std::string_view::npos && is_word(text, ".-_:%");
}

bool is_port(std::string_view text) { return to_number<std::uint16_t>(text).value_or(0) != 0; }

Result<Endpoint> parse_unix(std::string_view address, std::string_view path) {
  if (path.empty() || path.front() != '/') {
    return bad_address(address, "an absolute path after unix://",
                       "write it as \"unix:///run/consul.sock\"");
  }
  if (path.size() > kMaxUnixPathBytes || path.find('\0') != std::string_view::npos) {
    return bad_address(
        address,
        fmt::format("a socket's path of at most {} bytes, got {}", kMaxUnixPathBytes, path.size()),
        "move the socket to a shorter path");
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
  // "http:/x" has one, a wrong one; "host:8500" has none.
  return address.find(":/") == std::string_view::npos;
}

Result<Endpoint> parse_endpoint(std::string_view address, std::string_view tls_server_name) {
  std::string_view scheme = "http";
  std::string_view rest = address;
  const bool bare = has_no_scheme(address);
  const std::size_t end = address.find(kSchemeEnd);
  if (end != std::string_view::npos) {
    scheme = address.substr(0, end);
    rest = address.substr(end + kSchemeEnd.size());
  } else if (!bare) {
    scheme = address.substr(0, address.find(":/") + 2);  // none that is known
  }
  if (scheme == "unix") return parse_unix(address, rest);

  // Before any message that quotes the address: it may hold a password.
  if (const std::size_t at = rest.rfind('@'); at != std::string_view::npos) {
    return bad_address(rest.substr(at + 1), "no user and password before the host",
                       "give them as basic_auth or CONSUL_HTTP_AUTH");
  }
  if (scheme != "http" && scheme != "https") {
    const std::string_view begin =
        address.substr(0, address.find_first_not_of('/', address.find(':') + 1));
    return bad_address(
        address, "http://, https:// or unix:// at its begin, got \"" + excerpt(begin, 40) + '"',
        "correct the scheme");
  }
  if (rest.ends_with('/')) rest.remove_suffix(1);
  if (rest.find_first_of("/?#") != std::string_view::npos) {
    return bad_address(address, "no path after the port", "leave it out: requests bring their own");
  }

  std::string_view host = rest;
  std::string_view port;
  const std::size_t bracket = rest.find(']');
  const std::size_t colon = rest.find(':', bracket == std::string_view::npos ? 0 : bracket);
  if (colon != std::string_view::npos) {
    host = rest.substr(0, colon);
    port = rest.substr(colon + 1);
    if (!is_port(port)) {
      return bad_address(address, "a port from 1 to 65535 after the host", kForm);
    }
  } else if (bare) {
    return bad_address(address, "host:port", "add the port, 8500 unless Consul was told otherwise");
  }
  if (!is_host_name(host) && !is_bracketed_ipv6(host)) {
    return bad_address(address, "a host name or address", kForm);
  }

  const bool tls = scheme == "https";
  Endpoint endpoint;
  endpoint.kind = tls ? Endpoint::Kind::kHttps : Endpoint::Kind::kHttp;
  endpoint.address = address;
  const std::string port_text = port.empty() ? (tls ? "443" : "80") : std::string{port};
  if (tls && !tls_server_name.empty()) {
    if (!is_host_name(tls_server_name)) {
      return fail(ErrorCode::kInvalid, "TLS server name \"" + excerpt(tls_server_name) +
                                           "\": expected a host name as the certificate has it, "
                                           "like \"server.dc1.consul\"; correct tls_server_name "
                                           "or CONSUL_TLS_SERVER_NAME");
    }
    endpoint.origin = "https://" + std::string{tls_server_name} + ':' + port_text;
    // An empty host and port before it match all requests of a handle.
    endpoint.connect_to = "::" + std::string{host} + ':' + port_text;
  } else {
    endpoint.origin = std::string{scheme} + "://" + std::string{host} + ':' + port_text;
  }
  return endpoint;
}

}  // namespace lictor::net
