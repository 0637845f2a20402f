// Prints the tasks of a queue as a table or as JSON. Other commands that list tasks use parts of
// this file (listing.h).
//
// The states are those of the records in Consul: a task that its producer rewrote while it runs
// counts as waiting.
//
// An empty or short list gets an explanation, since its reader wants to know where a task is: done
// tasks leave no trace without a history, a type may be mistyped, a queue may be paused or not led,
// and some keys may be hidden from the token.

#include <array>
#include <map>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/printable.h"
#include "base/text.h"
#include "base/time_text.h"
#include "base/try.h"
#include "cli/command_table.h"
#include "cli/json_output.h"
#include "cli/listing.h"
#include "client/task_info.h"
#include "cluster/succession.h"

namespace lictor::cli {
namespace {

using namespace std::chrono_literals;

// The state that list shows for a scheduled task whose last attempt failed.
constexpr const char* kRetrying = "retrying";

Style style_of(TaskState state) {
  if (state == TaskState::kRunning) return Style::kGreen;
  if (state == TaskState::kOrphan) return Style::kYellow;
  const bool usual = state == TaskState::kWaiting || state == TaskState::kScheduled ||
                     client::listed_state(state) == TaskState::kDone;
  return usual ? Style::kPlain : Style::kRed;
}

// The due time of a scheduled task, else the start of a running or dead state, else the taskTime.
std::string time_text(const TaskInfo& view, WallTime now) {
  const auto time = view.state == TaskState::kScheduled ? view.due
                    : view.since                        ? view.since
                                                        : view.time;
  return time ? relative_time(*time, now) : std::string{};
}

// A dead letter has a reason, and its last error where there was one.
std::string error_text(const TaskInfo& view) {
  if (view.reason.empty() || view.reason == view.error) return view.error;
  return view.error.empty() ? view.reason : view.reason + ": " + view.error;
}

bool is_retrying(const TaskInfo& task) {
  return task.state == TaskState::kScheduled && !task.error.empty();
}

std::string state_shown(const TaskInfo& view) {
  return is_retrying(view) ? kRetrying : std::string{client::state_text(view.state)};
}

std::string took_text(const TaskInfo& view) {
  if (!view.took) return {};
  return *view.took < 1s
             ? format_duration(std::chrono::floor<std::chrono::milliseconds>(*view.took))
             : rounded_duration(*view.took);
}

Table table_of(const std::vector<TaskInfo>& views) {
  const WallTime now = wall_now();
  Table table{{"ID", "TYPE", "STATE", "TIME", "TOOK", "ATTEMPT", "NODE", "ERROR"}};
  for (const TaskInfo& view : views) {
    table.add_row({{excerpt(view.id, 600)},  // longer ones are mistakes
                   {excerpt(view.type, 100)},
                   {state_shown(view), style_of(view.state)},
                   {time_text(view, now)},
                   {took_text(view)},
                   {view.attempt == 0 ? "" : std::to_string(view.attempt)},
                   {view.node},
                   {excerpt(error_text(view), 200)}});
  }
  return table;
}

// "3 waiting, 1 running"
std::string counts_text(const std::vector<TaskInfo>& views) {
  std::map<std::string, std::size_t> counts;
  for (const TaskInfo& view : views) ++counts[state_shown(view)];
  std::string text;
  for (const auto& [state, count] : counts) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, state);
  }
  return text;
}

constexpr std::array kStates{TaskState::kWaiting,  TaskState::kScheduled, TaskState::kRunning,
                             TaskState::kDead,     TaskState::kDone,      TaskState::kUnreadable,
                             TaskState::kTooLarge, TaskState::kUnnameable};

}  // namespace

// "cancelled" is shown, but is no state to filter by: the error names the state that includes it.
// "retrying" is half of a state, and only list takes it.
Result<std::optional<TaskState>> state_argument(const std::string& text) {
  if (text.empty()) return std::nullopt;
  std::vector<std::string_view> names;
  for (const TaskState state : kStates) {
    names.push_back(client::state_name(state));
    if (names.back() == text) return state;
  }
  std::string meant = nearest(text, names);
  if (text == kRetrying) meant = "scheduled";
  if (text == "cancelled") meant = "done";
  return fail(ErrorCode::kInvalid,
              fmt::format("--state: expected {} or {}, got \"{}\"{}",
                          fmt::join(names.begin(), names.end() - 1, ", "), names.back(),
                          excerpt(text), meant.empty() ? "" : "; did you mean " + meant + '?'));
}

