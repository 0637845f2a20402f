#include "dev/agent.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "dev/answer.h"

namespace lictor::dev {
namespace {

using json = nlohmann::ordered_json;  // the fields in Consul's order

constexpr const char* kServer = "127.0.0.1:8300";

// Go's decoder takes names in any case.
const json* member(const json& object, std::string_view name) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  for (const auto& [found, value] : object.items()) {
    if (std::equal(found.begin(), found.end(), name.begin(), name.end(),
                   [&](char x, char y) { return lower(x) == lower(y); })) {
      return value.is_null() ? nullptr : &value;
    }
  }
  return nullptr;
}

std::string text_at(const json& object, const char* name) {
  const json* value = member(object, name);
  return value != nullptr && value->is_string() ? value->get<std::string>() : std::string{};
}

json value_at(const json& object, const char* name, json otherwise) {
  const json* value = member(object, name);
  return value != nullptr && value->type() == otherwise.type() ? *value : std::move(otherwise);
}

std::string text_of(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

json shown_service(const json& asked, const std::string& id, const std::string& name) {
  json out{{"ID", id}, {"Service", name}, {"Tags", value_at(asked, "Tags", json::array())}};
  const std::string address = text_at(asked, "Address");
  const json* port = member(asked, "Port");
  const json number = port != nullptr && port->is_number_integer() ? *port : json(0);
  if (!address.empty()) {
    const json both{{"Address", address}, {"Port", number}};
    out["TaggedAddresses"] = {{"lan_ipv4", both}, {"wan_ipv4", both}};
  }
  out["Meta"] = value_at(asked, "Meta", json::object());
  out["Port"] = number;
  out["Address"] = address;
  out["Weights"] = {{"Passing", 1}, {"Warning", 1}};
  out["EnableTagOverride"] = false;
  return out;
}

}  // namespace

Agent::Agent(std::string node, std::uint64_t seed)
    : node_(std::move(node)), id_([seed] {
        Random random{seed};
        return uuid(random);
      }()) {}

bool Agent::has_path(const std::string& path) {
  return path.starts_with("/v1/agent/") || path.starts_with("/v1/status/");
}

http::Response Agent::handle(const http::Request& request, const Url& url, Instant now) {
  const std::string& path = url.path;
  if (path == "/v1/agent/service/register") return register_service(request, now);
  if (const auto id = after(path, "/v1/agent/service/deregister/")) {
    deregister(*id);
    return answer(200);
  }
  if (const auto id = after(path, "/v1/agent/check/pass/")) return pass(*id, now);
  if (path == "/v1/agent/self") return answer(200, self());
  if (path == "/v1/agent/services") return answer(200, services());
  if (path == "/v1/agent/checks") return answer(200, checks(now));
  return answer(200, text_of(kServer));  // /v1/status/leader
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
  if (!asked.is_object()) {
    return answer(400, "Request decode failed: " + go_json_fault(request.body));
  }
  const std::string name = text_at(asked, "Name");
  if (name.empty()) return answer(400, "Missing service name");
  std::string id = text_at(asked, "ID");
  if (id.empty()) id = name;

  json definitions = value_at(asked, "Checks", json::array());
  if (const json* one = member(asked, "Check")) definitions.push_back(*one);
  std::vector<Check> checks;
  for (const json& definition : definitions) {
    Check check;
    const std::string number =
        definitions.size() > 1 ? ":" + std::to_string(checks.size() + 1) : "";
    check.id = text_at(definition, "CheckID");
    if (check.id.empty()) check.id = "service:" + id + number;
    check.name = text_at(definition, "Name");
    if (check.name.empty()) check.name = "Service '" + name + "' check";
    check.status = text_at(definition, "Status");
    if (check.status.empty()) check.status = "critical";
    check.notes = text_at(definition, "Notes");
    check.service = id;
    if (const std::string text = text_at(definition, "TTL"); !text.empty()) {
      const auto ttl = parse_go_duration(text);
      if (!ttl) return answer(400, "Request decode failed: " + ttl.error().message);
      check.ttl = *ttl;
    }
    if (check.ttl <= Duration{}) {
      return answer(400, "Invalid check: TTL must be > 0 for TTL checks");
    }
    check.expires = now + check.ttl;
    checks.push_back(std::move(check));
  }
  services_[id] = shown_service(asked, id, name);
  // A check that was there keeps its status: it is told again, not anew.
  std::erase_if(checks_, [&](const auto& known) {
    return known.second.service == id &&
           std::none_of(checks.begin(), checks.end(),
                        [&](const Check& check) { return check.id == known.first; });
  });
  for (Check& check : checks) {
    if (const auto known = checks_.find(check.id); known != checks_.end()) {
      check.status = known->second.status;
      check.expires = known->second.expires;
    }
    checks_[check.id] = check;
  }
  return answer(200);
}

void Agent::deregister(const std::string& id) {
  services_.erase(id);
  std::erase_if(checks_, [&](const auto& check) { return check.second.service == id; });
}

http::Response Agent::pass(const std::string& id, Instant now) {
  const auto it = checks_.find(id);
  if (it == checks_.end()) {
    return answer(500, "CheckID " + go_quoted(id) + " does not have associated TTL");
  }
  it->second.status = "passing";
  it->second.expires = now + it->second.ttl;
  return answer(200);
}

std::string Agent::self() const {
  return text_of({{"Config",
                   {{"Datacenter", "dc1"},
                    {"NodeName", node_},
                    {"NodeID", id_},
                    {"Revision", ""},
                    {"Server", true},
                    {"Version", "1.8.7"}}},
                  {"Meta", {{"lictor-dev", "a model in memory: nothing is kept"}}}});
}

std::string Agent::services() const { return text_of(json(services_)); }

std::string Agent::checks(Instant now) const {
  json out = json::object();
  for (const auto& [id, check] : checks_) {
    const bool expired = check.expires <= now;
    const json& service = services_.at(check.service);
    out[id] = {{"Node", node_},
               {"CheckID", id},
               {"Name", check.name},
               {"Status", expired ? "critical" : check.status},
               {"Notes", check.notes},
               {"Output", expired ? "TTL expired" : ""},
               {"ServiceID", check.service},
               {"ServiceName", service["Service"]},
               {"ServiceTags", service["Tags"]},
               {"Type", "ttl"},
               {"Definition", json::object()},
               {"CreateIndex", 0},
               {"ModifyIndex", 0}};
  }
  return text_of(out);
}

}  // namespace lictor::dev
