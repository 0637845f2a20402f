#include "dev/answer.h"

#include <array>

#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/text.h"
#include "base/time_text.h"
#include "httpd/url.h"

namespace lictor::dev {
namespace {

struct Endpoint {
  std::string_view path;  // a trailing slash stands for all paths below, too
  std::string_view methods;
};

constexpr std::array<Endpoint, 12> kEndpoints{{
    {"/v1/kv/", "GET,PUT,DELETE"},
    {"/v1/txn", "PUT"},
    {"/v1/session/create", "PUT"},
    {"/v1/session/destroy/", "PUT"},
    {"/v1/session/renew/", "PUT"},
    {"/v1/session/info/", "GET"},
    {"/v1/session/list", "GET"},
    {"/v1/status/leader", "GET"},
    {"/v1/agent/self", "GET"},
    {"/v1/agent/service/register", "PUT"},
    {"/v1/agent/service/deregister/", "PUT"},
    {"/v1/agent/check/pass/", "PUT"},
}};

}  // namespace

std::string_view allowed_methods(std::string_view path) {
  for (const auto& [endpoint, methods] : kEndpoints) {
    if (path == endpoint || (endpoint.ends_with('/') && path.starts_with(endpoint))) {
      return methods;
    }
  }
  return {};
}

// A raw value gets headers that keep a browser from running it, as Consul's does.
std::vector<std::pair<std::string, std::string>> headers_of(const http::Request& request,
                                                            const http::Response& response) {
  std::vector<std::pair<std::string, std::string>> headers;
  const auto url = httpd::parse_url(request.target);
  if (!url) return headers;
  if (response.consul_index != 0) {
    headers.emplace_back("X-Consul-Index", std::to_string(response.consul_index));
  }
  if (response.known_leader) {
    headers.emplace_back("X-Consul-KnownLeader", *response.known_leader ? "true" : "false");
    headers.emplace_back("X-Consul-LastContact", "0");
  }
  const bool is_kv = url->path.starts_with("/v1/kv/");
  const bool raw = is_kv && request.method == "GET" && response.status == 200 && url->has("raw") &&
                   !url->has("recurse") && !url->has("keys");
  if (raw) {
    headers.emplace_back("Content-Type", "text/plain");
    headers.emplace_back("X-Content-Type-Options", "nosniff");
    headers.emplace_back("Content-Security-Policy", "sandbox");
  } else if (!response.body.empty()) {
    const bool json = (response.status == 200 && url->path != "/") || response.status == 409;
    headers.emplace_back("Content-Type", json ? "application/json" : "text/plain; charset=utf-8");
  }
  return headers;
}

std::string quote(std::string_view text) { return json_quoted(to_utf8(text)); }

Result<void> read_text(const nlohmann::json& value, std::string_view field, std::string& out) {
  if (value.is_null()) return {};
  if (!value.is_string()) {
    return fail(ErrorCode::kInvalid, std::string{field} + ": expected a string");
  }
  out = value.get<std::string>();
  return {};
}

Result<Duration> parse_go_duration(std::string_view text) {
  if (text == "0") return Duration::zero();
  const auto duration = parse_duration(text);
  const bool is_go = text.find_first_of("dw") == std::string_view::npos;  // Go has no days or weeks
  if (duration && is_go) return *duration;
  return fail(ErrorCode::kInvalid, "time: invalid duration " + quote(text));
}

Result<std::uint64_t> parse_go_uint(std::string_view text) {
  if (const auto value = to_number<std::uint64_t>(text)) return *value;
  return fail(ErrorCode::kInvalid,
              "strconv.ParseUint: parsing " + quote(text) + ": invalid syntax");
}

}  // namespace lictor::dev