std::string none_text(const Client& client, const TaskFilter& filter) {
  const bool dead = filter.state == TaskState::kDead;
  const bool all =
      (!filter.state || dead) && filter.type.empty() && filter.reason.empty() && !filter.before;
  return fmt::format("no {}{} in queue \"{}\"", all ? "" : "such ", dead ? "dead letters" : "tasks",
                     client.queue);
}

Result<int> print_list(const Client& client, const TaskFilter& filter, std::size_t limit,
                       bool only_retrying) {
  LICTOR_TRY(auto listed, client.api.list(filter));
  if (only_retrying) {
    std::erase_if(listed.tasks, [](const TaskInfo& task) { return !is_retrying(task); });
  }
  // Without the right to read the control key, say nothing of a pause.
  const PauseState paused = client.api.paused().value_or(PauseState{});
  std::vector<TaskInfo>& tasks = listed.tasks;
  std::size_t dead = 0;
  // The table shows dead letters on request only, since they may be many; JSON has all.
  if (!client.json && !filter.state) {
    dead =
        std::erase_if(tasks, [](const TaskInfo& task) { return task.state == TaskState::kDead; });
  }
  const std::size_t found = tasks.size();
  const std::string counts = counts_text(tasks);
  if (limit != 0 && found > limit) tasks.resize(limit);

  if (client.json) {
    print_json(client, {{"paused", pause_json(paused)},
                        {"found", found},
                        {"hidden", listed.hidden},
                        {"tasks", json_list(tasks, task_json)}});
  } else {
    if (const std::string trouble = cluster::lead_trouble(client.stored()); !trouble.empty()) {
      client.console.print_line(client.console.suggesting(trouble));
    }
    client.console.print(table_of(tasks).render(client.console.width()));
    if (dead != 0) {
      client.console.note(fmt::format("{}{}{}; \"lictor list --state dead\" shows them", counts,
                                      counts.empty() ? "" : "; ", counted(dead, "dead letter")));
    } else if (found > 1) {
      client.console.note(counts);
    }
    if (found == 0 && dead == 0) {
      client.console.note(none_text(client, filter));
      if (!filter.state && filter.type.empty()) {
        client.console.note("its tasks are below " + client.layout.tasks_prefix +
                            "; finished tasks are deleted; where \"history\" is configured, "
                            "\"lictor list --state done\" shows them");
      }
      if (filter.state == TaskState::kDone) {
        client.console.note("tasks that are done are kept only where \"history\" is configured");
      }
    } else if (found > tasks.size()) {
      client.console.note(std::to_string(found - tasks.size()) + " more; --limit 0 shows all");
    }
    if (paused.paused) {
      client.console.note("queue \"" + client.queue + "\" is " + pause_text(paused));
    }
  }
  for (const std::string& prefix : listed.hidden) {
    client.console.report_error("keys below " + prefix +
                                " that the token may not read are not shown");
  }
  return kDone;
}

namespace {

struct ListOptions {
  std::string state;      // empty: all but done tasks
  std::string type;       // empty: all
  std::size_t limit = 0;  // 0: none
};

Result<int> list(const Client& client, const ListOptions& options) {
  const bool only_retrying = options.state == kRetrying;
  LICTOR_TRY(const auto state,
             state_argument(only_retrying ? std::string{client::state_name(TaskState::kScheduled)}
                                          : options.state));
  return print_list(client, {state, options.type}, options.limit, only_retrying);
}

}  // namespace

void add_list(Commands& to) {
  auto [command, options] = to.add(
      "list", "List the tasks",
      R"about(STATE is waiting, scheduled (not due yet), retrying (scheduled again after a failure),
running, dead, done (where the queue keeps a history; left out otherwise), unreadable, too_large or
unnameable (its key is not UTF-8).
"running (orphan)": the task's owner died or lost leadership; the next leader runs the task again.

Examples:
  lictor list
  lictor list --state dead --type Notify
  lictor list --json | jq -r '.tasks[] | select(.attempt > 1) | .id'
)about",
      list);
  command.text("--state", options.state, "Only those in this state", "STATE");
  command.text("--type", options.type, "Only those of this type", "TYPE");
  command.count("--limit", options.limit, "Show the first N (default: all)", 0);
}

}  // namespace lictor::cli
