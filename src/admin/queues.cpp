// The queues and their members: who leads, how much waits, what is wrong.

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "admin/activity.h"
#include "admin/findings.h"
#include "admin/routes.h"
#include "base/clock.h"
#include "base/time_text.h"
#include "client/task_json.h"
#include "wire/json_text.h"
#include "wire/layout.h"

namespace lictor::admin {
namespace {

using client::text_or_null;
using nlohmann::json;
using nlohmann::ordered_json;

// Whether the members that are read here have the types that they should have.
bool is_status(const json& status) {
  for (const auto& [name, value] : status.items()) {
    const bool fits = name.ends_with("_ms")    ? value.is_number_integer()
                      : name == "cannot_start" ? value.is_string()
                      : name == "log_error"    ? value.is_string()
                      : name == "running"      ? value.is_number_unsigned()
                      : name == "states"       ? value.is_object()
                      : name == "schedules"    ? value.is_object()
                      : name == "types"        ? value.is_array()
                      : name == "activity"     ? value.is_object()
                                               : true;
    if (!fits) return false;
  }
  const auto counts = [&](const char* name) {
    const json all = status.value(name, json::object());
    return std::all_of(all.begin(), all.end(),
                       [](const json& count) { return count.is_number_unsigned(); });
  };
  return counts("states") && counts("schedules");
}

ordered_json peer_json(const Peer& peer) {
  return {{"node", peer.node},
          {"host", text_or_null(peer.host)},
          {"pid", text_or_null(peer.pid)},
          {"version", text_or_null(peer.version)},
          {"since", text_or_null(peer.since)},
          {"seen", text_or_null(peer.seen)},
          {"config", text_or_null(peer.config)},
          {"admin", peer.admin},
          {"leads", peer.leads},
          {"answers", peer.answers ? ordered_json(*peer.answers) : ordered_json{}},
          {"doubt", text_or_null(peer.doubt)}};
}

class Queues {
 public:
  Queues(Backend& backend, const StoredQueues& queues, const Activity& activity)
      : backend_(backend), queues_(queues), activity_(activity) {}

  // `relayed`: another member asks for what the leader alone knows.
  Response list(const Request& request) const {
    const bool relayed = request.parameter("relayed").has_value();
    const auto status = backend_.status();
    if (!status) return error_response(503, "the daemon's loop does not answer");
    const std::string trouble = relayed ? std::string{} : backend_.consul_trouble();
    ordered_json told = ordered_json::array();
    const auto only = request.parameter("queue");
    for (const StoredQueue& queue : queues_) {
      if (only && *only != queue.queue.name) continue;
      const auto own =
          std::find_if(status->queues.begin(), status->queues.end(),
                       [&](const auto& each) { return each.name == queue.queue.name; });
      if (own == status->queues.end()) continue;
      told.push_back(relayed ? of_leader(*own) : whole(queue, *own, trouble));
    }
    return json_response(200, {{"node", status->node},
                               {"version", status->version},
                               {"at", format_rfc3339(wall_now())},
                               {"stopping", status->stopping},
                               {"queues", std::move(told)}});
  }

  Response members(const Request& request) const {
    std::optional<Response> refused;
    const StoredQueue* queue = find_queue(queues_, request, refused);
    if (queue == nullptr) return *refused;
    const auto fleet = backend_.fleet(queue->queue.name);
    if (!fleet) return response_of(fleet.error());
    ordered_json told = ordered_json::array();
    for (const Peer& peer : fleet->members) told.push_back(peer_json(peer));
    return json_response(200, {{"queue", queue->queue.name},
                               {"leader", text_or_null(fleet->leader)},
                               {"leads_since", text_or_null(fleet->leads_since)},
                               {"members", std::move(told)}});
  }

 private:
  // What this daemon knows as the leader.
  ordered_json of_leader(const QueueStatus& own) const {
    if (own.role == QueueStatus::Role::kFollowing) return nullptr;
    ordered_json told = queue_json(own);
    told["types"] = own.types;
    told["activity"] = activity_.json(own.name);
    return told;
  }

  ordered_json whole(const StoredQueue& queue, const QueueStatus& own,
                     const std::string& trouble) const {
    const std::string& name = queue.queue.name;
    Findings findings;
    if (!trouble.empty()) {
      findings.error("consul", trouble,
                     "no task is claimed or finished until Consul answers again; look at Consul's "
                     "agent on this host");
    }
    ordered_json leading = of_leader(own);
    ordered_json told{{"name", name},
                      {"leads_here", !leading.is_null()},
                      {"types", own.types},
                      {"leader", nullptr},
                      {"leads_since", nullptr},
                      {"members", ordered_json::array()},
                      {"fleet_error", text_or_null(trouble)}};
    PauseState paused;
    if (trouble.empty()) {
      const auto fleet = backend_.fleet(name);
      if (!fleet) {
        told["fleet_error"] = fleet.error().message;
        findings.error("members_unknown", "the members cannot be read: " + fleet.error().message,
                       "give the daemon's token the rights of consul/policy-daemon.hcl");
      } else {
        findings.of_fleet(*fleet);
        told["leader"] = text_or_null(fleet->leader);
        told["leads_since"] = text_or_null(fleet->leads_since);
        for (const Peer& peer : fleet->members) told["members"].push_back(peer_json(peer));
        if (leading.is_null() && !fleet->leader.empty()) leading = ask_leader(name, told);
      }
      if (const auto read = client::pause_state(queue.queue)) paused = *read;
    }
    told["paused"] = client::pause_json(paused);
    findings.of_queue(leading, told["leader"].is_string() ? told["leader"].get<std::string>() : "",
                      paused);
    // Only the leader runs tasks, and it may have another configuration.
    if (leading.contains("types")) told["types"] = leading["types"];
    told["status"] = std::move(leading);
    told["findings"] = findings.take();
    return told;
  }

  ordered_json ask_leader(const std::string& name, ordered_json& told) const {
    const auto answer =
        backend_.ask_member(name, {}, "/v1/queues?relayed=1&queue=" + wire::query_value(name));
    if (!answer) {
      told["leader_silent"] = answer.error().message;
      return nullptr;
    }
    // Whoever may write members' entries could have named another program's address.
    const auto parsed = wire::parse_json(*answer);
    const json queues = parsed && parsed->is_object() ? parsed->value("queues", json{}) : json{};
    if (queues.is_array() && !queues.empty() && queues[0].is_object() && is_status(queues[0])) {
      return queues[0];
    }
    told["leader_silent"] = "the leader gave an answer that this version does not know";
    return nullptr;
  }

  Backend& backend_;
  const StoredQueues& queues_;
  const Activity& activity_;
};

}  // namespace

void add_queue_routes(Router& router, Backend& backend, const StoredQueues& queues,
                      const Activity& activity) {
  const auto routes = std::make_shared<Queues>(backend, queues, activity);
  router.add("GET", "/v1/queues",
             [routes](const Call& call) { return routes->list(call.request); });
  router.add("GET", "/v1/members",
             [routes](const Call& call) { return routes->members(call.request); });
}

}  // namespace lictor::admin
