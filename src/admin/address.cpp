#include "admin/address.h"

#include <arpa/inet.h>
#include <sys/un.h>

#include <algorithm>
#include <charconv>

#include "base/text.h"

namespace lictor::admin {
namespace {

constexpr std::string_view kUnix = "unix://";
constexpr std::size_t kMaxUnixPathBytes = sizeof(sockaddr_un::sun_path) - 1;

tl::unexpected<Error> refuse(std::string_view text, const std::string& expected) {
  return fail(ErrorCode::kInvalid, '"' + excerpt(text, 120) + "\": expected " + expected);
}

bool is_host_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '-' || c == '_';
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
  const std::string_view port = text.substr(colon + 1);
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (port.empty() || error != std::errc{} || end != port.data() + port.size()) {
    return refuse(text, form + ", a port from 0 (any that is free) to 65535");
  }
  address.host = host_part(host);
  const bool bracketed = host.starts_with('[');
  in6_addr v6{};
  if (bracketed ? !host.ends_with(']') || inet_pton(AF_INET6, address.host.c_str(), &v6) != 1
                : address.host.empty() || address.host != host ||
                      !std::all_of(host.begin(), host.end(), is_host_char)) {
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

}  // namespace lictor::admin
