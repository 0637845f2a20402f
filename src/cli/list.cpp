#include <algorithm>
#include <array>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/text.h"
#include "base/time_text.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/json_output.h"
#include "cli/printable.h"
#include "cli/table.h"
#include "cli/task_json.h"
#include "cli/task_view.h"

namespace lictor::cli {
namespace {

using nlohmann::ordered_json;

constexpr std::array<std::string_view, 6> kStates{"waiting", "scheduled",  "running",
                                                  "dead",    "unreadable", "too_large"};

Result<void> check_state(const std::string& state) {
  if (state.empty() || std::find(kStates.begin(), kStates.end(), state) != kStates.end()) return {};
  if (state == "done") {
    return fail(ErrorCode::kInvalid,
                "--state done: this version keeps no history; a task that is done is gone");
  }
  std::string message =
      "--state: expected waiting, scheduled, running, dead, unreadable or too_large, got \"" +
      excerpt(state) + '"';
  const std::string meant = nearest(state, {kStates.begin(), kStates.end()});
  if (!meant.empty()) message += "; did you mean " + meant + '?';
  return fail(ErrorCode::kInvalid, std::move(message));
}

Style style_of(TaskState state) {
  switch (state) {
    case TaskState::kRunning:
      return Style::kGreen;
    case TaskState::kOrphan:
      return Style::kYellow;
    case TaskState::kWaiting:
    case TaskState::kScheduled:
      return Style::kPlain;
    case TaskState::kUnreadable:
    case TaskState::kTooLarge:
    case TaskState::kDead:
      return Style::kRed;
  }
  return Style::kPlain;
}

// What a person wants to know of its time: until when it waits, since when it runs or is dead.
std::string time_text(const TaskView& view, WallTime now) {
  const auto time = view.state == TaskState::kScheduled ? view.due
                    : view.since                        ? view.since
                                                        : view.time;
  return time ? relative_time(*time, now) : std::string{};
}

std::string error_text(const TaskView& view) {
  if (view.reason.empty() || view.reason == view.error) return view.error;
  return view.error.empty() ? view.reason : view.reason + ": " + view.error;
}

std::string table_of(const std::vector<TaskView>& views, const Terminal& terminal) {
  const WallTime now = wall_now();
  Table table{{"ID", "TYPE", "STATE", "TIME", "ATTEMPT", "NODE", "ERROR"}};
  for (const TaskView& view : views) {
    table.add_row({{view.id},
                   {view.type},
                   {std::string{state_text(view.state)}, style_of(view.state)},
                   {time_text(view, now)},
                   {view.attempt == 0 ? "" : std::to_string(view.attempt)},
                   {view.node},
                   {excerpt(error_text(view), 200)}});
  }
  return table.render(terminal);
}

struct Gathered {
  std::vector<TaskView> views;
  std::vector<std::string> hidden;  // prefixes of which not all may be read
};

Result<Gathered> gather(const Client& client, const ListOptions& options) {
  Gathered gathered;
  const auto wanted = [&](const TaskView& view) {
    return (options.state.empty() || options.state == state_name(view.state)) &&
           (options.type.empty() || options.type == view.type);
  };
  const auto take = [&](TaskView view) {
    if (wanted(view)) gathered.views.push_back(std::move(view));
  };
  if (options.state != "dead") {
    auto listed = client.store.list(client.layout.tasks_prefix);
    if (!listed) return tl::unexpected(std::move(listed.error()));
    // Without the right to read the leader key, what is claimed is called running.
    const auto lock = client.store.get(client.layout.leader_key);
    if (!lock && lock.error().code != ErrorCode::kPermissionDenied) {
      return tl::unexpected(lock.error());
    }
    if (listed->hidden) gathered.hidden.push_back(client.layout.tasks_prefix);
    for (wire::KvEntry& entry : listed->entries) {
      if (!client.layout.task_id(entry.key)) continue;  // a folder
      TaskView view = view_task(client.layout, std::move(entry),
                                lock && *lock ? (*lock)->session : std::string{}, wall_now());
      if (!lock && view.state == TaskState::kOrphan) view.state = TaskState::kRunning;
      take(std::move(view));
    }
  }
  if (options.state.empty() || options.state == "dead") {
    auto listed = client.store.list(client.layout.dead_prefix);
    const bool denied = !listed && listed.error().code == ErrorCode::kPermissionDenied;
    if (!listed && (!denied || options.state == "dead")) {
      return tl::unexpected(std::move(listed.error()));
    }
    if (denied || listed->hidden) gathered.hidden.push_back(client.layout.dead_prefix);
    for (wire::KvEntry& entry : listed ? listed->entries : std::vector<wire::KvEntry>{}) {
      if (!entry.key.ends_with('/')) take(view_dead_letter(client.layout, std::move(entry)));
    }
  }
  std::sort(gathered.views.begin(), gathered.views.end(), listed_before);
  return gathered;
}

}  // namespace

Result<int> list(const Client& client, const ListOptions& options) {
  if (auto known = check_state(options.state); !known) return tl::unexpected(known.error());
  auto gathered = gather(client, options);
  if (!gathered) return tl::unexpected(std::move(gathered.error()));
  std::vector<TaskView>& views = gathered->views;
  const std::size_t found = views.size();
  if (options.limit != 0 && found > options.limit) views.resize(options.limit);

  if (client.json) {
    ordered_json tasks = ordered_json::array();
    for (const TaskView& view : views) tasks.push_back(task_json(view));
    client.console.print(json_document({{"queue", client.queue},
                                        {"found", found},
                                        {"hidden", gathered->hidden},
                                        {"tasks", std::move(tasks)}}));
  } else {
    client.console.print(table_of(views, client.console.out_terminal()));
    if (found == 0) {
      const bool all = options.state.empty() && options.type.empty();
      client.console.note(all ? "no tasks in queue \"" + client.queue + "\" (" +
                                    client.layout.tasks_prefix + ")"
                              : "no such tasks in queue \"" + client.queue + "\"");
    } else if (found > views.size()) {
      client.console.note(std::to_string(found - views.size()) + " more; --limit 0 shows all");
    }
  }
  for (const std::string& prefix : gathered->hidden) {
    client.console.complain("what the token may not read below " + prefix + " is not shown");
  }
  return kDone;
}

}  // namespace lictor::cli
