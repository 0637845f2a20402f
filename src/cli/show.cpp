#include <algorithm>

#include "base/base64.h"
#include "base/clock.h"
#include "base/json_text.h"
#include "base/printable.h"
#include "base/text.h"
#include "base/time_text.h"
#include "cli/command_table.h"
#include "cli/json_output.h"
#include "cli/listing.h"
#include "client/task_info.h"

namespace lictor::cli {
namespace {

std::string time_line(const std::optional<WallTime>& time, WallTime now) {
  return time ? format_rfc3339(*time) + " (" + relative_time(*time, now) + ")" : std::string{};
}

std::string claim_text(const TaskInfo& view) {
  if (view.node.empty()) return {};
  return view.session.empty() ? view.node : view.node + ", session " + view.session;
}

std::string attempts_text(const TaskInfo& view) {
  if (view.attempt == 0) return {};
  std::string text = std::to_string(view.attempt);
  if (view.lost != 0) text += " (" + counted(view.lost, "owner") + " lost)";
  return text;
}

Page sheet_of(const TaskInfo& view) {
  const WallTime now = wall_now();
  const bool dead = view.state == TaskState::kDead;
  Sheet sheet;
  sheet.line("id", view.id, Style::kBold);
  sheet.line("key", view.key);
  sheet.line("type", view.type);
  std::string state{client::state_text(view.state)};
  if (view.state == TaskState::kOrphan) {
    state += ": its owner died or lost leadership; the next leader runs it again";
  } else if (view.state == TaskState::kUnreadable) {
    state += ": a leader makes it a dead letter";
  } else if (view.state == TaskState::kTooLarge) {
    state += ": never runs; write a smaller record, or delete it";
  }
  sheet.line("state", state, dead ? Style::kRed : Style::kPlain);
  sheet.line("order", time_line(view.time, now));
  if (view.state == TaskState::kScheduled) sheet.line("due", time_line(view.due, now));
  const bool cancelled = view.state == TaskState::kCancelled;
  const bool done = view.state == TaskState::kDone || cancelled;
  sheet.line("started", time_line(view.started, now));
  sheet.line(dead        ? "buried"
             : cancelled ? "cancelled"
             : done      ? "done"
                         : "since",
             time_line(view.since, now));
  if (view.took) sheet.line("took", format_duration(*view.took));
  sheet.line(dead || done ? "by" : "claimed by", claim_text(view));
  sheet.line("attempts", attempts_text(view));
  sheet.line("serial key", view.serial_key);
  sheet.line("reason", view.reason, Style::kRed);
  sheet.line("error", view.error, Style::kRed);
  sheet.line("index", "created " + std::to_string(view.create_index) + ", modified " +
                          std::to_string(view.modify_index));
  sheet.line("size", byte_text(view.record.size()));
  if (!view.output_tail.empty()) sheet.block("The end of its output", view.output_tail);
  if (!view.result.empty()) sheet.block("Result", record_text(view.result));

  const bool ended = dead || done;
  const auto letter = ended ? split_object(view.record) : split_object("{}");
  bool shown = false;
  for (const JsonMember& member : letter.value_or(std::vector<JsonMember>{})) {
    if (member.name == "record") {
      sheet.block("Record", record_text(member.value_text));
      shown = true;
    } else if (member.name == "raw" || member.name == "raw_base64") {
      const auto value = parse_json(member.value_text);
      std::string bytes = value && value->is_string() ? value->get<std::string>() : std::string{};
      if (member.name == "raw_base64") bytes = base64_decode(bytes).value_or(bytes);
      sheet.block("Record, as it was", bytes.empty() ? "(no bytes)" : bytes);
      shown = true;
    }
  }
  if (!shown) sheet.block(ended ? "Value" : "Record", record_text(view.record));
  return sheet.page;
}

Result<int> print_tasks(const Client& client, const std::string& id,
                        const std::vector<TaskInfo>& tasks) {
  const PauseState paused = client.api.paused().value_or(PauseState{});
  if (client.json) {
    print_json(
        client,
        {{"paused", pause_json(paused)}, {"id", id}, {"tasks", json_list(tasks, whole_task_json)}});
    return kDone;
  }
  for (const TaskInfo& task : tasks) {
    if (&task != &tasks.front()) client.console.print("\n---\n\n");
    client.console.print(sheet_of(task));
  }
  if (paused.paused && tasks.front().state < TaskState::kDead) {
    client.console.note("queue \"" + client.queue + "\" is " + pause_text(paused));
  }
  return kDone;
}

// With --json, prints a document also if nothing is found.
Result<int> report_none(const Client& client, const std::string& id, const Error& error) {
  if (client.json && error.code == ErrorCode::kNotFound) {
    static_cast<void>(print_tasks(client, id, {}));
  }
  return tl::unexpected(error);
}

Result<int> show(const Client& client, const std::string& id) {
  return show_task(client, id, false);
}

}  // namespace

const TaskInfo& newest(const std::vector<TaskInfo>& found) {
  if (found.front().state < TaskState::kDead) return found.front();
  return *std::max_element(found.begin(), found.end(),
                           [](const TaskInfo& a, const TaskInfo& b) { return a.since < b.since; });
}

Result<int> show_task(const Client& client, const std::string& id, bool only_dead) {
  auto found = client.api.show(id);
  if (!found) return report_none(client, id, found.error());
  if (only_dead) {
    std::erase_if(*found, [](const TaskInfo& task) { return task.state != TaskState::kDead; });
  }
  if (!found->empty()) return print_tasks(client, id, *found);
  return report_none(client, id,
                     {ErrorCode::kNotFound, "task " + id + " is not dead; see \"lictor show " +
                                                shell_argument(id) + '"'});
}

void add_show(Commands& to) {
  auto [command, id] = to.add("show", "Show everything about a task, also a dead one", R"(Examples:
  lictor show 42
  lictor show 42 --json | jq .tasks[0].error
)",
                              show);
  command.argument("ID", id, "The task's id").required();
}

}  // namespace lictor::cli
