// Findings about the tasks and dead letters of a queue.
//
// Failures are grouped by type and error_kind(), so that a thousand dead letters of one cause are
// one line. The largest groups are named first.
//
//   TaskFacts::add()  dead --> dead_
//                     waits with an error --> unstarted_ (this host's fault) or again_ (the job's)
//                     waits --> types_, for those that nobody runs

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/printable.h"
#include "base/text.h"
#include "client/task_info.h"
#include "cluster/diagnosis.h"
#include "core/task.h"

namespace lictor::cluster {
namespace {

// "Mail: exit status 1"
std::string failure_of(const TaskInfo& task) {
  const std::string& cause = task.error.empty() ? task.reason : task.error;
  return (task.type.empty() ? "no type" : task.type) + ": " +
         excerpt(client::error_kind(cause, task.reason));
}

// "3 of Mail: exit status 1, ...": the largest parts.
std::string parts_of(const std::map<std::string, std::size_t>& counts) {
  std::vector<std::pair<std::string, std::size_t>> parts{counts.begin(), counts.end()};
  std::stable_sort(parts.begin(), parts.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::string> texts;
  texts.reserve(parts.size());
  for (const auto& [what, count] : parts) texts.push_back(fmt::format("{} of {}", count, what));
  return some(texts);
}

// "42, 43: no such file; 44: no memory": the first causes.
std::string ids_by_cause(const std::map<std::string, std::vector<std::string>>& by_cause) {
  constexpr std::size_t kNamed = 3;
  std::vector<std::string> texts;
  for (const auto& [cause, ids] : by_cause) {
    texts.push_back(texts.size() == kNamed ? "..." : some(ids) + ": " + cause);
    if (texts.size() > kNamed) break;
  }
  return fmt::format("{}", fmt::join(texts, "; "));
}

Finding warning(const char* kind, std::string what, std::string remedy) {
  return {kind, Finding::Severity::kWarning, std::move(what), std::move(remedy)};
}

}  // namespace

void TaskFacts::add(const TaskInfo& task) {
  if (task.state == TaskState::kDead) {
    ++all_dead_;
    ++dead_[failure_of(task)];
    const bool readable = task.reason != "unreadable";
    if (dead_example_.empty() || (readable && !example_is_readable_)) {
      dead_example_ = task.id;
      example_is_expired_ = task.reason == "expired";
      example_is_readable_ = readable;
    }
    return;
  }
  if (task.state == TaskState::kUnnameable) unnameable_.push_back(task.key);
  if (task.state == TaskState::kUnreadable) unreadable_.push_back(task.id);
  if (task.state == TaskState::kTooLarge) too_large_.push_back(task.id);
  if (task.state == TaskState::kOrphan) ++orphans_;
  const bool waits = task.state == TaskState::kWaiting || task.state == TaskState::kScheduled;
  if (waits || task.state == TaskState::kOrphan) ++types_[task.type];
  if (!waits || task.error.empty()) return;
  if (task.state == TaskState::kWaiting && task.error.starts_with(core::kNotStartedError)) {
    ++all_unstarted_;
    unstarted_[task.error.substr(core::kNotStartedError.size())].push_back(task.id);
  } else {
    ++waiting_again_;
    ++again_[failure_of(task)];
  }
}

Findings TaskFacts::failures() const {
  Findings found;
  if (all_dead_ != 0) {
    found.push_back(warning(
        "dead_letters", counted(all_dead_, "dead letter") + ": " + parts_of(dead_),
        example_is_readable_
            ? fmt::format("\"lictor list --state dead\" names them, \"lictor show {0}\" shows "
                          "one; repair the cause, then \"lictor retry{1} {0}\" or \"lictor dead "
                          "purge {0}\"",
                          shell_argument(dead_example_),
                          example_is_expired_ ? " --drop-expiry" : "")
            : fmt::format("\"lictor dead show {}\" shows one; their producers have to write them "
                          "again; then \"lictor dead purge --all --reason unreadable\"",
                          shell_argument(dead_example_))));
  }
  if (orphans_ != 0) {
    found.push_back(
        warning("orphans",
                counted(orphans_, "task") + " lost " + (orphans_ == 1 ? "its" : "their") +
                    " owner while running",
                "the next leader runs each again, and counts a lost owner unless its daemon "
                "lives"));
  }
  if (!unstarted_.empty()) {
    found.push_back(
        warning("not_started",
                fmt::format("{} could not be started: {}", counted(all_unstarted_, "task"),
                            ids_by_cause(unstarted_)),
                "no attempt was counted, and the leader tries again; repair that host, or move "
                "leadership (\"lictor leader --step-down\")"));
  }
  if (waiting_again_ != 0) {
    found.push_back(warning(
        "failing",
        counted(waiting_again_, "task") + " failed and will be tried again: " + parts_of(again_),
        "\"lictor list --state retrying\" shows when; cancel those that cannot succeed"));
  }
  return found;
}

Findings TaskFacts::idle(const TypeFault& type_fault, std::size_t most_bytes) const {
  Findings found;
  std::vector<std::string> types;
  std::size_t idle = 0;
  std::string fault;
  for (const auto& [type, count] : types_) {
    const std::string own = type_fault(type);
    if (own.empty()) continue;
    fault = own;
    idle += count;
    types.push_back(fmt::format("\"{}\" ({})", excerpt(type), count));
  }
  if (idle != 0) {
    found.push_back(warning("no_executor",
                            fmt::format("{} of {} {}: {}", counted(idle, "task"),
                                        types.size() == 1 ? "a type" : "types", fault, some(types)),
                            "add an executor for it, or for \"*\", to the daemons' configuration, "
                            "then: systemctl reload lictor"));
  }
  const auto add = [&](const char* kind, const std::vector<std::string>& ids, const char* noun,
                       const char* what, const std::string& remedy) {
    if (ids.empty()) return;
    found.push_back(
        warning(kind, fmt::format("{}{}: {}", counted(ids.size(), noun), what, some(ids)), remedy));
  };
  add("unnameable", unnameable_, "key", " not in UTF-8",
      "they are never run, since Consul lists them under other bytes; delete them by the bytes "
      "they were written with; \"lictor show ID\" says how");
  add("unreadable", unreadable_, "unreadable record", "",
      "a leader makes them dead letters; \"lictor show ID\" says what is wrong");
  add("too_large", too_large_, "record", " too large to be claimed",
      fmt::format("they are never run; write them smaller (one transaction holds records of up to "
                  "{} bytes, less what a longer key takes) or delete them",
                  most_bytes));
  return found;
}

std::string some(const std::vector<std::string>& names) {
  constexpr std::size_t kNamed = 3;
  const std::size_t named = std::min(names.size(), kNamed);
  return fmt::format("{}{}", fmt::join(names.data(), names.data() + named, ", "),
                     named < names.size() ? ", ..." : "");
}

}  // namespace lictor::cluster
