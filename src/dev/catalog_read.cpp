// What the catalog and the health endpoints tell.

#include <algorithm>
#include <utility>

#include "dev/answer.h"
#include "dev/catalog.h"

namespace lictor::dev {
namespace {

using json = nlohmann::ordered_json;

bool has_tags(const json& tags, const Url& url) {
  const auto wanted = url.query.find("tag");
  return wanted == url.query.end() ||
         std::all_of(wanted->second.begin(), wanted->second.end(), [&](const std::string& tag) {
           return std::find(tags.begin(), tags.end(), tag) != tags.end();
         });
}

}  // namespace

json Catalog::node_json(const Node& node) const {
  return {{"ID", node.id},
          {"Node", node.name},
          {"Address", node.address},
          {"Datacenter", "dc1"},
          {"TaggedAddresses", node.tagged_addresses},
          {"Meta", node.meta},
          {"CreateIndex", node.create_index},
          {"ModifyIndex", node.modify_index}};
}

json Catalog::service_json(const Service& service, bool of_catalog) const {
  json out{{"ID", service.id}, {"Service", service.name}, {"Tags", service.tags}};
  if (!service.tagged_addresses.is_null()) out["TaggedAddresses"] = service.tagged_addresses;
  out["Meta"] = of_catalog && service.meta.empty() ? json() : service.meta;
  out["Port"] = service.port;
  out["Address"] = service.address;
  out["Weights"] = service.weights;
  out["EnableTagOverride"] = service.enable_tag_override;
  if (!of_catalog) return out;
  out["Proxy"] = {{"MeshGateway", json::object()}, {"Expose", json::object()}};
  out["Connect"] = json::object();
  out["CreateIndex"] = service.create_index;
  out["ModifyIndex"] = service.modify_index;
  return out;
}

json Catalog::check_json(const Node& node, const Check& check, bool of_catalog) const {
  const auto service = node.services.find(check.service_id);
  const bool of_service = service != node.services.end();
  return {{"Node", node.name},
          {"CheckID", check.id},
          {"Name", check.name},
          {"Status", check.status},
          {"Notes", check.notes},
          {"Output", of_catalog ? check.synced_output : check.output},
          {"ServiceID", check.service_id},
          {"ServiceName", of_service ? service->second.name : ""},
          {"ServiceTags", of_service ? check.service_tags : json::array()},
          {"Type", check.type},
          {"Definition", json::object()},
          {"CreateIndex", of_catalog ? check.create_index : 0},
          {"ModifyIndex", of_catalog ? check.modify_index : 0}};
}

json Catalog::service_node_json(const Node& node, const Service& service) const {
  json out{{"ID", node.id},
           {"Node", node.name},
           {"Address", node.address},
           {"Datacenter", "dc1"},
           {"TaggedAddresses", node.tagged_addresses},
           {"NodeMeta", node.meta},
           {"ServiceKind", ""},
           {"ServiceID", service.id},
           {"ServiceName", service.name},
           {"ServiceTags", service.tags},
           {"ServiceAddress", service.address}};
  if (!service.tagged_addresses.is_null()) out["ServiceTaggedAddresses"] = service.tagged_addresses;
  out["ServiceWeights"] = service.weights;
  out["ServiceMeta"] = service.meta.is_null() ? json::object() : service.meta;
  out["ServicePort"] = service.port;
  out["ServiceEnableTagOverride"] = service.enable_tag_override;
  out["ServiceProxy"] = {{"MeshGateway", json::object()}, {"Expose", json::object()}};
  out["ServiceConnect"] = json::object();
  out["CreateIndex"] = service.create_index;
  out["ModifyIndex"] = service.modify_index;
  return out;
}

std::uint64_t Catalog::service_index(const std::string& name) const {
  const auto it = service_indexes_.find(name);
  if (it != service_indexes_.end()) return it->second;
  return extinction_index_ != 0 ? extinction_index_ : std::max(nodes_index_, services_index_);
}

// What is refused is told as text.
std::optional<Catalog::Found> Catalog::read(const Url& url) const {
  const std::string& path = url.path;
  json list = json::array();
  if (path == "/v1/event/list") {
    const std::string name = url.get("name");
    for (const json& event : events_) {
      if (name.empty() || event["Name"] == name) list.push_back(event);
    }
    return Found{events_index_, std::move(list)};
  }
  if (path == "/v1/catalog/nodes") {
    for (const auto& [name, node] : nodes_) list.push_back(node_json(node));
    return Found{nodes_index_, std::move(list)};
  }
  if (path == "/v1/catalog/services") {
    std::map<std::string, json> tags;
    for (const auto& [name, node] : nodes_) {
      for (const auto& [id, service] : node.services) {
        json& all = tags.try_emplace(service.name, json::array()).first->second;
        for (const json& tag : service.tags) {
          if (std::find(all.begin(), all.end(), tag) == all.end()) all.push_back(tag);
        }
      }
    }
    return Found{services_index_, json(tags)};
  }
  if (const auto wanted = after(path, "/v1/catalog/service/")) {
    if (wanted->empty()) return Found{0, "Missing service name"};
    for (const auto& [name, node] : nodes_) {
      for (const auto& [id, service] : node.services) {
        if (service.name != *wanted || !has_tags(service.tags, url)) continue;
        list.push_back(service_node_json(node, service));
      }
    }
    return Found{service_index(*wanted), std::move(list)};
  }
  const bool as_list = path.starts_with("/v1/catalog/node-services/");
  const auto name = after(path, as_list ? "/v1/catalog/node-services/" : "/v1/catalog/node/");
  if (!name) return std::nullopt;
  if (name->empty()) return Found{0, "Missing node name"};
  const auto it = nodes_.find(*name);
  if (it == nodes_.end()) {
    return Found{1, as_list ? json{{"Node", nullptr}, {"Services", nullptr}} : json()};
  }
  json services = as_list ? json::array() : json::object();
  for (const auto& [id, service] : it->second.services) {
    if (as_list) {
      services.push_back(service_json(service, true));
    } else {
      services[id] = service_json(service, true);
    }
  }
  return Found{std::max(nodes_index_, services_index_),
               {{"Node", node_json(it->second)}, {"Services", std::move(services)}}};
}

std::optional<Catalog::Found> Catalog::read_health(const Url& url) const {
  const std::string& path = url.path;
  json list = json::array();
  if (const auto wanted = after(path, "/v1/health/service/")) {
    if (wanted->empty()) return Found{0, "Missing service name"};
    const std::string passing = url.get("passing");
    if (!passing.empty() && !parse_go_bool(passing)) return Found{0, "Invalid value for ?passing"};
    const bool only_passing = url.has("passing") && (passing.empty() || *parse_go_bool(passing));
    for (const auto& [name, node] : nodes_) {
      for (const auto& [id, service] : node.services) {
        if (service.name != *wanted || !has_tags(service.tags, url)) continue;
        json checks = json::array();
        bool passes = true;
        for (const std::string& of : {std::string{}, id}) {  // the node's, then its own
          for (const auto& [check_id, check] : node.checks) {
            if (check.service_id != of) continue;
            checks.push_back(check_json(node, check, true));
            passes = passes && check.status == "passing";
          }
        }
        if (only_passing && !passes) continue;
        list.push_back({{"Node", node_json(node)},
                        {"Service", service_json(service, true)},
                        {"Checks", std::move(checks)}});
      }
    }
    return Found{service_index(*wanted), std::move(list)};
  }
  struct Kind {
    std::string_view prefix;
    const char* fault;
  };
  for (const auto& [prefix, fault] : {Kind{"/v1/health/node/", "Missing node name"},
                                      Kind{"/v1/health/checks/", "Missing service name"},
                                      Kind{"/v1/health/state/", "Missing check state"}}) {
    const auto wanted = after(path, prefix);
    if (!wanted) continue;
    if (wanted->empty()) return Found{0, fault};
    for (const auto& [name, node] : nodes_) {
      for (const auto& [id, check] : node.checks) {
        json told = check_json(node, check, true);
        const bool is_wanted = prefix.ends_with("node/") ? name == *wanted
                               : prefix.ends_with("checks/")
                                   ? told["ServiceName"] == *wanted
                                   : *wanted == "any" || check.status == *wanted;
        if (is_wanted) list.push_back(std::move(told));
      }
    }
    return Found{checks_index_, std::move(list)};
  }
  return std::nullopt;
}

}  // namespace lictor::dev
