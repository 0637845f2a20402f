// The queues and their members: the leaders, the number of waiting tasks, the findings.
//
//   page, "top", "check" --GET /v1/queues--> any daemon
//                                              |-- its loop: status of its own partitions
//                                              |-- Consul: locks, members, pause, schedules
//                                              +-- each other leader: GET /v1/queues?relayed=1
//                                                  (its own figures alone, without Consul)
//
// So a client asks one daemon and gets the whole queue, wherever it is led. "relayed" ends the
// chain: while leadership changes, two daemons may each take the other for the leader, and they
// would ask each other without end.
//
// Each source may fail by itself. If Consul is away, the answer has this daemon's knowledge, and
// says so ("consul", "fleet_error"); a leader that gives no answer is named ("leader_silent").
// Findings come from cluster/diagnosis.h, so "check" and the page say the same.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "admin/activity.h"
#include "admin/routes.h"
#include "admin/shared_listing.h"
#include "base/clock.h"
#include "base/text.h"
#include "base/time_text.h"
#include "base/try.h"
#include "client/task_info.h"
#include "cluster/leader_status.h"
#include "wire/layout.h"

namespace lictor::admin {
namespace {

using client::text_or_null;
using cluster::Finding;
using cluster::Fleet;
using cluster::LeaderStatus;
using cluster::Member;
using nlohmann::ordered_json;

// With several partitions nobody is *the* leader: "leader" is null then, and "leaders" has all.
void add_leaders(const client::Locks& locks, ordered_json& out) {
  out["leader"] = nullptr;
  out["leads_since"] = nullptr;
  out["partitions"] = locks.count();
  out["leaders"] = ordered_json::array();
  for (const client::LockView& lock : locks) {
    const ordered_json node = text_or_null(lock.name());
    const ordered_json since = node.is_null() ? node : text_or_null(lock.text("since"));
    out["leaders"].push_back(
        {{"partition", lock.partition.number}, {"node", node}, {"since", since}});
    if (locks.count() > 1) continue;
    out["leader"] = node;
    out["leads_since"] = since;
  }
}

// `types`: the types that the leaders run.
cluster::TypeFault type_fault_of(const ordered_json& types) {
  return [&types](const std::string& type) -> std::string {
    const auto runs = [&](const char* name) {
      return std::find(types.begin(), types.end(), name) != types.end();
    };
    return !types.is_array() || runs("*") || runs(type.c_str()) ? "" : "which nobody runs";
  };
}

// diagnosis.h has no such finding: only a daemon knows how its own requests fare.
Finding consul_finding(const ConsulTrouble& trouble) {
  return {"consul", Finding::Severity::kError, trouble.what,
          "no task is claimed or finished until Consul answers again; look at Consul's agent on "
          "this host"};
}

Finding pause_finding(const PauseState& paused) {
  return {"paused", Finding::Severity::kWarning,
          "paused" + (paused.by.empty() ? "" : " by " + paused.by) +
              (paused.reason.empty() ? "" : ": " + paused.reason),
          "resume it when no tasks need to be held back any more"};
}

class Queues {
 public:
  Queues(Backend& backend, const StoredQueues& queues, const Activity& activity,
         Listings<ScheduleListing> schedules)
      : backend_(backend), queues_(queues), activity_(activity), schedules_(std::move(schedules)) {}

  // `relayed`: another member asks for the figures that only the leader has.
  Response list(const Call& call) const {
    const Request& request = call.request;
    const bool relayed = request.parameter("relayed").has_value();
    const auto status = backend_.status();
    if (!status) return error_response(503, kNoAnswer);
    const ConsulTrouble trouble = relayed ? ConsulTrouble{} : backend_.consul_trouble();
    ordered_json out = ordered_json::array();
    const auto only = request.parameter("queue");
    for (const StoredQueue& queue : queues_) {
      if (only && *only != queue.queue.name) continue;
      const auto own =
          std::find_if(status->queues.begin(), status->queues.end(),
                       [&](const auto& each) { return each.name == queue.queue.name; });
      if (own == status->queues.end()) continue;
      out.push_back(relayed ? of_leader(*own) : whole(call, queue, status->node, *own, trouble));
    }
    return json_response(200, {{"node", status->node},
                               {"version", status->version},
                               {"at", format_rfc3339(wall_now())},
                               {"stopping", status->stopping},
                               {"consul", consul_json(trouble)},
                               {"queues", std::move(out)}});
  }

  Result<std::optional<Response>> members(const Request& request) const {
    LICTOR_TRY(const StoredQueue* queue, find_queue(queues_, request));
    LICTOR_TRY(const Fleet fleet, backend_.fleet(queue->queue.name));
    ordered_json out{{"queue", queue->queue.name}};
    add_leaders(fleet.locks, out);
    out["members"] = ordered_json::array();
    for (const Member& member : fleet.members) {
      out["members"].push_back(cluster::member_json(member, queue->queue.name));
    }
    return json_response(200, out);
  }

 private:
  // The figures that only a leader has; null for a follower.
  ordered_json of_leader(const QueueStatus& own) const {
    if (own.role == QueueStatus::Role::kFollowing) return nullptr;
    ordered_json out = queue_json(own);
    out["types"] = own.types;
    out["activity"] = activity_.json(own.name);
    out["by_type"] = activity_.by_type(own.name);
    return out;
  }

