#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/printable.h"
#include "base/time_text.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/json_output.h"
#include "cli/listing.h"
#include "client/follow.h"
#include "wire/json_text.h"
#include "wire/record.h"

namespace lictor::cli {
namespace {

bool expired(const TaskInfo& task, WallTime now) {
  const auto members = wire::split_object(task.record);
  for (const wire::Member& member : members.value_or(std::vector<wire::Member>{})) {
    if (member.name != "expireAt") continue;
    const auto at = wire::read_time(member.value_text, true);
    return at && *at <= now;
  }
  return false;
}

// What keeps a waiting task from being started, as far as Consul holds it.
std::vector<std::string> reasons_of(const Client& client, const TaskInfo& task) {
  std::vector<std::string> reasons;
  const WallTime now = wall_now();
  if (task.state >= TaskState::kDead || task.state == TaskState::kRunning) {
    return {"it is " + client::described(task)};
  }
  if (task.state == TaskState::kTooLarge) return {"it never runs: " + printable(task.error)};
  if (task.state == TaskState::kUnreadable) {
    reasons.push_back("it becomes a dead letter as soon as somebody leads: " +
                      printable(task.error));
  }
  if (task.state == TaskState::kScheduled) {
    const char* what =
        task.attempt == 0 ? "it is not due before " : "it waits out its backoff, until ";
    reasons.push_back(what + format_rfc3339(*task.due) + " (" + relative_time(*task.due, now) +
                      ")");
  }
  if (expired(task, now)) reasons.emplace_back("its expireAt has passed: it becomes a dead letter");
  if (const auto paused = client.api.paused(); paused && paused->paused) {
    reasons.push_back("the queue is " + pause_text(*paused));
  }
  const auto lock = client.store.get(client.layout.leader_key);
  if (lock && (!*lock || (*lock)->session.empty())) {
    reasons.emplace_back("nobody leads the queue; \"lictor leader\" says more");
  }
  if (reasons.empty()) reasons.emplace_back("it may start as soon as it is its turn");
  return reasons;
}

}  // namespace

Result<int> why(const Client& client, const std::string& id) {
  const auto found = client.api.show(id);
  if (!found) return tl::unexpected(found.error());
  const TaskInfo& task = found->front();
  const std::vector<std::string> reasons = reasons_of(client, task);
  if (client.json) {
    client.console.print(json_document({{"queue", client.queue},
                                        {"id", id},
                                        {"state", client::state_name(task.state)},
                                        {"reasons", reasons}}));
    return kDone;
  }
  for (const std::string& reason : reasons) {
    client.console.print("task " + printable(task.id) + ": " + reason + '\n');
  }
  return kDone;
}

}  // namespace lictor::cli
