// The counts of the queue, from the admin APIs of its leaders.

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/try.h"
#include "cli/command_table.h"
#include "cli/json_output.h"
#include "cluster/admin_client.h"
#include "cluster/leader_status.h"

namespace lictor::cli {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

// The queue's status from one of its leaders. Errors: kFailed, leadership has moved since Consul
// was read: a follower has no figures.
Result<json> status_of(const Client& client, cluster::LeaderClient& leader) {
  LICTOR_TRY(const auto status, leader.get("/v1/status"));
  for (const json& each : json_member(status, "queues")) {
    if (text_of(each, "name") != client.queue || text_of(each, "role") == "following") continue;
    return each;
  }
  return fail(ErrorCode::kFailed,
              leader.node + " no longer leads queue \"" + client.queue + "\"; run this again");
}

// Asks all leaders at once. A leader that does not answer is named, since the sums lack its tasks.
Result<int> stats(const Client& client) {
  cluster::LeaderClients at_work{client.stored(), client.admin_token};
  std::vector<cluster::LeaderClient> leaders = at_work.all();
  std::vector<Result<json>> answers(leaders.size());
  cluster::ask_each(leaders.size(),
                    [&](std::size_t i) { answers[i] = status_of(client, leaders[i]); });
  ordered_json sum;
  std::vector<std::string> nodes, silent;
  for (std::size_t i = 0; i < leaders.size(); ++i) {
    if (!answers[i]) {
      silent.push_back(answers[i].error().message);
      continue;
    }
    nodes.push_back(leaders[i].node);
    cluster::add_status(sum, ordered_json(*answers[i]));
  }
  const json queue = sum;
  if (nodes.empty()) return tl::unexpected(std::move(answers.front().error()));
  const cluster::Partitions free = cluster::free_partitions(at_work.locks());
  if (client.json) {
    ordered_json out{{"queue", client.queue},
                     {"leader", nodes.size() == 1 ? ordered_json(nodes.front()) : ordered_json{}},
                     {"leaders", nodes}};
    for (const auto& [name, value] : queue.items()) {
      if (name != "name") out[name] = value;
    }
    out["free"] = free;
    out["not_counted"] = silent;
    client.console.print(json_document(out));
    return kDone;
  }
  Table table{{"WHAT", "VALUE"}};
  table.add_row(
      {{nodes.size() == 1 ? "leader" : "leaders"}, {fmt::format("{}", fmt::join(nodes, ", "))}});
  table.add_row({{"paused"}, {json_member(queue, "paused") == true ? "yes" : "no"}});
  table.add_row({{"lease left"}, {duration_text(queue, "lease_left_ms")}});
  table.add_row({{"first due task waits for"}, {duration_text(queue, "oldest_due_ms")}});
  table.add_row({{"jobs running"}, {text_of(queue, "running")}});
  table.add_row({{"claimed, not started"}, {text_of(queue, "claimed_ahead")}});
  table.add_row({{"ended, not yet written"}, {text_of(queue, "unacked")}});
  for (const auto& [state, count] : json_member(queue, "states").items()) {
    table.add_row({{"tasks " + state}, {count.dump()}});
  }
  client.console.print(table.render(client.console.width()));
  for (const std::string& why : silent) client.console.note("not counted: " + why);
  if (!free.empty()) {
    client.console.note(fmt::format("not counted: nobody leads {}; see \"lictor leader\"",
                                    cluster::partitions_text(free)));
  }
  return kDone;
}

}  // namespace

void add_stats(Commands& to) {
  to.add("stats", "Show what a queue's leader counts: tasks by state, jobs, the lease",
         R"(Examples:
  lictor stats
  lictor stats --json | jq .states
)",
         stats);
}

}  // namespace lictor::cli