  // Builds the whole answer for one queue. Asks Consul and the leaders only while Consul answers:
  // otherwise each request would wait for its time-out, and the page for all of them.
  ordered_json whole(const Call& call, const StoredQueue& queue, const std::string& node,
                     const QueueStatus& own, const ConsulTrouble& trouble) const {
    const std::string& name = queue.queue.name;
    std::vector<LeaderStatus> leaders;
    cluster::Findings findings;
    const auto find = [&](cluster::Findings more) {
      findings.insert(findings.end(), more.begin(), more.end());
    };
    PauseState paused;
    if (ordered_json leading = of_leader(own); !leading.is_null()) {
      leaders.push_back({node, std::move(leading)});
    }
    const auto number = own.partitions != 0 ? ordered_json(own.partitions) : ordered_json{};
    ordered_json out{{"name", name},
                     {"leads_here", !leaders.empty()},
                     {"types", own.types},
                     {"leader", nullptr},
                     {"leads_since", nullptr},
                     {"partitions", number},
                     {"leaders", ordered_json::array()},
                     {"members", ordered_json::array()},
                     {"fleet_error", text_or_null(trouble.what)}};
    if (trouble.any()) {
      find({consul_finding(trouble)});
    } else {
      const auto known = backend_.fleet(name);
      if (!known) {
        out["fleet_error"] = known.error().message;
        find({{"members_unknown", Finding::Severity::kError,
               "the members cannot be read: " + known.error().message,
               "give the daemon's token the rights of "
               "/usr/share/lictor/consul/policy-daemon.hcl"}});
      } else {
        const Fleet& fleet = *known;
        find(cluster::diagnose(fleet, name));
        add_leaders(fleet.locks, out);
        for (const Member& member : fleet.members) {
          out["members"].push_back(cluster::member_json(member, name));
        }
        const bool complete = !fleet.partitioned() && !leaders.empty();
        const bool led = !cluster::partitions_by_leader(fleet.locks).empty();
        if (!complete && led) ask_leaders(name, leaders, out);
      }
      if (const auto read = client::pause_state(queue.queue)) paused = *read;
    }
    out["paused"] = client::pause_json(paused);
    if (paused.paused) find({pause_finding(paused)});
    find(cluster::diagnose(leaders, paused.paused));
    ordered_json status = leaders.size() == 1 ? leaders.front().status : cluster::merged(leaders);
    // Only leaders run tasks, and they may have another configuration.
    if (status.contains("types")) out["types"] = status["types"];
    if (!trouble.any() && !status.is_null()) {
      if (const auto listed = schedules_.at(name)->get(call)) {
        find(cluster::diagnose((*listed)->schedules, type_fault_of(out["types"]), wall_now()));
      }
    }
    out["status"] = std::move(status);
    out["findings"] = cluster::findings_json(findings, needed_name(queues_, name));
    return out;
  }

  // Adds the answers of the other leaders. "leader_silent" names those without one, and why.
  void ask_leaders(const std::string& name, std::vector<LeaderStatus>& leaders,
                   ordered_json& out) const {
    std::string silent;
    for (const Backend::Answer& answer :
         backend_.ask_leaders(name, "/v1/queues?relayed=1&queue=" + wire::query_value(name))) {
      ordered_json status = answer.body ? cluster::read_status(*answer.body) : ordered_json{};
      if (!status.is_null()) {
        leaders.push_back({answer.node, std::move(status)});
        continue;
      }
      silent += (silent.empty() ? "" : "; ") +
                (!answer.body ? answer.body.error().message
                              : answer.node + " gave an answer that this version does not know");
    }
    if (!silent.empty()) out["leader_silent"] = silent;
  }

  Backend& backend_;
  const StoredQueues& queues_;
  const Activity& activity_;
  const Listings<ScheduleListing> schedules_;
};

}  // namespace

Result<const StoredQueue*> find_queue(const StoredQueues& queues, const Request& request) {
  const std::string name = request.parameter("queue").value_or("default");
  std::string known;
  for (const StoredQueue& each : queues) {
    if (each.queue.name == name) return &each;
    known += (known.empty() ? "" : ", ") + each.queue.name;
  }
  return fail(ErrorCode::kNotFound, "this daemon serves no queue \"" + excerpt(name) +
                                        "\"; ?queue= takes one of: " + known);
}

std::string needed_name(const StoredQueues& queues, const std::string& queue) {
  return queues.size() > 1 || queue != "default" ? queue : "";
}

void add_queue_routes(Router& router, Backend& backend, const StoredQueues& queues,
                      const Activity& activity) {
  const auto schedules = make_listings(queues, read_schedules);  // read once for all clients
  const auto routes = std::make_shared<Queues>(backend, queues, activity, schedules);
  router.add("GET", "/v1/queues", [routes](const Call& call) { return routes->list(call); });
  router.add("GET", "/v1/members",
             [routes](const Call& call) { return routes->members(call.request); });
  add_schedule_routes(router, queues, schedules);
}

}  // namespace lictor::admin
