// The commands that change many tasks: cancel, retry and dead purge; and dead list, their preview.

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/printable.h"
#include "base/try.h"
#include "cli/json_output.h"
#include "cli/listing.h"
#include "cli/process.h"
#include "client/change.h"
#include "client/task_info.h"
#include "cluster/admin_client.h"

namespace lictor::cli {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kMaxGroupsShown = 20;  // lines of refusals; the summary counts them all
constexpr std::array<std::string_view, 6> kReasons{"failed",     "permanent", "expired",
                                                   "unreadable", "stopped",   "owner lost"};

bool is_away(const Error& error) { return exit_code(error.code) == kUnreachable; }

// ", 2 refused, 64 in doubt, 900 not tried"
std::string not_done(const BulkResult& result) {
  std::map<ErrorCode, std::size_t> counts;
  for (const auto& [id, error] : result.refused) ++counts[error.code];
  const std::size_t in_doubt = counts[ErrorCode::kTimeout];
  const std::size_t not_tried = counts[ErrorCode::kUnavailable];
  std::string text;
  for (const auto& [count, word] :
       {std::pair{result.refused.size() - in_doubt - not_tried, "refused"},
        {in_doubt, "in doubt"},
        {not_tried, "not tried"}}) {
    if (count > 0) text += fmt::format(", {} {}", count, word);
  }
  return text;
}

// One line for each message, the most frequent first.
void tell_refusals(const Client& client, const BulkResult& result) {
  struct Group {
    const Error* first;
    std::size_t tasks;
  };
  std::vector<Group> groups;
  std::map<std::string_view, std::size_t> places;
  for (const auto& [id, error] : result.refused) {
    // The message of a task in doubt names the task; those messages count as one.
    const bool in_doubt = error.code == ErrorCode::kTimeout;
    const auto [place, is_new] =
        places.try_emplace(in_doubt ? "" : std::string_view{error.message}, groups.size());
    if (is_new) groups.push_back({&error, 0});
    ++groups[place->second].tasks;
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const Group& a, const Group& b) { return a.tasks > b.tasks; });
  std::size_t left = result.refused.size();
  for (std::size_t i = 0; i < std::min(groups.size(), kMaxGroupsShown); ++i) {
    const auto& [first, tasks] = groups[i];
    client.console.complain(
        tasks == 1 ? first->message
        : first->code == ErrorCode::kTimeout
            ? fmt::format("{} (and the same of {})", first->message, counted(tasks - 1, "other"))
            : fmt::format("{} ({})", first->message, counted(tasks, "task")));
    left -= tasks;
  }
  if (left > 0) client.console.complain(fmt::format("{} more", left));
  const bool names_all = left == 0 && groups.size() == result.refused.size();
  if (!names_all && !client.json) client.console.complain("--json names each of them");
}

// Asks before a change that cannot be undone. False: the answer was no.
Result<bool> confirmed(const Client& client, const std::string& question, bool must_ask) {
  const auto answer = client.console.confirm(question);
  if (answer || !must_ask) return answer.value_or(true);
  return fail(ErrorCode::kInvalid,
              "--all needs confirmation and there is no terminal; pass --yes (" + question + ")");
}

// A line on a terminal: "1000 of 5000 tasks".
Progress progress_of(const Client& client) {
  return [&client](std::size_t done, std::size_t total) {
    client.console.progress(fmt::format("{} of {}", done, counted(total, "task")));
  };
}

std::string cancelled_line(const TaskInfo& task) {
  const std::string start = "cancelled task " + task.id + ", which was ";
  if (task.state == TaskState::kRunning) {
    return start + "running on " + task.node + "; that daemon stops its job when it sees this";
  }
  if (task.state == TaskState::kOrphan) {
    return start + "claimed by " + (task.node.empty() ? "an unknown daemon" : task.node) +
           ", which does not lead";
  }
  return start + std::string{client::state_text(task.state)};
}

// The daemon that runs a job stops it when Consul reports that the task is gone. Warn if that
// daemon does not answer.
void complain_of_silent(const Client& client, const BulkResult& result) {
  std::set<std::string> nodes;
  for (const TaskInfo& task : result.tasks) {
    if (task.state == TaskState::kRunning) nodes.insert(task.node);
  }
  for (const std::string& node : nodes) {
    const std::string doubt = cluster::doubt_of(
        cluster::read_member(client.store, client.layout, node, cluster::kGlance));
    if (doubt.empty()) continue;
    client.console.complain(fmt::format(
        "{} has to stop the jobs of these tasks, but {}; if it is dead, its programs have ended "
        "with it; if it is frozen or cut off, they end with its lease at the latest",
        node, doubt));
  }
}

TaskFilter dead_filter(const Client& client, const std::string& type, const std::string& reason,
                       const std::optional<Duration>& older_than = {}) {
  if (!reason.empty() && std::find(kReasons.begin(), kReasons.end(), reason) == kReasons.end()) {
    client.console.complain(
        fmt::format("--reason: no dead letter has the reason \"{}\"; the reasons are {}", reason,
                    fmt::join(kReasons, ", ")));
  }
  TaskFilter filter{TaskState::kDead, type, reason};
  if (older_than) {
    filter.before = wall_now() - std::chrono::duration_cast<std::chrono::milliseconds>(*older_than);
  }
  return filter;
}

}  // namespace

