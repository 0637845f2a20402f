#include "admin/router.h"

#include <utility>

#include <nlohmann/json.hpp>

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

// Files of the web page, which no program asks for.
bool is_part_of_page(std::string_view pattern) {
  return pattern.ends_with(".js") || pattern.ends_with(".css") || pattern.ends_with(".svg");
}

}  // namespace

Response json_response(int status, const ordered_json& value) {
  return {status,
          "application/json",
          value.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n",
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
  std::string allowed;
  ordered_json known = ordered_json::array();
  for (const Route& route : routes_) {
    if (!is_part_of_page(route.pattern)) known.push_back(route.pattern);
    if (!match(route.pattern, request.url.path)) continue;
    allowed += (allowed.empty() ? "" : ", ") + route.method;
    if (route.method == "GET") allowed += ", HEAD";
  }
  if (allowed.empty()) {
    return json_response(404, {{"error", "no such path"}, {"paths", std::move(known)}});
  }
  Response response = error_response(405, "this path takes " + allowed);
  response.headers.emplace_back("Allow", allowed);
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
