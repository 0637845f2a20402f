#include "cli/bulk.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/printable.h"
#include "cli/json_output.h"

namespace lictor::cli {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kMaxGroupsShown = 20;  // lines of refusals; the summary counts them all
constexpr std::array<std::string_view, 6> kReasons{"failed",     "permanent", "expired",
                                                   "unreadable", "stopped",   "owner lost"};

bool is_away(const Error& error) { return exit_code(error.code) == kUnreachable; }

// ", 2 refused, 64 in doubt, 900 not tried"
// A task in doubt may have been changed; one that was not tried is as it was. The caller must know
// which of them to look at.
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

// Prints one line for each message, the most frequent first.
void report_refusals(const Client& client, const BulkResult& result) {
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
    client.console.report_error(
        tasks == 1 ? first->message
        : first->code == ErrorCode::kTimeout
            ? fmt::format("{} (and the same of {})", first->message, counted(tasks - 1, "other"))
            : fmt::format("{} ({})", first->message, counted(tasks, "task")));
    left -= tasks;
  }
  if (left > 0) client.console.report_error(fmt::format("{} more", left));
  const bool names_all = left == 0 && groups.size() == result.refused.size();
  if (!names_all && !client.json) client.console.report_error("--json names each of them");
}

}  // namespace

Option add_selection(Arguments& to, Selection& selection, const char* ids_what,
                     const char* all_what) {
  const Option ids = to.arguments("ID", selection.ids, ids_what);
  Option all = to.flag("--all", selection.all, all_what).excludes(ids);
  to.then([&selection]() -> Result<void> {
    if (selection.ids.empty() && !selection.all) {
      return fail(ErrorCode::kInvalid, "ID or --all is required");
    }
    if (std::ranges::find(selection.ids, "") == selection.ids.end()) return {};
    return fail(ErrorCode::kInvalid, "ID: expected a task's id, got nothing");
  });
  return all;
}

int print_bulk(const Client& client, const BulkResult& result, const std::string& done,
               const std::function<std::string(const TaskInfo&)>& line, const std::string& noun) {
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
    client.console.print_line(done + ' ' + counted(result.tasks.size(), noun) + not_done(result));
  }
  report_refusals(client, result);
  // An unreachable Consul outranks other refusals: running the command again helps.
  if (std::any_of(result.refused.begin(), result.refused.end(),
                  [](const auto& each) { return is_away(each.error); })) {
    return kUnreachable;
  }
  return result.refused.empty() ? kDone : exit_code(result.refused.front().error.code);
}

// A script without a terminal is not asked about single ids: naming them is enough.
Result<bool> confirmed(const Client& client, const std::string& question, bool must_ask) {
  const auto answer = client.console.confirm(question);
  if (answer || !must_ask) return answer.value_or(true);
  return fail(ErrorCode::kInvalid,
              "--all needs confirmation and there is no terminal; pass --yes (" + question + ")");
}

Progress progress_of(const Client& client) {
  return [&client](std::size_t done, std::size_t total) {
    client.console.progress(fmt::format("{} of {}", done, counted(total, "task")));
  };
}

void add_dead_options(Arguments& to, DeadOptions& options, const Option* all) {
  for (Option option : {to.text("--type", options.type, "Only those of this type", "TYPE"),
                        to.text("--reason", options.reason, "Only those of this reason", "TEXT"),
                        to.duration("--older-than", options.older_than,
                                    "Only those that died longer ago than this")}) {
    if (all != nullptr) option.needs(*all);
  }
}

// An unknown reason is no error, since a newer daemon may know more; it is most often a mistake, so
// it is named.
TaskFilter dead_filter(const Client& client, const DeadOptions& options) {
  const std::string& reason = options.reason;
  if (!reason.empty() && std::find(kReasons.begin(), kReasons.end(), reason) == kReasons.end()) {
    client.console.report_error(
        fmt::format("--reason: no dead letter has the reason \"{}\"; the reasons are {}", reason,
                    fmt::join(kReasons, ", ")));
  }
  TaskFilter filter{TaskState::kDead, options.type, reason};
  if (options.older_than) {
    filter.before =
        wall_now() - std::chrono::duration_cast<std::chrono::milliseconds>(*options.older_than);
  }
  return filter;
}

}  // namespace lictor::cli
