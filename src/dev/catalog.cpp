#include "dev/catalog.h"

#include <utility>

#include <nlohmann/json.hpp>

#include "dev/answer.h"

namespace lictor::dev {
namespace {

using nlohmann::json;

constexpr const char* kAddress = "127.0.0.1";
constexpr const char* kServer = "127.0.0.1:8300";

http::Response json_answer(const json& value) {
  return answer(200, value.dump(-1, ' ', false, json::error_handler_t::replace));
}

template <class Record>
json service_json(const Record& service) {
  return {{"ID", service.id},
          {"Service", service.name},
          {"Tags", json::parse(service.tags, nullptr, false)},
          {"Meta", json::parse(service.meta, nullptr, false)},
          {"Port", service.port},
          {"Address", service.address}};
}

template <class Record>
json check_json(const std::string& node, const Record& service) {
  return {{"Node", node},
          {"CheckID", service.check_id},
          {"Name", service.check_name},
          {"Status", service.status},
          {"Output", service.output},
          {"ServiceID", service.id},
          {"ServiceName", service.name},
          {"ServiceTags", json::parse(service.tags, nullptr, false)}};
}

json serf_check(const std::string& node) {
  return {{"Node", node},
          {"CheckID", "serfHealth"},
          {"Name", "Serf Health Status"},
          {"Status", "passing"},
          {"Output", "Agent alive and reachable"},
          {"ServiceID", ""},
          {"ServiceName", ""},
          {"ServiceTags", json::array()}};
}

json node_json(const std::string& node) {
  return {{"Node", node}, {"Address", kAddress}, {"Datacenter", "dc1"}};
}

std::string text_at(const json& object, const char* name) {
  const auto it = object.find(name);
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string{};
}

// The rest of `path` after `prefix`, if it begins so.
std::optional<std::string> after(const std::string& path, std::string_view prefix) {
  if (!path.starts_with(prefix)) return std::nullopt;
  return path.substr(prefix.size());
}

}  // namespace

std::optional<http::Response> Catalog::handle(const http::Request& request, const std::string& path,
                                              std::uint64_t index) {
  if (path.starts_with("/v1/agent/")) return agent(request, path);
  const bool known = path.starts_with("/v1/status/") || path.starts_with("/v1/catalog/") ||
                     path.starts_with("/v1/health/");
  if (!known) return std::nullopt;
  if (request.method != "GET") return method_not_allowed(request);
  http::Response response = read(request, path);
  if (response.status == 200 && !path.starts_with("/v1/status/")) {
    response.consul_index = index;
    response.known_leader = true;
  }
  return response;
}

http::Response Catalog::agent(const http::Request& request, const std::string& path) {
  if (request.method == "PUT") {
    if (path == "/v1/agent/service/register") return register_service(request.body);
    if (const auto id = after(path, "/v1/agent/service/deregister/")) {
      if (services_.erase(*id) == 0) return answer(404, "Unknown service " + go_quoted(*id));
      return answer(200);
    }
    for (const auto& [verb, status] : {std::pair{"pass", "passing"}, std::pair{"warn", "warning"},
                                       std::pair{"fail", "critical"}}) {
      const auto id = after(path, std::string{"/v1/agent/check/"} + verb + '/');
      if (id) return set_check(*id, status, {});
    }
    if (const auto id = after(path, "/v1/agent/check/update/")) {
      const json body = json::parse(request.body, nullptr, false);
      if (!body.is_object()) return answer(400, "Request decode failed: EOF");
      return set_check(*id, text_at(body, "Status"), text_at(body, "Output"));
    }
    return answer(404);
  }
  if (request.method != "GET") return method_not_allowed(request);
  json found = json::object();
  if (path == "/v1/agent/self") {
    return json_answer(
        {{"Config",
          {{"Datacenter", "dc1"}, {"NodeName", node_}, {"Server", true}, {"Version", "1.8.7"}}},
         {"Member", {{"Name", node_}, {"Addr", kAddress}, {"Status", 1}}}});
  }
  if (path == "/v1/agent/services") {
    for (const auto& [id, service] : services_) found[id] = service_json(service);
    return json_answer(found);
  }
  if (path == "/v1/agent/checks") {
    for (const auto& [id, service] : services_) {
      if (!service.check_id.empty()) found[service.check_id] = check_json(node_, service);
    }
    return json_answer(found);
  }
  return answer(404);
}

http::Response Catalog::register_service(const std::string& body) {
  const json asked = json::parse(body, nullptr, false);
  if (!asked.is_object()) return answer(400, "Request decode failed: unexpected EOF");
  Service service;
  service.name = text_at(asked, "Name");
  if (service.name.empty()) return answer(400, "Missing service name");
  service.id = text_at(asked, "ID");
  if (service.id.empty()) service.id = service.name;
  service.address = text_at(asked, "Address");
  if (asked.contains("Port") && asked["Port"].is_number_integer()) {
    service.port = asked["Port"].get<std::int64_t>();
  }
  if (asked.contains("Tags") && asked["Tags"].is_array()) service.tags = asked["Tags"].dump();
  if (asked.contains("Meta") && asked["Meta"].is_object()) service.meta = asked["Meta"].dump();
  if (asked.contains("Check") && asked["Check"].is_object()) {
    const json& check = asked["Check"];
    service.check_id = text_at(check, "CheckID");
    if (service.check_id.empty()) service.check_id = "service:" + service.id;
    service.check_name = text_at(check, "Name");
    service.status = text_at(check, "Status");
    if (service.status.empty()) service.status = "critical";
  }
  services_.insert_or_assign(service.id, std::move(service));
  return answer(200);
}

http::Response Catalog::set_check(const std::string& id, std::string status, std::string output) {
  if (status != "passing" && status != "warning" && status != "critical") {
    return answer(400, "Invalid check status: '" + status + "'");
  }
  for (auto& [name, service] : services_) {
    if (service.check_id != id) continue;
    service.status = std::move(status);
    service.output = std::move(output);
    return answer(200);
  }
  return answer(404, "Unknown check " + go_quoted(id));
}

http::Response Catalog::read(const http::Request& request, const std::string& path) const {
  if (path == "/v1/status/leader") return json_answer(kServer);
  if (path == "/v1/status/peers") return json_answer(json::array({kServer}));
  if (path == "/v1/catalog/datacenters") return json_answer(json::array({"dc1"}));
  if (path == "/v1/catalog/nodes") return json_answer(json::array({node_json(node_)}));
  json found =
      path == "/v1/catalog/services" ? json::object({{"consul", json::array()}}) : json::array();
  if (path == "/v1/catalog/services") {
    for (const auto& [id, service] : services_) {
      json& tags = found.emplace(service.name, json::array()).first.value();
      const json own = json::parse(service.tags, nullptr, false);
      tags.insert(tags.end(), own.begin(), own.end());
    }
    return json_answer(found);
  }
  if (const auto name = after(path, "/v1/catalog/service/")) {
    for (const auto& [id, service] : services_) {
      if (service.name != *name) continue;
      json entry = node_json(node_);
      const json fields = service_json(service);
      for (const auto& [field, value] : fields.items()) {
        entry[field == "Service" ? "ServiceName" : "Service" + field] = value;
      }
      found.push_back(std::move(entry));
    }
    return json_answer(found);
  }
  if (const auto name = after(path, "/v1/health/service/")) {
    const auto url = parse_url(request.target);
    for (const auto& [id, service] : services_) {
      const bool passes = service.check_id.empty() || service.status == "passing";
      if (service.name != *name || (url && url->has("passing") && !passes)) continue;
      json checks = json::array({serf_check(node_)});
      if (!service.check_id.empty()) checks.push_back(check_json(node_, service));
      found.push_back({{"Node", node_json(node_)},
                       {"Service", service_json(service)},
                       {"Checks", std::move(checks)}});
    }
    return json_answer(found);
  }
  if (const auto name = after(path, "/v1/health/node/")) {
    if (*name != node_) return json_answer(found);
    found.push_back(serf_check(node_));
    for (const auto& [id, service] : services_) {
      if (!service.check_id.empty()) found.push_back(check_json(node_, service));
    }
    return json_answer(found);
  }
  return answer(404);
}

}  // namespace lictor::dev
