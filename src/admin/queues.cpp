// The queues and their members: who leads, how much waits, what is wrong.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "admin/activity.h"
#include "admin/leaders.h"
#include "admin/routes.h"
#include "admin/shared_listing.h"
#include "base/clock.h"
#include "base/text.h"
#include "base/time_text.h"
#include "base/try.h"
#include "client/schedules.h"
#include "client/task_info.h"
#include "wire/layout.h"

namespace lictor::admin {
namespace {

using client::text_or_null;
using nlohmann::ordered_json;

ordered_json peer_json(const Peer& peer) {
  return {{"node", peer.node},
          {"host", text_or_null(peer.host)},
          {"pid", text_or_null(peer.pid)},
          {"version", text_or_null(peer.version)},
          {"since", text_or_null(peer.since)},
          {"seen", text_or_null(peer.seen)},
          {"config", text_or_null(peer.config)},
          {"admin", peer.admin},
          {"leads", peer.leads()},
          {"partitions", peer.partitions},
          {"draining", peer.draining},
          {"partitions_wanted", peer.wish},
          {"answers", peer.answers ? ordered_json(*peer.answers) : ordered_json{}},
          {"doubt", text_or_null(peer.doubt)}};
}

// The leader of an undivided queue; of a divided one nobody is *the* leader.
void add_leaders(const Fleet& fleet, ordered_json& told) {
  const Lead* leader = fleet.divided() ? nullptr : &fleet.leads.front();
  told["leader"] = leader != nullptr ? text_or_null(leader->node) : ordered_json{};
  told["leads_since"] = leader != nullptr ? text_or_null(leader->since) : ordered_json{};
  told["partitions"] = fleet.leads.size();
  told["leaders"] = ordered_json::array();
  for (const Lead& lead : fleet.leads) {
    told["leaders"].push_back({{"partition", told["leaders"].size()},
                               {"node", text_or_null(lead.node)},
                               {"since", text_or_null(lead.since)}});
  }
  told["moving"] = fleet.moving;
}

// What the findings need of schedules.
struct ScheduleNotes : ListingStamp {
  struct Row {
    std::string name, key, type;
    std::string fault;  // why it makes no tasks
    std::string note;   // a field without effect, a name that Consul refuses
  };
  std::vector<Row> rows;
};

Result<ScheduleNotes> read_notes(const client::Queue& queue) {
  LICTOR_TRY(const auto listed, client::Schedules(queue.store, queue.layout).list());
  ScheduleNotes notes;
  for (const client::StoredSchedule& stored : listed.schedules) {
    const std::string fault = stored.definition ? "" : stored.definition.error().message;
    std::string note = stored.odd.empty() ? client::name_note(stored.name) : stored.odd;
    notes.rows.push_back({stored.name, stored.key, stored.type, fault, std::move(note)});
  }
  return notes;
}

// `types`: those that the leaders run.
std::vector<ScheduleFault> faults_of(const ScheduleNotes& notes, const ordered_json& types) {
  const auto runs = [&](const char* type) {
    return std::find(types.begin(), types.end(), type) != types.end();
  };
  const bool runs_all = !types.is_array() || runs("*");
  using Kind = ScheduleFault::Kind;
  std::vector<ScheduleFault> faults;
  for (const ScheduleNotes::Row& row : notes.rows) {
    const auto add = [&](Kind kind, std::string what) {
      faults.push_back({kind, row.name, row.key, std::move(what)});
    };
    if (!row.fault.empty()) {
      add(Kind::kBad, "it makes no tasks: " + row.fault);
      continue;
    }
    if (!row.note.empty()) add(Kind::kOdd, row.note);
    if (runs_all || runs(row.type.c_str())) continue;
    add(Kind::kType, "its tasks have the type \"" + excerpt(row.type) + "\", which nobody runs");
  }
  return faults;
}

class Queues {
 public:
  Queues(Backend& backend, const StoredQueues& queues, const Activity& activity)
      : backend_(backend),
        queues_(queues),
        activity_(activity),
        notes_(make_listings(queues, read_notes)) {}

  // `relayed`: another member asks for what the leader alone knows.
  Response list(const Call& call) const {
    const Request& request = call.request;
    const bool relayed = request.parameter("relayed").has_value();
    const auto status = backend_.status();
    if (!status) return error_response(503, "the daemon's loop does not answer");
    const ConsulTrouble trouble = relayed ? ConsulTrouble{} : backend_.consul_trouble();
    ordered_json told = ordered_json::array();
    const auto only = request.parameter("queue");
    for (const StoredQueue& queue : queues_) {
      if (only && *only != queue.queue.name) continue;
      const auto own =
          std::find_if(status->queues.begin(), status->queues.end(),
                       [&](const auto& each) { return each.name == queue.queue.name; });
      if (own == status->queues.end()) continue;
      told.push_back(relayed ? of_leader(*own) : whole(call, queue, status->node, *own, trouble));
    }
    return json_response(200, {{"node", status->node},
                               {"version", status->version},
                               {"at", format_rfc3339(wall_now())},
                               {"stopping", status->stopping},
                               {"consul", consul_json(trouble)},
                               {"queues", std::move(told)}});
  }

