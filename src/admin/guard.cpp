#include "admin/guard.h"

#include <algorithm>

#include "admin/address.h"
#include "base/text.h"

namespace lictor::admin {
namespace {

std::string lower(std::string_view text) {
  std::string result{text};
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

// As long for a wrong token as for the right one, so that its bytes cannot be guessed one by one.
bool same_secret(std::string_view a, std::string_view b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const char other = b.empty() ? '\0' : b[i % b.size()];
    difference |= static_cast<unsigned>(static_cast<unsigned char>(a[i] ^ other));
  }
  return difference == 0;
}

}  // namespace

bool Guard::is_ours(std::string_view host, const Request& request) const {
  std::string name = lower(host_part(host));
  if (name.ends_with('.')) name.pop_back();  // the same name, written in full
  return name == "localhost" || is_loopback(name) ||
         (!request.local_address.empty() && name == lower(request.local_address)) ||
         std::any_of(options_.hosts.begin(), options_.hosts.end(),
                     [&](const std::string& ours) { return name == lower(ours); });
}

std::optional<Response> Guard::refuse(const Request& request) const {
  // Without a Host it is no browser: those have sent it since HTTP/1.1.
  if (request.host && !is_ours(*request.host, request)) {
    return error_response(421, "\"" + excerpt(*request.host) +
                                   "\" is not a name of this daemon; ask for localhost, its host "
                                   "name, its node name or its address");
  }
  if (request.origin) {
    const std::string origin = lower(*request.origin);
    const std::string host = lower(request.host.value_or(""));
    if (host.empty() || (origin != "http://" + host && origin != "https://" + host)) {
      return error_response(403, "a page of another origin (" + excerpt(*request.origin) +
                                     ") may not ask this daemon");
    }
  }
  if (request.method == "GET" || request.method == "HEAD") return std::nullopt;
  return refuse_change(request);
}

std::optional<Response> Guard::refuse_change(const Request& request) const {
  if (request.trusted_listener) return std::nullopt;
  const std::string token = options_.token ? options_.token() : std::string{};
  if (token.empty()) {
    return error_response(403,
                          "changes are taken over the loopback or a unix socket; from elsewhere "
                          "they need a token: set admin.token_file");
  }
  constexpr std::string_view kBearer = "bearer ";
  const std::string given = request.authorization.value_or("");
  if (lower(given.substr(0, kBearer.size())) == kBearer &&
      same_secret(given.substr(kBearer.size()), token)) {
    return std::nullopt;
  }
  Response response = error_response(
      401, "expected \"Authorization: Bearer TOKEN\" with the token of admin.token_file");
  response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

}  // namespace lictor::admin
