#include "admin/guard.h"

#include <algorithm>

#include "base/text.h"
#include "httpd/listener.h"

namespace lictor::admin {
namespace {

// Takes the same time wherever the texts differ, so that a token cannot be guessed byte by byte.
bool same_secret(std::string_view a, std::string_view b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const char other = b.empty() ? '\0' : b[i % b.size()];
    difference |= static_cast<unsigned>(static_cast<unsigned char>(a[i] ^ other));
  }
  return difference == 0;
}

bool has_token(const Request& request, std::string_view token) {
  constexpr std::string_view kBearer = "bearer ";
  const std::string given = request.header("authorization").value_or("");
  return lowered(given.substr(0, kBearer.size())) == kBearer &&
         same_secret(given.substr(kBearer.size()), token);
}

Response token_wanted() {
  Response response = error_response(
      401, "expected \"Authorization: Bearer TOKEN\" with the token of admin.token_file");
  response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

// `name` without a port, in lower case.
bool is_among(std::string_view name, const std::vector<std::string>& names) {
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& known) { return name == lowered(known); });
}

// "Host-A.example.:8383" is "host-a.example".
std::string name_in(std::string_view host) {
  std::string name = lowered(httpd::host_part(host));
  if (name.ends_with('.')) name.pop_back();  // the root of a fully qualified name
  return name;
}

}  // namespace

bool Guard::is_ours(std::string_view host, const Request& request) const {
  const std::string name = name_in(host);
  return name == "localhost" || httpd::is_loopback(name) ||
         (!request.local_address.empty() && name == lowered(request.local_address)) ||
         is_among(name, options_.hosts) || is_among(name, options_.names);
}

// `origin`: "https://name:port".
bool Guard::is_own_page(std::string_view origin, std::string_view host) const {
  const std::string from = lowered(origin), to = lowered(host);
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!from.starts_with(scheme)) continue;
    const std::string_view server = std::string_view{from}.substr(scheme.size());
    return (!to.empty() && server == to) || is_among(name_in(server), options_.names);
  }
  return false;
}

// A request without Origin passes: programs send none, and browsers send it with each change.
std::optional<Response> Guard::refuse(const Request& request) const {
  // Browsers have sent Host since HTTP/1.1.
  const auto host = request.header("host");
  if (host && !is_ours(*host, request)) {
    return error_response(421, "\"" + excerpt(*host) +
                                   "\" is not a name of this daemon; ask for localhost, its host "
                                   "name, its node name or its address, or add the name to "
                                   "admin.names");
  }
  const auto origin = request.header("origin");
  if (origin && !is_own_page(*origin, host.value_or(""))) {
    return error_response(403, "a page of another origin (" + excerpt(*origin) +
                                   ") may not ask this daemon; if a proxy serves the page under "
                                   "that name, add the name to admin.names");
  }
  if (request.method == "GET" || request.method == "HEAD") return std::nullopt;
  return refuse_change(request);
}

// Without a token only clients of the loopback and of a unix socket may change anything.
std::optional<Response> Guard::refuse_change(const Request& request) const {
  const bool has_no_token = !options_.token || options_.token().empty();
  if (has_no_token && !request.trusted_listener) {
    return error_response(403,
                          "changes over the network need a token: set admin.token_file, or ask "
                          "over the loopback or a unix socket");
  }
  return ask_for_token(request);
}

std::optional<Response> Guard::ask_for_token(const Request& request) const {
  const bool is_unix_socket = request.trusted_listener && request.local_address.empty();
  if (is_unix_socket) return std::nullopt;
  const std::string token = options_.token ? options_.token() : std::string{};
  if (token.empty() || has_token(request, token)) return std::nullopt;
  return token_wanted();
}

std::optional<Response> Guard::refuse_read(const Request& request, Access access) const {
  return access == Access::kPublic ? std::nullopt : ask_for_token(request);
}

}  // namespace lictor::admin
