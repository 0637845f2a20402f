#include "cli/bulk.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "cli/json_output.h"
#include "cli/process.h"
#include "client/change.h"

namespace lictor::cli {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kMaxShown = 20;  // lines of refusals; the summary counts them all
constexpr std::array<std::string_view, 6> kReasons{"failed",     "permanent", "expired",
                                                   "unreadable", "stopped",   "owner lost"};

// ", 2 refused, 64 in doubt, 900 not tried"
std::string not_done(const BulkResult& result) {
  std::size_t in_doubt = 0, not_tried = 0;
  for (const auto& [id, error] : result.refused) {
    in_doubt += error.code == ErrorCode::kTimeout ? 1 : 0;
    not_tried += error.code == ErrorCode::kUnavailable ? 1 : 0;
  }
  std::string text;
  for (const auto& [count, word] :
       {std::pair{result.refused.size() - in_doubt - not_tried, "refused"},
        {in_doubt, "in doubt"},
        {not_tried, "not tried"}}) {
    if (count > 0) text += ", " + std::to_string(count) + ' ' + word;
  }
  return text;
}

// One line for each message, the most frequent first.
void tell_refusals(const Client& client, const BulkResult& result) {
  struct Group {
    std::string_view message;
    bool in_doubt = false;
    std::size_t tasks = 0;
  };
  std::vector<Group> groups;
  std::map<std::string_view, std::size_t> places;
  for (const auto& [id, error] : result.refused) {
    // The message of a task in doubt names the task; those messages count as one.
    const bool in_doubt = error.code == ErrorCode::kTimeout;
    const auto [place, is_new] =
        places.try_emplace(in_doubt ? "" : std::string_view{error.message}, groups.size());
    if (is_new) groups.push_back({error.message, in_doubt, 0});
    ++groups[place->second].tasks;
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const Group& a, const Group& b) { return a.tasks > b.tasks; });
  std::size_t left = result.refused.size();
  for (std::size_t i = 0; i < std::min(groups.size(), kMaxShown); ++i) {
    const auto& [message, in_doubt, tasks] = groups[i];
    std::string line{message};
    if (tasks > 1 && in_doubt) line += " (and so of " + counted(tasks - 1, "other") + ")";
    if (tasks > 1 && !in_doubt) line += " (" + counted(tasks, "task") + ")";
    client.console.complain(line);
    left -= tasks;
  }
  if (left > 0) client.console.complain(std::to_string(left) + " more");
  const bool names_all = left == 0 && groups.size() == result.refused.size();
  if (!names_all && !client.json) client.console.complain("with --json the document names each");
}

}  // namespace

void note_odd_reason(const Client& client, const std::string& reason) {
  if (reason.empty() || std::find(kReasons.begin(), kReasons.end(), reason) != kReasons.end()) {
    return;
  }
  std::string known;
  for (const std::string_view each : kReasons) {
    known += (known.empty() ? "" : ", ") + std::string{each};
  }
  client.console.complain("--reason: \"" + reason +
                          "\" is no reason of a dead letter; the reasons are " + known);
}

int tell_bulk(const Client& client, const BulkResult& result, const std::string& done,
              const std::function<std::string(const TaskInfo&)>& line) {
  client.console.end_progress();
  if (client.json) {
    ordered_json tasks = ordered_json::array();
    for (const TaskInfo& task : result.tasks) tasks.push_back(task_json(task));
    ordered_json refused = ordered_json::array();
    for (const auto& [id, error] : result.refused) {
      refused.push_back(
          {{"id", id}, {"error", error.message}, {"in_doubt", error.code == ErrorCode::kTimeout}});
    }
    client.console.print(json_document(
        {{"queue", client.queue}, {done, std::move(tasks)}, {"refused", std::move(refused)}}));
  } else if (line) {
    for (const TaskInfo& task : result.tasks) client.console.print_line(line(task));
  } else {
    client.console.print_line(done + ' ' + counted(result.tasks.size(), "task") + not_done(result));
  }
  tell_refusals(client, result);
  // An unreachable Consul outranks other refusals: running the command again helps.
  const bool is_away =
      std::any_of(result.refused.begin(), result.refused.end(),
                  [](const auto& each) { return exit_code(each.error.code) == kUnreachable; });
  if (is_away) return kUnreachable;
  return result.refused.empty() ? kDone : exit_code(result.refused.front().error.code);
}

BulkResult each_of(const std::vector<std::string>& ids,
                   const std::function<Result<TaskInfo>(const std::string&)>& change) {
  BulkResult result;
  std::optional<Error> away;
  for (const std::string& id : ids) {
    if (away) {
      result.refused.push_back({id, client::not_tried(*away)});
      continue;
    }
    auto changed = change(id);
    if (changed) {
      result.tasks.push_back(std::move(*changed));
      continue;
    }
    if (exit_code(changed.error().code) == kUnreachable) {
      away = changed.error();
      if (away->code == ErrorCode::kTimeout) away->message = "no answer came for " + id;
    }
    result.refused.push_back({id, std::move(changed.error())});
  }
  return result;
}

Result<bool> confirmed(const Client& client, const std::string& question, bool must_ask) {
  const auto answer = client.console.confirm(question);
  if (answer) return *answer;
  if (!must_ask) return true;
  return fail(ErrorCode::kInvalid,
              "--all needs confirmation and there is no terminal; pass --yes (" + question + ")");
}

Progress progress_of(const Client& client) {
  return [&client](std::size_t done, std::size_t total) {
    client.console.progress(std::to_string(done) + " of " + counted(total, "task"));
  };
}

}  // namespace lictor::cli
