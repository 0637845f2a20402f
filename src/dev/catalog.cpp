#include "dev/catalog.h"

#include <algorithm>
#include <utility>

#include "base/base64.h"
#include "dev/answer.h"

namespace lictor::dev {
namespace {

using json = nlohmann::ordered_json;

constexpr std::size_t kMaxEvents = 256;

// Go's decoder takes names in any case, and some libraries write them small.
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

// An object; otherwise what is wrong with it.
Result<json> object_in(const std::string& body) {
  json value = json::parse(body, nullptr, false);
  if (value.is_object()) return value;
  return fail(ErrorCode::kInvalid, "Request decode failed: " + go_json_fault(body));
}

bool is_status(const std::string& status) {
  return status == "passing" || status == "warning" || status == "critical";
}

std::string check_type(const json& asked) {
  for (const auto& [field, type] :
       {std::pair{"TTL", "ttl"}, std::pair{"HTTP", "http"}, std::pair{"TCP", "tcp"},
        std::pair{"GRPC", "grpc"}, std::pair{"Args", "script"}, std::pair{"AliasService", "alias"},
        std::pair{"AliasNode", "alias"}}) {
    if (member(asked, field) != nullptr) return type;
  }
  return {};
}

// What the agent refuses in the definition of a check; empty: nothing.
std::string read_definition(const json& asked, std::string& type, Duration& ttl) {
  type = check_type(asked);
  if (const std::string text = text_at(asked, "TTL"); !text.empty()) {
    const auto read = parse_go_duration(text);
    if (!read) return "Request decode failed: " + read.error().message;
    ttl = *read;
  }
  if ((type.empty() || type == "ttl") && ttl <= Duration{}) {
    return "Invalid check: TTL must be > 0 for TTL checks";
  }
  if ((type == "http" || type == "tcp" || type == "script") && text_at(asked, "Interval").empty()) {
    return "Invalid check: Interval must be > 0 for Script, HTTP, or TCP checks";
  }
  return {};
}

http::Response truth() { return answer(200, "true"); }

}  // namespace

Catalog::Catalog(std::string node, std::uint64_t seed) : node_(std::move(node)), random_(seed) {
  Node& self = nodes_[node_];
  self.id = uuid(random_);
  self.name = node_;
  self.address = "127.0.0.1";
  for (const char* name : {"lan", "lan_ipv4", "wan", "wan_ipv4"}) {
    self.tagged_addresses[name] = self.address;
  }
  self.meta = {{"consul-network-segment", ""}};
  self.create_index = self.modify_index = 1;
  Service consul;
  consul.id = consul.name = "consul";
  consul.port = 8300;
  consul.meta = {{"version", "1.8.7"}};
  consul.create_index = consul.modify_index = 1;
  self.services.emplace(consul.id, std::move(consul));
  Check serf;
  serf.id = "serfHealth";
  serf.name = "Serf Health Status";
  serf.status = "passing";
  serf.output = serf.synced_output = "Agent alive and reachable";
  serf.create_index = serf.modify_index = 1;
  self.checks.emplace(serf.id, std::move(serf));
  service_indexes_["consul"] = 1;
}

bool Catalog::has_path(const std::string& path) {
  return path.starts_with("/v1/agent/") || path.starts_with("/v1/status/") ||
         path.starts_with("/v1/catalog/") || path.starts_with("/v1/health/") ||
         path.starts_with("/v1/event/") || path.starts_with("/v1/operator/");
}

std::optional<http::Response> Catalog::handle(State& state, const Call& call) {
  const std::string& path = call.url.path;
  if (call.request.method == "PUT") {
    if (path.starts_with("/v1/agent/")) return agent_write(state, call);
    if (const auto name = after(path, "/v1/event/fire/")) return fire(state, call, *name);
    const auto body = object_in(call.request.body);
    if (!body) return answer(400, body.error().message);
    return path == "/v1/catalog/register" ? catalog_register(state, *body)
                                          : catalog_deregister(state, *body);
  }
  if (auto answered = agent_read(call.url)) return answered;
  const auto found = path.starts_with("/v1/health/") ? read_health(call.url) : read(call.url);
  if (!found) return answer(404);
  if (found->body.is_string()) return answer(400, found->body.get<std::string>());
  const auto least = parse_go_uint(call.url.get("index"));
  if (!call.wait_over && least && *least != 0 && found->index <= *least) return std::nullopt;
  return read_answer(200, found->index,
                     found->body.dump(-1, ' ', false, json::error_handler_t::replace));
}

void Catalog::advance(State& state, Instant now) {
  for (auto& [id, check] : own().checks) {
    if (check.expires > now) continue;
    check.expires = Instant::max();
    Check expired = check;
    expired.status = "critical";
    expired.output = "TTL expired";
    if (!check.output.empty()) {
      expired.output += " (last output before timeout follows): " + check.output;
    }
    put(state, own(), std::move(expired));
  }
}

Instant Catalog::next_deadline() const {
  Instant next = Instant::max();
  for (const auto& [id, check] : own().checks) next = std::min(next, check.expires);
  return next;
}

std::string Catalog::session_fault(const std::string& node,
                                   const std::vector<std::string>& checks) const {
  const auto it = nodes_.find(node);
  if (it == nodes_.end()) return "Missing node registration";
  for (const std::string& id : checks) {
    const auto check = it->second.checks.find(id);
    if (check == it->second.checks.end()) return "Missing check '" + id + "' registration";
    if (check->second.status == "critical") return "Check '" + id + "' is in critical state";
  }
  return {};
}

http::Response Catalog::agent_write(State& state, const Call& call) {
  const std::string& path = call.url.path;
  if (path == "/v1/agent/service/register") return register_service(state, call);
  if (path == "/v1/agent/check/register") return register_check(state, call);
  if (path == "/v1/agent/maintenance" || path.starts_with("/v1/agent/service/maintenance/")) {
    return maintain(state, call);
  }
  if (const auto id = after(path, "/v1/agent/service/deregister/")) {
    const auto it = own().services.find(*id);
    if (it != own().services.end() && it->second.of_agent) remove_service(state, own(), *id);
    return answer(200);
  }
  if (const auto id = after(path, "/v1/agent/check/deregister/")) {
    const auto it = own().checks.find(*id);
    if (it != own().checks.end() && it->second.of_agent) remove_check(state, own(), *id);
    return answer(200);
  }
  for (const auto& [verb, status] : {std::pair{"pass", "passing"}, std::pair{"warn", "warning"},
                                     std::pair{"fail", "critical"}}) {
    const auto id = after(path, std::string{"/v1/agent/check/"} + verb + '/');
    if (id) return update_check(state, call, *id, status, call.url.get("note"));
  }
  const auto body = object_in(call.request.body);
  if (!body) return answer(400, body.error().message);
  const std::string status = text_at(*body, "Status");
  if (!is_status(status)) return answer(400, "Invalid check status: '" + status + "'");
  return update_check(state, call, path.substr(std::string_view{"/v1/agent/check/update/"}.size()),
                      status, text_at(*body, "Output"));
}

http::Response Catalog::register_service(State& state, const Call& call) {
  const auto asked = object_in(call.request.body);
  if (!asked) return answer(400, asked.error().message);
  Service service;
  service.of_agent = true;
  service.name = text_at(*asked, "Name");
  if (service.name.empty()) return answer(400, "Missing service name");
  service.id = text_at(*asked, "ID");
  if (service.id.empty()) service.id = service.name;
  service.address = text_at(*asked, "Address");
  if (const json* port = member(*asked, "Port"); port != nullptr && port->is_number_integer()) {
    service.port = port->get<std::int64_t>();
  }
  service.tags = value_at(*asked, "Tags", json::array());
  service.meta = value_at(*asked, "Meta", json::object());
  service.enable_tag_override = value_at(*asked, "EnableTagOverride", false);
  const json weights = value_at(*asked, "Weights", json::object());
  for (const char* name : {"Passing", "Warning"}) {
    if (const json* weight = member(weights, name)) service.weights[name] = *weight;
  }
  service.tagged_addresses = value_at(*asked, "TaggedAddresses", json::object());
  if (!service.address.empty()) {
    const json both{{"Address", service.address}, {"Port", service.port}};
    for (const char* name : {"lan_ipv4", "wan_ipv4"}) {
      if (!service.tagged_addresses.contains(name)) service.tagged_addresses[name] = both;
    }
  }
  if (service.tagged_addresses.empty()) service.tagged_addresses = nullptr;

  json wanted = value_at(*asked, "Checks", json::array());
  if (const json* check = member(*asked, "Check")) wanted.insert(wanted.begin(), *check);
  std::vector<Check> checks;
  for (const json& definition : wanted) {
    if (!definition.is_object()) return answer(400, "Request decode failed: expected a check");
    Check& check = checks.emplace_back();
    const std::string fault = read_definition(definition, check.type, check.ttl);
    if (!fault.empty()) return answer(400, fault);
    check.id = text_at(definition, "CheckID");
    if (check.id.empty()) {
      check.id = "service:" + service.id;
      if (wanted.size() > 1) check.id += ':' + std::to_string(checks.size());
    }
    check.name = text_at(definition, "Name");
    if (check.name.empty()) check.name = "Service '" + service.name + "' check";
    check.notes = text_at(definition, "Notes");
    if (const std::string status = text_at(definition, "Status"); !status.empty()) {
      if (!is_status(status))
        return answer(400, "Status for checks must 'passing', 'warning', 'critical'");
      check.status = status;
    }
    check.service_id = service.id;
    check.of_agent = true;
  }
  if (call.url.has("replace-existing-checks")) forget_checks(state, service.id, checks);
  put(state, own(), std::move(service));
  for (Check& check : checks) {
    if (check.ttl > Duration{}) check.expires = call.now + check.ttl;
    put_again(state, std::move(check));
  }
  return answer(200);
}

http::Response Catalog::register_check(State& state, const Call& call) {
  const auto asked = object_in(call.request.body);
  if (!asked) return answer(400, asked.error().message);
  Check check;
  check.of_agent = true;
  check.name = text_at(*asked, "Name");
  if (check.name.empty()) return answer(400, "Missing check name");
  if (const std::string status = text_at(*asked, "Status"); !status.empty()) {
    if (!is_status(status)) return answer(400, "Bad check status");
    check.status = status;
  }
  const std::string fault = read_definition(*asked, check.type, check.ttl);
  if (!fault.empty()) return answer(400, fault);
  check.id = text_at(*asked, "ID");
  if (check.id.empty()) check.id = text_at(*asked, "CheckID");
  if (check.id.empty()) check.id = check.name;
  check.notes = text_at(*asked, "Notes");
  check.service_id = text_at(*asked, "ServiceID");
  if (!check.service_id.empty() && own().services.count(check.service_id) == 0) {
    return answer(500, "ServiceID " + go_quoted(check.service_id) + " does not exist");
  }
  if (check.ttl > Duration{}) check.expires = call.now + check.ttl;
  put_again(state, std::move(check));
  return answer(200);
}

http::Response Catalog::update_check(State& state, const Call& call, const std::string& id,
                                     const std::string& status, const std::string& output) {
  const auto it = own().checks.find(id);
  if (it == own().checks.end() || it->second.ttl <= Duration{}) {
    return answer(500, "CheckID " + go_quoted(id) + " does not have associated TTL");
  }
  Check check = it->second;
  check.status = status;
  check.output = output;
  check.expires = call.now + check.ttl;
  put(state, own(), std::move(check));
  return answer(200);
}

http::Response Catalog::catalog_register(State& state, const json& body) {
  const std::string name = text_at(body, "Node");
  const std::string address = text_at(body, "Address");
  if (name.empty()) return answer(500, "Must provide node");
  const bool is_new = nodes_.count(name) == 0;
  if (address.empty()) return answer(500, "Must provide address if SkipNodeUpdate is not set");
  json checks = value_at(body, "Checks", json::array());
  if (const json* check = member(body, "Check")) checks.push_back(*check);
  const json* service = member(body, "Service");

  const std::uint64_t index = state.next_index();
  Node& node = nodes_[name];
  const json tagged = value_at(body, "TaggedAddresses", json::object());
  const json meta = value_at(body, "NodeMeta", json::object());
  if (is_new || (name != node_ && (node.address != address))) {
    node.name = name;
    node.id = text_at(body, "ID");
    node.address = address;
    if (!tagged.empty()) node.tagged_addresses = tagged;
    if (!meta.empty()) node.meta = meta;
    if (is_new) node.create_index = index;
    node.modify_index = nodes_index_ = index;
  }
  if (service != nullptr && service->is_object()) {
    Service made;
    made.name = text_at(*service, "Service");
    made.id = text_at(*service, "ID");
    if (made.name.empty()) return answer(500, "Must provide service name with ID");
    if (made.id.empty()) made.id = made.name;
    made.address = text_at(*service, "Address");
    made.tags = value_at(*service, "Tags", json::array());
    if (const json* own = member(*service, "Meta")) made.meta = *own;
    if (const json* port = member(*service, "Port"); port != nullptr && port->is_number_integer()) {
      made.port = port->get<std::int64_t>();
    }
    put(state, node, std::move(made));
  }
  for (const json& asked : checks) {
    if (!asked.is_object()) continue;
    Check check;
    check.name = text_at(asked, "Name");
    check.id = text_at(asked, "CheckID");
    if (check.id.empty()) check.id = check.name;
    check.notes = text_at(asked, "Notes");
    check.output = text_at(asked, "Output");
    if (const std::string status = text_at(asked, "Status"); !status.empty()) check.status = status;
    check.service_id = text_at(asked, "ServiceID");
    if (!check.service_id.empty() && node.services.count(check.service_id) == 0) {
      return answer(
          500, "failed inserting check: Missing service registration on node " + go_quoted(name));
    }
    tag(node, check);
    put(state, node, std::move(check));
  }
  return truth();
}

http::Response Catalog::catalog_deregister(State& state, const json& body) {
  const std::string name = text_at(body, "Node");
  if (name.empty()) return answer(500, "Must provide node");
  const auto it = nodes_.find(name);
  if (it == nodes_.end()) return truth();
  Node& node = it->second;
  const std::string service = text_at(body, "ServiceID");
  const std::string check = text_at(body, "CheckID");
  if (!service.empty()) {
    if (node.services.count(service) != 0) remove_service(state, node, service);
  } else if (!check.empty()) {
    if (node.checks.count(check) != 0) remove_check(state, node, check);
  } else if (name != node_) {  // which its agent would bring back
    while (!node.services.empty()) {
      remove_service(state, node, std::string{node.services.begin()->first});
    }
    nodes_index_ = checks_index_ = state.next_index();
    nodes_.erase(it);
  }
  return truth();
}

http::Response Catalog::fire(State& state, const Call& call, const std::string& name) {
  if (name.empty()) return answer(400, "Missing name");
  events_index_ = state.next_index();
  json event{{"ID", uuid(random_)}, {"Name", name}, {"Payload", nullptr}};
  if (!call.request.body.empty()) event["Payload"] = base64_encode(call.request.body);
  for (const auto& [field, query] :
       {std::pair{"NodeFilter", "node"}, std::pair{"ServiceFilter", "service"},
        std::pair{"TagFilter", "tag"}}) {
    event[field] = call.url.get(query);
  }
  event["Version"] = 1;
  event["LTime"] = 0;
  const std::string text = event.dump(-1, ' ', false, json::error_handler_t::replace);
  event["LTime"] = ++events_time_;
  events_.push_back(std::move(event));
  if (events_.size() > kMaxEvents) events_.erase(events_.begin());
  return answer(200, text);
}

void Catalog::put(State& state, Node& node, Service service) {
  const auto old = node.services.find(service.id);
  const auto same = [&](const Service& a) {
    return a.name == service.name && a.address == service.address && a.port == service.port &&
           a.tags == service.tags && a.meta == service.meta && a.weights == service.weights &&
           a.enable_tag_override == service.enable_tag_override;
  };
  if (old != node.services.end() && same(old->second)) return;
  const std::uint64_t index = state.next_index();
  service.create_index = old == node.services.end() ? index : old->second.create_index;
  service.modify_index = services_index_ = service_indexes_[service.name] = index;
  node.services.insert_or_assign(service.id, std::move(service));
}

void Catalog::tag(const Node& node, Check& check) {
  const auto service = node.services.find(check.service_id);
  if (service != node.services.end()) check.service_tags = service->second.tags;
}

void Catalog::put_again(State& state, Check check) {
  tag(own(), check);
  if (const auto old = own().checks.find(check.id); old != own().checks.end()) {
    check.status = old->second.status;
    check.output = old->second.output;
  }
  put(state, own(), std::move(check));
}

void Catalog::forget_checks(State& state, const std::string& service,
                            const std::vector<Check>& kept) {
  std::vector<std::string> gone;
  for (const auto& [id, check] : own().checks) {
    const bool is_kept =
        std::any_of(kept.begin(), kept.end(), [&](const Check& other) { return other.id == id; });
    if (check.service_id == service && check.of_agent && !is_kept) gone.push_back(id);
  }
  for (const std::string& id : gone) remove_check(state, own(), id);
}

void Catalog::put(State& state, Node& node, Check check) {
  const auto old = node.checks.find(check.id);
  const bool same = old != node.checks.end() && old->second.status == check.status &&
                    old->second.name == check.name && old->second.notes == check.notes &&
                    old->second.service_id == check.service_id &&
                    old->second.service_tags == check.service_tags;
  if (same && (check.of_agent || old->second.output == check.output)) {
    old->second.output = check.output;
    old->second.expires = check.expires;
    old->second.ttl = check.ttl;
    return;
  }
  check.synced_output = check.output;
  const std::uint64_t index = state.next_index();
  check.create_index = old == node.checks.end() ? index : old->second.create_index;
  check.modify_index = index;
  touch(node, check, index);
  node.checks.insert_or_assign(check.id, std::move(check));
}

void Catalog::touch(const Node& node, const Check& check, std::uint64_t index) {
  checks_index_ = index;
  for (const auto& [id, service] : node.services) {
    if (check.service_id.empty() || check.service_id == id) service_indexes_[service.name] = index;
  }
}

void Catalog::remove_service(State& state, Node& node, const std::string& id) {
  const std::uint64_t index = state.next_index();
  const std::string name = node.services.at(id).name;
  std::erase_if(node.checks, [&](const auto& check) { return check.second.service_id == id; });
  node.services.erase(id);
  services_index_ = checks_index_ = service_indexes_[name] = index;
  for (const auto& [other, there] : nodes_) {
    for (const auto& [key, service] : there.services) {
      if (service.name == name) return;
    }
  }
  service_indexes_.erase(name);
  extinction_index_ = index;
}

void Catalog::remove_check(State& state, Node& node, const std::string& id) {
  touch(node, node.checks.at(id), state.next_index());
  node.checks.erase(id);
}

}  // namespace lictor::dev
