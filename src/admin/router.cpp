#include "admin/router.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "httpd/listener.h"

namespace lictor::admin {
namespace {

using nlohmann::ordered_json;

// Returns the part of `path` that "*" matched; empty without one. std::nullopt: no match. "*" also
// takes slashes, since ids may have them.
std::optional<std::string_view> match(std::string_view pattern, std::string_view path) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) {
    return pattern == path ? std::optional{std::string_view{}} : std::nullopt;
  }
  const std::string_view before = pattern.substr(0, star);
  const std::string_view after = pattern.substr(star + 1);
  if (path.size() <= before.size() + after.size() || !path.starts_with(before) ||
      !path.ends_with(after)) {
    return std::nullopt;
  }
  return path.substr(before.size(), path.size() - before.size() - after.size());
}

bool fits(std::string_view route_method, std::string_view method) {
  return route_method == method || (route_method == "GET" && method == "HEAD");
}

// Whether the route is a file of the web page, which no program asks for.
bool is_part_of_page(std::string_view pattern) {
  return pattern.ends_with(".js") || pattern.ends_with(".css") || pattern.ends_with(".svg");
}

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

// Whether `name`, in lower case and without a port, is one of `names`.
bool is_among(std::string_view name, const std::vector<std::string>& names) {
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& known) { return name == lowered(known); });
}

// The host name in a Host header: "Host-A.example.:8383" is "host-a.example".
std::string name_in(std::string_view host) {
  std::string name = lowered(httpd::host_part(host));
  if (name.ends_with('.')) name.pop_back();  // the root of a fully qualified name
  return name;
}

}  // namespace

Response json_response(int status, const ordered_json& value, int indent) {
  return {status,
          "application/json",
          value.dump(indent, ' ', false, ordered_json::error_handler_t::replace) + "\n",
          {}};
}

Response error_response(int status, std::string_view message) {
  return json_response(status, {{"error", message}});
}

Response error_response(const Error& error) {
  const auto status = [&] {
    switch (error.code) {
      case ErrorCode::kInvalid:
        return 400;
      case ErrorCode::kPermissionDenied:
        return 403;
      case ErrorCode::kNotFound:
        return 404;
      case ErrorCode::kConflict:
        return 409;
      case ErrorCode::kTooLarge:
        return 413;
      case ErrorCode::kUnavailable:
        return 503;
      case ErrorCode::kTimeout:
        return 504;
      default:
        return 500;
    }
  }();
  return error_response(status, error.message);
}

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

// Without a token only clients on the loopback and on a unix socket may change anything.
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

void Router::add(std::string method, std::string pattern, Access access, Handler handler) {
  routes_.push_back({std::move(method), std::move(pattern), access, std::move(handler)});
}

const Router::Route* Router::find(const Request& request, std::string_view* wildcard) const {
  for (const Route& route : routes_) {
    if (!fits(route.method, request.method)) continue;
    if (const auto matched = match(route.pattern, request.url.path)) {
      *wildcard = *matched;
      return &route;
    }
  }
  return nullptr;
}

// Runs on the server's thread, so it must not block. An unknown path is answered with all known
// ones, so that the API explains itself.
std::optional<Response> Router::refuse(const Request& request) const {
  if (auto refused = guard_.refuse(request)) return refused;
  std::string_view wildcard;
  if (const Route* route = find(request, &wildcard)) {
    return route->method == "GET" ? guard_.refuse_read(request, route->access) : std::nullopt;
  }
  std::set<std::string> allowed;
  ordered_json known = ordered_json::array();
  for (const Route& route : routes_) {
    if (!is_part_of_page(route.pattern)) known.push_back(route.pattern);
    if (!match(route.pattern, request.url.path)) continue;
    allowed.insert(route.method);
    if (route.method == "GET") allowed.insert("HEAD");
  }
  if (allowed.empty()) {
    return json_response(404, {{"error", "no such path"}, {"paths", std::move(known)}});
  }
  const std::string methods = fmt::format("{}", fmt::join(allowed, ", "));
  Response response = error_response(405, "this path takes " + methods);
  response.headers.emplace_back("Allow", methods);
  return response;
}

// Such requests get a worker of their own, so that a probe is answered while all others wait for
// Consul.
bool Router::is_quick(const Request& request) const {
  std::string_view wildcard;
  const Route* route = find(request, &wildcard);
  return route != nullptr && route->method == "GET" && route->access == Access::kPublic;
}

void Router::handle(const ExchangePtr& exchange) const {
  const Request& request = exchange->request();
  if (auto refused = refuse(request)) return exchange->answer(std::move(*refused));
  std::string_view wildcard;
  const Route* route = find(request, &wildcard);
  auto response = route->handler({request, wildcard, exchange});
  if (!response) return exchange->answer(error_response(response.error()));
  if (*response) exchange->answer(std::move(**response));
}

}  // namespace lictor::admin