int tell_bulk(const Client& client, const BulkResult& result, const std::string& done,
              const std::function<std::string(const TaskInfo&)>& line) {
  client.console.end_progress();
  if (client.json) {
    const auto refused = json_list(result.refused, [](const auto& each) -> ordered_json {
      return {{"id", each.id},
              {"error", each.error.message},
              {"in_doubt", each.error.code == ErrorCode::kTimeout}};
    });
    print_json(client, {{done, json_list(result.tasks, task_json)}, {"refused", refused}});
  } else if (line) {
    for (const TaskInfo& task : result.tasks) client.console.print_line(line(task));
  } else {
    client.console.print_line(done + ' ' + counted(result.tasks.size(), "task") + not_done(result));
  }
  tell_refusals(client, result);
  // An unreachable Consul outranks other refusals: running the command again helps.
  if (std::any_of(result.refused.begin(), result.refused.end(),
                  [](const auto& each) { return is_away(each.error); })) {
    return kUnreachable;
  }
  return result.refused.empty() ? kDone : exit_code(result.refused.front().error.code);
}

BulkResult each_of(const std::vector<std::string>& ids,
                   const std::function<Result<TaskInfo>(const std::string&)>& change) {
  BulkResult result;
  std::optional<Error> away;
  for (const std::string& id : ids) {
    auto changed = away ? tl::unexpected(client::not_tried(*away)) : change(id);
    if (changed) {
      result.tasks.push_back(std::move(*changed));
      continue;
    }
    if (!away && is_away(changed.error())) {
      away = changed.error();
      if (away->code == ErrorCode::kTimeout) away->message = "no answer came for " + id;
    }
    result.refused.push_back({id, std::move(changed.error())});
  }
  return result;
}

namespace {

// Without that right a waiter takes the cancelled task for a finished one.
void tell_if_unseen(const Client& client, const BulkResult& result) {
  if (result.tasks.empty()) return;
  const std::string& done = client.layout.done_prefix;
  const auto writable = client.store.writable({done + result.tasks.front().id});
  if (!writable || writable->front()) return;
  client.console.remark("the token may not write " + done +
                        ", so \"submit --wait\" takes the task for a finished one");
}

}  // namespace

Result<int> cancel(const Client& client, const CancelOptions& options) {
  BulkResult result;
  if (!options.all) {
    result = each_of(options.ids, [&](const std::string& id) { return client.api.cancel(id); });
    tell_if_unseen(client, result);
  } else {
    LICTOR_TRY(const auto state, state_argument(options.state));
    const TaskFilter filter{state, options.type};
    if (!options.yes) {
      LICTOR_TRY(const auto listed, client.api.list(filter));
      std::size_t count = 0;
      for (const TaskInfo& task : listed.tasks) count += task.state < TaskState::kUnnameable;
      const std::string question =
          fmt::format("cancel {} of queue \"{}\"?", counted(count, "task"), client.queue);
      LICTOR_TRY(const bool yes, confirmed(client, question, true));
      if (!yes) return kFailed;
    }
    LICTOR_TRY(result, client.api.cancel_all(filter, progress_of(client)));
    if (result.tasks.empty() && result.refused.empty()) {
      client.console.note(fmt::format("no {}tasks in queue \"{}\"{}",
                                      state || !options.type.empty() ? "such " : "", client.queue,
                                      types_hint(client, {state, {}}, options.type)));
    }
  }
  const int code =
      tell_bulk(client, result, "cancelled",
                options.all ? std::function<std::string(const TaskInfo&)>{} : cancelled_line);
  complain_of_silent(client, result);
  // Where the queue keeps no history, the process lives on for two seconds (CancelMarks).
  if (auto flushed = client.console.flush(); !flushed) return tl::unexpected(flushed.error());
  return code;
}

Result<int> retry(const Client& client, const RetryOptions& options) {
  BulkResult result;
  std::function<std::string(const TaskInfo&)> line;
  if (options.all) {
    const TaskFilter filter = dead_filter(client, options.type, options.reason);
    LICTOR_TRY(result, client.api.retry_all(filter, options.drop_expiry, progress_of(client)));
    if (result.tasks.empty() && result.refused.empty()) {
      client.console.note(none_dead(client, filter));
    }
  } else {
    result = each_of(options.ids, [&](const std::string& id) {
      return client.api.retry(id, options.drop_expiry);
    });
    line = [](const TaskInfo& letter) {
      return "dead letter " + letter.id + " is a waiting task again";
    };
  }
  // The usage was right: kInvalid is the dead letter's fault.
  const int code = tell_bulk(client, result, "retried", line);
  return code == kUsage ? kFailed : code;
}

Result<int> dead_list(const Client& client, const DeadListOptions& options) {
  return print_list(client, dead_filter(client, options.type, options.reason, options.older_than),
                    options.limit);
}

Result<int> dead_purge(const Client& client, const DeadPurgeOptions& options) {
  const TaskFilter filter = dead_filter(client, options.type, options.reason, options.older_than);
  if (!options.yes) {
    std::size_t count = options.ids.size();
    if (options.all) {
      LICTOR_TRY(const auto listed, client.api.list(filter));
      count = listed.tasks.size();
    }
    if (count == 0) {
      if (client.json) return tell_bulk(client, {}, "purged", {});
      client.console.note(none_dead(client, filter));
      return kDone;
    }
    const std::string question = fmt::format("delete {} of queue \"{}\" for good?",
                                             counted(count, "dead letter"), client.queue);
    LICTOR_TRY(const bool yes, confirmed(client, question, options.all));
    if (!yes) return kFailed;
  }
  if (options.all) {
    LICTOR_TRY(const auto result, client.api.purge_all(filter, progress_of(client)));
    return tell_bulk(client, result, "purged", {});
  }
  const auto result =
      each_of(options.ids, [&](const std::string& id) { return client.api.purge(id); });
  return tell_bulk(client, result, "purged",
                   [](const TaskInfo& letter) { return "purged dead letter " + letter.id; });
}

}  // namespace lictor::cli
