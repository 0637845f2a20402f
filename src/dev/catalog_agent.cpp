// What the agent tells of itself and of what was registered at it, and its maintenance mode.

#include <algorithm>
#include <utility>

#include "dev/answer.h"
#include "dev/catalog.h"

namespace lictor::dev {
namespace {

using json = nlohmann::ordered_json;

constexpr const char* kServer = "127.0.0.1:8300";

http::Response told(const json& body, int status = 200) {
  return answer(status, body.dump(-1, ' ', false, json::error_handler_t::replace));
}

constexpr const char* kMaintenance = "maintenance";

int status_of(const std::string& health) {
  if (health == "passing") return 200;
  return health == "warning" ? 429 : 503;
}

// The worse of the two.
std::string worse(const std::string& a, const std::string& b) {
  if (b == kMaintenance) return b;
  return status_of(a) == 503 || status_of(b) == 200 ? a : b;
}

}  // namespace

json Catalog::member_json(bool wan) const {
  json tags{{"acls", "0"},      {"bootstrap", "1"}, {"build", "1.8.7:"}, {"dc", "dc1"},
            {"ft_fs", "1"},     {"id", own().id},   {"port", "8300"},    {"raft_vsn", "3"},
            {"role", "consul"}, {"segment", ""},    {"vsn", "2"},        {"vsn_max", "3"},
            {"vsn_min", "2"}};
  return {{"Name", wan ? node_ + ".dc1" : node_},
          {"Addr", own().address},
          {"Port", wan ? 8302 : 8301},
          {"Tags", std::move(tags)},
          {"Status", 1},
          {"ProtocolMin", 1},
          {"ProtocolMax", 5},
          {"ProtocolCur", 2},
          {"DelegateMin", 2},
          {"DelegateMax", 5},
          {"DelegateCur", 4}};
}

http::Response Catalog::self() const {
  const auto own_checks = std::count_if(own().checks.begin(), own().checks.end(),
                                        [](const auto& check) { return check.second.of_agent; });
  const auto own_services =
      std::count_if(own().services.begin(), own().services.end(),
                    [](const auto& service) { return service.second.of_agent; });
  return told(
      {{"Config",
        {{"Datacenter", "dc1"},
         {"NodeName", node_},
         {"NodeID", own().id},
         {"Revision", ""},
         {"Server", true},
         {"Version", "1.8.7"}}},
       {"DebugConfig", json::object()},
       {"Member", member_json(false)},
       {"Stats",
        {{"agent",
          {{"checks", std::to_string(own_checks)}, {"services", std::to_string(own_services)}}},
         {"build", {{"prerelease", ""}, {"revision", ""}, {"version", "1.8.7"}}},
         {"consul",
          {{"acl", "disabled"},
           {"bootstrap", "true"},
           {"known_datacenters", "1"},
           {"leader", "true"},
           {"leader_addr", kServer},
           {"server", "true"}}},
         {"raft", {{"num_peers", "0"}, {"state", "Leader"}}}}},
       {"Meta", {{"lictor-dev", "a model in memory: nothing is kept"}}}});
}

json Catalog::agent_health_json(const Service& service) const {
  std::string health = "passing";
  json checks = json::array();
  for (const auto& [id, check] : own().checks) {
    if (!check.of_agent || (!check.service_id.empty() && check.service_id != service.id)) continue;
    health = worse(health, check.type == kMaintenance ? kMaintenance : check.status);
    json shown = check_json(own(), check, false);
    // As Consul's newer form of them has it.
    shown["ServiceTags"] = nullptr;
    shown["Type"] = "";
    shown["Definition"] = {
        {"Interval", "0s"}, {"Timeout", "0s"},        {"DeregisterCriticalServiceAfter", "0s"},
        {"HTTP", ""},       {"Header", nullptr},      {"Method", ""},
        {"Body", ""},       {"TLSSkipVerify", false}, {"TCP", ""}};
    checks.push_back(std::move(shown));
  }
  return {{"AggregatedStatus", health},
          {"Service", service_json(service, false)},
          {"Checks", std::move(checks)}};
}

http::Response Catalog::agent_health(const Url& url) const {
  const bool as_text = url.get("format") == "text";
  if (const auto id = after(url.path, "/v1/agent/health/service/id/")) {
    if (id->empty()) return answer(500, "Bad request: Missing serviceID");
    const auto it = own().services.find(*id);
    if (it == own().services.end() || !it->second.of_agent) {
      if (as_text) return told("ServiceId " + *id + " not found", 404);
      return told({{"AggregatedStatus", "critical"}, {"Service", nullptr}, {"Checks", nullptr}},
                  404);
    }
    const json found = agent_health_json(it->second);
    const std::string health = found["AggregatedStatus"];
    return as_text ? answer(status_of(health), health) : told(found, status_of(health));
  }
  const auto name = after(url.path, "/v1/agent/health/service/name/");
  if (name->empty()) return answer(500, "Bad request: Missing service Name");
  std::string health = "passing";
  json list = json::array();
  for (const auto& [id, service] : own().services) {
    if (service.name != *name || !service.of_agent) continue;
    list.push_back(agent_health_json(service));
    health = worse(health, list.back()["AggregatedStatus"]);
  }
  if (list.empty()) {
    return as_text ? answer(404, "ServiceName " + *name + " Not Found") : told(list, 404);
  }
  return as_text ? answer(status_of(health), health) : told(list, status_of(health));
}

std::optional<http::Response> Catalog::agent_read(const Url& url) const {
  const std::string& path = url.path;
  if (path == "/v1/status/leader") return told(kServer);
  if (path == "/v1/status/peers") return told(json::array({kServer}));
  if (path == "/v1/catalog/datacenters") return told(json::array({"dc1"}));
  if (path == "/v1/agent/members") return told(json::array({member_json(url.has("wan"))}));
  if (path == "/v1/agent/self") return self();
  if (path == "/v1/operator/raft/configuration") {
    return told({{"Servers", json::array({{{"ID", own().id},
                                           {"Node", node_},
                                           {"Address", kServer},
                                           {"Leader", true},
                                           {"ProtocolVersion", "3"},
                                           {"Voter", true}}})},
                 {"Index", 0}});
  }
  if (path.starts_with("/v1/agent/health/")) return agent_health(url);
  json found = json::object();
  if (path == "/v1/agent/services") {
    for (const auto& [id, service] : own().services) {
      if (service.of_agent) found[id] = service_json(service, false);
    }
    return told(found);
  }
  if (path == "/v1/agent/checks") {
    for (const auto& [id, check] : own().checks) {
      if (check.of_agent) found[id] = check_json(own(), check, false);
    }
    return told(found);
  }
  if (const auto id = after(path, "/v1/agent/service/")) {
    const auto it = own().services.find(*id);
    if (it != own().services.end() && it->second.of_agent) {
      return told(service_json(it->second, false));
    }
    return answer(404, "unknown service ID: " + *id);
  }
  return std::nullopt;
}

http::Response Catalog::maintain(State& state, const Call& call) {
  const auto service = after(call.url.path, "/v1/agent/service/maintenance/");
  if (service && service->empty()) return answer(400, "Missing service ID");
  if (!call.url.has("enable")) return answer(400, "Missing value for enable");
  const auto enable = parse_go_bool(call.url.get("enable"));
  if (!enable) return answer(400, "Invalid value for enable: " + go_quoted(call.url.get("enable")));
  if (service) {
    const auto it = own().services.find(*service);
    if (it == own().services.end() || !it->second.of_agent) {
      return answer(404, "No service registered with ID " + go_quoted(*service));
    }
  }
  Check check;
  check.id = service ? "_service_maintenance:" + *service : "_node_maintenance";
  const bool is_on = own().checks.count(check.id) != 0;
  if (is_on == *enable) return answer(200);
  if (is_on) {
    remove_check(state, own(), check.id);
    return answer(200);
  }
  check.name = service ? "Service Maintenance Mode" : "Node Maintenance Mode";
  check.type = kMaintenance;
  check.of_agent = true;
  check.service_id = service.value_or("");
  check.notes = call.url.get("reason");
  if (check.notes.empty()) {
    check.notes = std::string{"Maintenance mode is enabled for this "} +
                  (service ? "service" : "node") +
                  ", but no reason was provided. This is a default message.";
  }
  put_again(state, std::move(check));
  return answer(200);
}

}  // namespace lictor::dev