  Result<std::optional<Response>> members(const Request& request) const {
    LICTOR_TRY(const StoredQueue* queue, find_queue(queues_, request));
    LICTOR_TRY(const Fleet fleet, backend_.fleet(queue->queue.name));
    ordered_json told{{"queue", queue->queue.name}};
    add_leaders(fleet, told);
    told["members"] = ordered_json::array();
    for (const Peer& peer : fleet.members) told["members"].push_back(peer_json(peer));
    return json_response(200, told);
  }

 private:
  // What this daemon knows as a leader.
  ordered_json of_leader(const QueueStatus& own) const {
    if (own.role == QueueStatus::Role::kFollowing) return nullptr;
    ordered_json told = queue_json(own);
    told["types"] = own.types;
    told["activity"] = activity_.json(own.name);
    told["by_type"] = activity_.by_type(own.name);
    return told;
  }

  ordered_json whole(const Call& call, const StoredQueue& queue, const std::string& node,
                     const QueueStatus& own, const ConsulTrouble& trouble) const {
    const std::string& name = queue.queue.name;
    QueueFacts facts{.consul_trouble = trouble};
    std::vector<LeaderStatus>& leaders = facts.leaders;
    if (ordered_json leading = of_leader(own); !leading.is_null()) {
      leaders.push_back({node, std::move(leading)});
    }
    const auto number = own.partitions != 0 ? ordered_json(own.partitions) : ordered_json{};
    ordered_json told{{"name", name},
                      {"leads_here", !leaders.empty()},
                      {"types", own.types},
                      {"leader", nullptr},
                      {"leads_since", nullptr},
                      {"partitions", number},
                      {"leaders", ordered_json::array()},
                      {"moving", ordered_json::array()},
                      {"members", ordered_json::array()},
                      {"fleet_error", text_or_null(trouble.what)}};
    if (!trouble.any()) {
      facts.fleet = backend_.fleet(name);
      if (!facts.fleet) {
        told["fleet_error"] = facts.fleet.error().message;
      } else {
        const Fleet& fleet = *facts.fleet;
        add_leaders(fleet, told);
        for (const Peer& peer : fleet.members) told["members"].push_back(peer_json(peer));
        const bool complete = !fleet.divided() && !leaders.empty();
        if (!complete && fleet.free().size() < fleet.leads.size()) ask_leaders(name, leaders, told);
      }
      if (const auto read = client::pause_state(queue.queue)) facts.paused = *read;
    }
    told["paused"] = client::pause_json(facts.paused);
    ordered_json status = leaders.size() == 1 ? leaders.front().status : merged(leaders);
    // Only leaders run tasks, and they may have another configuration.
    if (status.contains("types")) told["types"] = status["types"];
    if (!trouble.any() && !status.is_null()) {
      const auto notes = notes_.at(name)->get(call);
      if (notes) facts.schedules = faults_of(**notes, told["types"]);
    }
    told["status"] = std::move(status);
    told["findings"] = findings_of(facts);
    return told;
  }

  // Adds what the other leaders tell. "leader_silent" says which could not be asked, and why.
  void ask_leaders(const std::string& name, std::vector<LeaderStatus>& leaders,
                   ordered_json& told) const {
    std::string silent;
    for (const Backend::Answer& answer :
         backend_.ask_leaders(name, "/v1/queues?relayed=1&queue=" + wire::query_value(name))) {
      ordered_json status = answer.body ? read_status(*answer.body) : ordered_json{};
      if (!status.is_null()) {
        leaders.push_back({answer.node, std::move(status)});
        continue;
      }
      silent += (silent.empty() ? "" : "; ") +
                (!answer.body ? answer.body.error().message
                              : answer.node + " gave an answer that this version does not know");
    }
    if (!silent.empty()) told["leader_silent"] = silent;
  }

  Backend& backend_;
  const StoredQueues& queues_;
  const Activity& activity_;
  const Listings<ScheduleNotes> notes_;
};

}  // namespace

std::vector<std::uint32_t> Fleet::free() const {
  std::vector<std::uint32_t> free;
  for (std::uint32_t i = 0; i < leads.size(); ++i) {
    if (leads[i].known && leads[i].node.empty()) free.push_back(i);
  }
  return free;
}

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

void add_queue_routes(Router& router, Backend& backend, const StoredQueues& queues,
                      const Activity& activity) {
  const auto routes = std::make_shared<Queues>(backend, queues, activity);
  router.add("GET", "/v1/queues", [routes](const Call& call) { return routes->list(call); });
  router.add("GET", "/v1/members",
             [routes](const Call& call) { return routes->members(call.request); });
}

}  // namespace lictor::admin
