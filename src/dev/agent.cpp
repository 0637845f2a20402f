#include "dev/agent.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "dev/answer.h"
#include "dev/go_text.h"

namespace lictor::dev {
namespace {

using nlohmann::json;

constexpr std::string_view kDeregister = "/v1/agent/service/deregister/";
constexpr std::string_view kPass = "/v1/agent/check/pass/";

// Nothing: `object` is none, or has no such member.
const json* member(const json& object, std::string_view name) {
  if (!object.is_object()) return nullptr;
  for (const auto& [found, value] : object.items()) {
    if (is_name(found, name)) return value.is_null() ? nullptr : &value;
  }
  return nullptr;
}

std::string text_at(const json& object, const char* name) {
  const json* value = member(object, name);
  return value != nullptr && value->is_string() ? value->get<std::string>() : std::string{};
}

}  // namespace

Agent::Agent(std::string node, std::uint64_t seed)
    : node_(std::move(node)), id_([seed] {
        Random random{seed};
        return uuid(random);
      }()) {}

bool Agent::has_path(std::string_view path) {
  return path.starts_with("/v1/agent/") || path.starts_with("/v1/status/");
}

http::Response Agent::handle(const http::Request& request, std::string_view path, Instant now) {
  if (path == "/v1/agent/service/register") return register_service(request, now);
  if (path.starts_with(kPass)) return pass(std::string{path.substr(kPass.size())}, now);
  if (path.starts_with(kDeregister)) {
    const std::string_view id = path.substr(kDeregister.size());
    std::erase_if(checks_, [&](const auto& check) { return check.second.service == id; });
    return answer(200);
  }
  if (path == "/v1/agent/self") return answer(200, self());
  return answer(200, "\"127.0.0.1:8300\"");  // /v1/status/leader
}

std::string Agent::session_fault(const std::string& node, const std::vector<std::string>& checks,
                                 Instant now) const {
  if (node != node_) return "Missing node registration";
  for (const std::string& id : checks) {
    if (id == "serfHealth") continue;
    const auto it = checks_.find(id);
    if (it == checks_.end()) return "Missing check '" + id + "' registration";
    const Check& check = it->second;
    if (check.expires <= now || check.status == "critical") {
      return "Check '" + id + "' is in critical state";
    }
  }
  return {};
}

http::Response Agent::register_service(const http::Request& request, Instant now) {
  const json asked = json::parse(request.body, nullptr, false);
  if (!asked.is_object()) return answer(400, "Request decode failed: expected a JSON object");
  const std::string name = text_at(asked, "Name");
  if (name.empty()) return answer(400, "Missing service name");
  std::string id = text_at(asked, "ID");
  if (id.empty()) id = name;

  // Not copied: the copy of deeply nested JSON would exhaust the stack.
  std::vector<const json*> definitions;
  if (const json* many = member(asked, "Checks"); many != nullptr && many->is_array()) {
    for (const json& each : *many) definitions.push_back(&each);
  }
  if (const json* one = member(asked, "Check")) definitions.push_back(one);
  std::map<std::string, Check> checks;
  for (const json* definition : definitions) {
    const std::string number =
        definitions.size() > 1 ? ":" + std::to_string(checks.size() + 1) : "";
    std::string check_id = text_at(*definition, "CheckID");
    if (check_id.empty()) check_id = "service:" + id + number;
    Check check{text_at(*definition, "Status"), id, {}, {}};
    if (check.status.empty()) check.status = "critical";
    const auto ttl = parse_go_duration(text_at(*definition, "TTL"));
    if (!ttl || *ttl <= Duration{}) {
      return answer(400, "Invalid check: TTL must be > 0 for TTL checks");
    }
    check.ttl = *ttl;
    check.expires = now + check.ttl;
    if (const auto known = checks_.find(check_id); known != checks_.end()) {
      // A check that is registered again keeps its status.
      check.status = known->second.status;
      check.expires = known->second.expires;
    }
    checks.emplace(std::move(check_id), std::move(check));
  }
  std::erase_if(checks_, [&](const auto& known) { return known.second.service == id; });
  for (auto& [check_id, check] : checks) checks_.insert_or_assign(check_id, std::move(check));
  return answer(200);
}

http::Response Agent::pass(const std::string& id, Instant now) {
  const auto it = checks_.find(id);
  if (it == checks_.end()) {
    return answer(500, "CheckID " + quote(id) + " does not have associated TTL");
  }
  it->second.status = "passing";
  it->second.expires = now + it->second.ttl;
  return answer(200);
}

std::string Agent::self() const {
  const json told{{"Config",
                   {{"Datacenter", "dc1"},
                    {"NodeName", node_},
                    {"NodeID", id_},
                    {"Revision", ""},
                    {"Server", true},
                    {"Version", "1.8.7"}}},
                  {"Meta", {{"lictor-dev", "a model in memory: nothing is kept"}}}};
  return told.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace lictor::dev
