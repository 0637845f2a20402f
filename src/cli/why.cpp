// Tells why a task does not run: the leader's reasons, else those that Consul alone shows.
//
//   show --found, live--> the leader of its partition --reasons--> printed
//     |        |                   |
//     |        |                   +-- does not know it, or cannot be asked --> reasons_of()
//     |        +-- dead, done --> reasons_of()
//     +-- not found --> tick_reasons(): the id may name a tick of a schedule
//
// The leader decides, so its reasons are exact. Consul shows less: a pause, a due time, a free
// lock. A note says so where the leader could not be asked. If the leader does not answer, the
// trouble with it comes first.

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/json_text.h"
#include "base/printable.h"
#include "base/time_text.h"
#include "cli/command_table.h"
#include "cli/json_output.h"
#include "cli/listing.h"
#include "client/retry.h"
#include "cluster/admin_client.h"
#include "cluster/succession.h"
#include "wire/record.h"

namespace lictor::cli {
namespace {

using nlohmann::json;

bool expired(const TaskInfo& task, WallTime now) {
  const auto members = split_object(task.record);
  for (const JsonMember& member : members.value_or(std::vector<JsonMember>{})) {
    if (member.name != "expireAt") continue;
    const auto at = wire::read_time(member.value_text);
    return at && *at <= now;
  }
  return false;
}

// This reason is listed before the others.
std::string orphan_text(const TaskInfo& task) {
  return fmt::format(
      "its owner{} died or lost leadership; the next leader runs it again and counts a lost owner "
      "({} so far), unless that daemon lives; after max_losses it becomes a dead letter",
      task.node.empty() ? "" : ", " + task.node + ",", task.lost);
}

std::vector<std::string> dead_text(const TaskInfo& task, WallTime now) {
  std::string text = "it is a dead letter";
  if (task.attempt != 0) text += " after " + counted(task.attempt, "attempt");
  if (task.since) text += ", since " + relative_time(*task.since, now);
  if (!task.node.empty()) text += ", by " + task.node;
  const std::string cause = task.error.empty() ? task.reason : task.error;
  if (!cause.empty()) text += ": " + cause;
  const bool expired = task.reason == "expired";
  const std::string retry =
      !client::retried_record(task.record, now, true)
          ? "its producer has to write it again"
          : fmt::format("\"lictor retry{} {}\" runs it again{}", expired ? " --drop-expiry" : "",
                        shell_argument(task.id), expired ? ", without its expireAt" : "");
  return {text, fmt::format("{1}; \"lictor dead purge {0}\" deletes it; \"lictor show {0}\" shows "
                            "its record and the end of its output",
                            shell_argument(task.id), retry)};
}

// Says why the task does not run, as far as Consul knows; never empty. A reason that holds for all
// tasks of its partition comes first.
std::vector<std::string> reasons_of(const Client& client, const TaskInfo& task) {
  std::vector<std::string> reasons;
  const WallTime now = wall_now();
  if (task.state == TaskState::kRunning) {
    return {"it is claimed, and runs or is about to: " + client::described(task)};
  }
  if (task.state == TaskState::kDead) return dead_text(task, now);
  if (task.state >= TaskState::kDone) return {"it is " + client::described(task)};
  if (task.state == TaskState::kTooLarge) return {"it never runs: " + task.error};
  if (task.state == TaskState::kUnreadable) {
    reasons.push_back("it becomes a dead letter once somebody leads: " + task.error);
  }
  if (task.state == TaskState::kScheduled) {
    reasons.push_back(fmt::format(
        "{} {} ({})", task.attempt == 0 ? "it is not due before" : "it waits for its backoff until",
        format_rfc3339(*task.due), relative_time(*task.due, now)));
  }
  if (expired(task, now)) reasons.emplace_back("its expireAt has passed: it becomes a dead letter");
  if (const auto paused = client.api.paused(); paused && paused->paused) {
    reasons.push_back("the queue is " + pause_text(*paused));
  }
  const auto locks = client::read_locks(client.store, client.layout);
  if (locks) {
    const std::uint32_t partition = locks->partition_of(task);
    const client::LockView& lock = (*locks)[partition];
    if (lock.known && lock.session.empty()) {
      reasons.insert(reasons.begin(),
                     cluster::nobody_leads(client.stored(), *locks, {partition}).message);
    }
  } else if (locks.error().code == ErrorCode::kInvalid) {
    reasons.insert(reasons.begin(), locks.error().message);
  }
  if (reasons.empty()) reasons.emplace_back("as far as Consul knows, it starts at its turn");
  return reasons;
}

json text_json(const std::string& text) { return {{"text", text}}; }

// Asks the leader, which knows more reasons than Consul shows. An error without a message: the
// leader does not know the task yet, or leads no longer.
Result<json> ask_leader(const Client& client, const TaskInfo& task) {
  cluster::LeaderClients leaders{client.stored(), client.admin_token};
  cluster::LeaderClient leader = leaders.of(task);
  if (!leader.admin) return fail(ErrorCode::kFailed, leader.admin.error().message);
  const std::string why_not = "the leader, " + leader.node + ", could not be asked: ";
  const auto answer = leader.admin->get("/v1/tasks/" + wire::query_value(task.id) +
                                        "/why?queue=" + wire::query_value(client.queue));
  if (!answer) return fail(answer.error().code, why_not + answer.error().message);
  auto reasons = parse_json(*answer);
  const bool fits = reasons && reasons->is_array() && !reasons->empty() &&
                    std::all_of(reasons->begin(), reasons->end(),
                                [](const json& reason) { return reason.is_object(); });
  if (!fits) return fail(ErrorCode::kFailed, why_not + "its answer is no list of reasons");
  if (reasons->front().value("reason", json{}) == "unknown_task") {
    return fail(ErrorCode::kNotFound, "");
  }
  return *std::move(reasons);
}

}  // namespace

std::string reason_of(const Client& client, const TaskInfo& task) {
  const auto reasons = ask_leader(client, task);
  return reasons ? text_of(reasons->front(), "text") : reasons_of(client, task).front();
}

namespace {

Result<int> why(const Client& client, const std::string& id) {
  const auto found = client.api.show(id);
  if (!found && found.error().code != ErrorCode::kNotFound) return tl::unexpected(found.error());
  if (!found) {  // a schedule may know of it
    const auto reasons = tick_reasons(client, id);
    if (client.json) {
      print_json(client,
                 {{"id", id}, {"state", nullptr}, {"reasons", json_list(reasons, text_json)}});
    }
    if (reasons.empty()) return tl::unexpected(found.error());
    if (client.json) return kDone;
    for (const std::string& text : reasons) {
      client.console.print_line(client.console.suggesting("no task " + id + ": " + text));
    }
    return kDone;
  }
  const TaskInfo& task = newest(*found);
  Result<json> reasons = fail(ErrorCode::kNotFound, "");
  if (task.state < TaskState::kDead) reasons = ask_leader(client, task);
  Error why_not = reasons ? Error{} : reasons.error();
  if (!reasons) reasons = json_list(reasons_of(client, task), text_json);
  if (client::is_temporary(why_not)) {
    std::string trouble = cluster::lead_trouble(client.stored(), task);
    if (trouble.empty()) trouble = std::move(why_not.message);
    reasons->insert(reasons->begin(), json{{"reason", "leader_silent"}, {"text", trouble}});
    why_not.message.clear();
  }
  if (task.state == TaskState::kOrphan) {
    reasons->insert(reasons->begin(), json{{"reason", "orphan"}, {"text", orphan_text(task)}});
  }
  for (json& reason : *reasons) {
    if (reason.is_object()) reason["text"] = client.console.suggesting(text_of(reason, "text"));
  }
  if (client.json) {
    print_json(client,
               {{"id", id}, {"state", client::state_name(task.state)}, {"reasons", *reasons}});
    return kDone;
  }
  for (const json& reason : *reasons) {
    client.console.print_line("task " + task.id + ": " + text_of(reason, "text"));
  }
  if (!why_not.message.empty()) {
    client.console.report_note("as far as Consul knows; " + why_not.message);
  }
  return kDone;
}

}  // namespace

void add_why(Commands& to) {
  auto [command, id] = to.add(
      "why", "Show why a task is not running",
      R"(Names what keeps a task from being started: not due yet, paused, nobody leads, too large.

Examples:
  lictor why 42
  lictor why 42 --json | jq -r '.reasons[].text'
)",
      why);
  command.argument("ID", id, "The task's id").required();
}

}  // namespace lictor::cli
