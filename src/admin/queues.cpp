// The queues and their members: who leads, how much waits, what is wrong.

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "admin/activity.h"
#include "admin/routes.h"
#include "base/clock.h"
#include "base/time_text.h"
#include "client/task_json.h"
#include "wire/json_text.h"
#include "wire/layout.h"

namespace lictor::admin {
namespace {

using namespace std::chrono_literals;
using client::text_or_null;
using nlohmann::json;
using nlohmann::ordered_json;

constexpr Duration kLongDue = 60s;
constexpr Duration kShortLease = 2s;

// What is wrong with a queue, and the way out.
class Findings {
 public:
  void error(std::string what, std::string remedy) { add("error", what, remedy); }
  void warning(std::string what, std::string remedy) { add("warning", what, remedy); }
  ordered_json take() { return std::move(list_); }

 private:
  void add(const char* severity, std::string& what, std::string& remedy) {
    list_.push_back({{"severity", severity}, {"what", std::move(what)}, {"remedy", remedy}});
  }
  ordered_json list_ = ordered_json::array();
};

std::string counted_tasks(std::uint64_t count) {
  return std::to_string(count) + (count == 1 ? " task" : " tasks");
}

void find_in_fleet(const Fleet& fleet, Findings& findings) {
  if (fleet.leader.empty()) {
    findings.error("nobody leads this queue, so no task starts",
                   fleet.members.empty()
                       ? "start a daemon that serves the queue: systemctl start lictor"
                       : "a daemon takes the lead within seconds, after a crash when the session "
                         "TTL and the lock-delay are over; if none does, read its log");
  }
  std::set<std::string> configs;
  for (const Peer& peer : fleet.members) {
    if (!peer.config.empty()) configs.insert(peer.config);
    if (peer.doubt.empty()) continue;
    if (peer.leads) {
      findings.error(peer.node + " leads, but " + peer.doubt,
                     "if it is dead, another daemon takes the lead when its session has ended and "
                     "the lock-delay is over");
    } else {
      findings.warning(peer.node + ": " + peer.doubt, "look at that host: systemctl status lictor");
    }
  }
  if (configs.size() > 1) {
    findings.warning("the daemons have different configurations of their queues and executors",
                     "install the same file on every host, then: systemctl reload lictor");
  }
}

void find_in_queue(const json& status, const PauseState& paused, Findings& findings) {
  if (paused.paused) {
    findings.warning("paused" + (paused.by.empty() ? "" : " by " + paused.by) +
                         (paused.reason.empty() ? "" : ": " + paused.reason),
                     "resume it when no tasks need to be held back any more");
  }
  if (!status.is_object()) return;
  const std::string cannot_start = status.value("cannot_start", "");
  if (!cannot_start.empty()) {
    findings.error("the leader cannot start jobs: " + cannot_start,
                   "mend it on that host, or hand the lead to another: step down");
  }
  const json states = status.value("states", json::object());
  const auto count = [&](const char* name) { return states.value(name, std::uint64_t{0}); };
  if (const auto tasks = count("no executor"); tasks != 0) {
    findings.error(counted_tasks(tasks) + " of a type that the leader has no executor for",
                   "add an executor for the type, or \"*\", to the configuration and reload it");
  }
  if (const auto tasks = count("too large"); tasks != 0) {
    findings.warning(counted_tasks(tasks) + " too large to be claimed",
                     "write the data elsewhere and its place into the task; then cancel these");
  }
  if (const auto tasks = count("unnameable"); tasks != 0) {
    findings.warning(counted_tasks(tasks) + " under keys that are not valid UTF-8",
                     "delete the keys and write the tasks under others");
  }
  const Duration oldest = std::chrono::milliseconds{status.value("oldest_due_ms", std::int64_t{0})};
  if (!paused.paused && cannot_start.empty() && oldest > kLongDue) {
    findings.warning("the first task that may start has been due for " + format_duration(oldest),
                     "jobs take longer than tasks come: raise concurrency, or add capacity");
  }
  const std::int64_t lease_ms = status.value("lease_left_ms", std::int64_t{-1});
  if (lease_ms >= 0 && std::chrono::milliseconds{lease_ms} < kShortLease) {
    findings.warning(
        "the leader's lease ends in " + std::to_string(lease_ms) + " ms unless Consul answers",
        "Consul is slow or cut off from the leader; see its log");
  }
}

// Whether the members that are read here have the types that they should have.
bool is_status(const json& status) {
  for (const auto& [name, value] : status.items()) {
    const bool fits = name.ends_with("_ms")    ? value.is_number_integer()
                      : name == "cannot_start" ? value.is_string()
                      : name == "states"       ? value.is_object()
                      : name == "activity"     ? value.is_object()
                                               : true;
    if (!fits) return false;
  }
  const json states = status.value("states", json::object());
  return std::all_of(states.begin(), states.end(),
                     [](const json& count) { return count.is_number_unsigned(); });
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
    told["activity"] = activity_.json(own.name);
    return told;
  }

  ordered_json whole(const StoredQueue& queue, const QueueStatus& own,
                     const std::string& trouble) const {
    const std::string& name = queue.queue.name;
    Findings findings;
    if (!trouble.empty()) {
      findings.error(trouble, "no task can be claimed or finished until Consul answers again");
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
        findings.error("who takes part is not known: " + fleet.error().message,
                       "see that the daemon's token may read the queue's keys");
      } else {
        find_in_fleet(*fleet, findings);
        told["leader"] = text_or_null(fleet->leader);
        told["leads_since"] = text_or_null(fleet->leads_since);
        for (const Peer& peer : fleet->members) told["members"].push_back(peer_json(peer));
        if (leading.is_null() && !fleet->leader.empty()) leading = ask_leader(name, told);
      }
      if (const auto read = client::pause_state(queue.queue)) paused = *read;
    }
    told["paused"] = client::pause_json(paused);
    find_in_queue(leading, paused, findings);
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
