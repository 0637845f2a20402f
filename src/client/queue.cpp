#include "client/queue.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/printable.h"
#include "base/random.h"
#include "base/try.h"
#include "client/change.h"
#include "client/control.h"
#include "client/dead_letters.h"
#include "client/retry.h"
#include "client/task_id.h"
#include "client/task_info.h"
#include "wire/consul.h"
#include "wire/transaction_plan.h"

namespace lictor::client {
namespace {

// Errors: Consul does not answer.
Result<Plan> removal_plan(const Queue& queue) {
  // Only needed to describe a claimed task, so other errors are ignored.
  const auto lock = queue.store.get(queue.layout.leader_key);
  if (!lock && is_temporary(lock.error())) return tl::unexpected(unchanged(lock.error()));
  const auto view = [&queue, leader = leader_if_known(lock)](wire::KvEntry entry) {
    return view_task(queue.layout, std::move(entry), leader, wall_now());
  };
  return Plan{view, plan_removal};
}

// The error for a task that neither waits nor runs.
Error not_there(const Queue& queue, const std::string& id) {
  const std::string what =
      "no task " + printable(id) + " in queue \"" + queue.name + "\" waits or runs";
  const auto letters = dead_letters_of(queue, id);
  if (letters && !letters->empty()) {
    return {ErrorCode::kNotFound, what + ": it is dead (" + printable(letters->back().reason) +
                                      "); \"lictor dead purge\" deletes a dead letter"};
  }
  const auto done = queue.store.get(queue.done_key(id));
  if (done && *done) return {ErrorCode::kNotFound, what + ": it is done"};
  const std::string hint = unnameable_hint(queue.layout, id);
  return {ErrorCode::kNotFound, what + "; " + (hint.empty() ? "it may be done" : hint)};
}

}  // namespace

Result<TaskInfo> cancel_task(const Queue& queue, const std::string& id) {
  LICTOR_TRY(const auto plan, removal_plan(queue));
  auto cancelled = change_one(queue, queue.layout.task_key(id), plan);
  if (cancelled || cancelled.error().code != ErrorCode::kNotFound) return cancelled;
  return tl::unexpected(not_there(queue, id));
}

Result<BulkResult> cancel_tasks(const Queue& queue, const TaskFilter& filter,
                                const Progress& progress) {
  if (filter.state == TaskState::kDead || filter.state == TaskState::kDone) {
    return fail(ErrorCode::kInvalid, "dead and done tasks cannot be cancelled");
  }
  LICTOR_TRY(auto listed, list_tasks(queue, filter));
  std::vector<BulkResult::Refusal> unnameable;
  std::erase_if(listed.tasks, [&](const TaskInfo& task) {
    if (task.state == TaskState::kUnnameable) {
      unnameable.push_back({task.id,
                            {ErrorCode::kFailed, "cannot cancel " + printable(task.id) + ": " +
                                                     unnameable_hint(queue.layout, task.id)}});
    }
    return task.state >= TaskState::kUnnameable;
  });
  LICTOR_TRY(const auto plan, removal_plan(queue));
  auto result = change_many(queue, std::move(listed.tasks), plan, progress);
  std::move(unnameable.begin(), unnameable.end(), std::back_inserter(result.refused));
  return result;
}

namespace {

auto view_letters_of(const Queue& queue) {
  return [&queue](wire::KvEntry entry) { return view_dead_letter(queue.layout, std::move(entry)); };
}

Plan retry_plan(const Queue& queue, bool drop_expiry) {
  const auto change = [&queue, drop_expiry](const TaskInfo& letter) -> Result<PlannedChange> {
    PlannedChange planned;
    auto record = retried_record(letter.record, wall_now(), drop_expiry);
    if (!record) {
      return fail(record.error().code,
                  "dead letter " + printable(letter.id) + ": " + record.error().message);
    }
    const std::string id = task_of_letter(letter);
    const std::string key = queue.layout.task_key(id);
    planned.conflict = "task " + printable(id) + " exists in queue \"" + queue.name +
                       "\", so its dead letter " + printable(letter.id) + " was left as it is";
    planned.change = removal(letter.key, letter.modify_index);
    if (const std::size_t most = wire::record_limit(queue.layout, key); record->size() > most) {
      return fail(ErrorCode::kTooLarge, "dead letter " + printable(letter.id) + ": its record of " +
                                            std::to_string(record->size()) +
                                            " bytes is too large to be claimed (at most " +
                                            std::to_string(most) +
                                            "); submit the task anew, smaller");
    }
    planned.change.insert(planned.change.begin() + 1,
                          {Store::Op::Verb::kCas, key, 0, std::move(*record)});
    return planned;
  };
  return {view_letters_of(queue), change};
}

Plan purge_plan(const Queue& queue) { return {view_letters_of(queue), plan_removal}; }

Error no_letter(const Queue& queue, const std::string& id) {
  return {ErrorCode::kNotFound, "no dead letter " + printable(id) + " in queue \"" + queue.name +
                                    "\" (" + queue.layout.dead_prefix + ")"};
}

Result<TaskList> list_letters(const Queue& queue, TaskFilter filter) {
  filter.state = TaskState::kDead;
  return list_tasks(queue, filter);
}

}  // namespace

Result<TaskInfo> retry_task(const Queue& queue, const std::string& id, bool drop_expiry) {
  LICTOR_TRY(const auto letters, dead_letters_of(queue, id));
  if (letters.empty()) return tl::unexpected(no_letter(queue, id));
  const auto newest = std::max_element(
      letters.begin(), letters.end(),
      [](const auto& a, const auto& b) { return a.create_index < b.create_index; });
  return change_one(queue, newest->key, retry_plan(queue, drop_expiry));
}

Result<BulkResult> retry_tasks(const Queue& queue, const TaskFilter& filter, bool drop_expiry,
                               const Progress& progress) {
  LICTOR_TRY(auto listed, list_letters(queue, filter));
  // Only the newest letter of each task: the others would conflict with it.
  std::map<std::string, std::uint64_t> newest;
  for (const TaskInfo& letter : listed.tasks) {
    std::uint64_t& index = newest[task_of_letter(letter)];
    index = std::max(index, letter.create_index);
  }
  std::vector<TaskInfo> chosen;
  std::vector<BulkResult::Refusal> left;
  for (TaskInfo& letter : listed.tasks) {
    const std::string task = task_of_letter(letter);
    if (letter.create_index == newest[task]) {
      chosen.push_back(std::move(letter));
    } else {
      left.push_back({letter.id,
                      {ErrorCode::kConflict,
                       "task " + printable(task) + " has a newer dead letter, which was chosen"}});
    }
  }
  BulkResult result =
      change_many(queue, std::move(chosen), retry_plan(queue, drop_expiry), progress);
  std::move(left.begin(), left.end(), std::back_inserter(result.refused));
  return result;
}

Result<TaskInfo> purge_letter(const Queue& queue, const std::string& id) {
  auto purged = change_one(queue, queue.layout.dead_prefix + id, purge_plan(queue));
  if (purged || purged.error().code != ErrorCode::kNotFound) return purged;
  return tl::unexpected(no_letter(queue, id));
}

Result<BulkResult> purge_letters(const Queue& queue, const TaskFilter& filter,
                                 const Progress& progress) {
  LICTOR_TRY(auto listed, list_letters(queue, filter));
  return change_many(queue, std::move(listed.tasks), purge_plan(queue), progress);
}

namespace {

constexpr int kTries = 10;  // more than that many operators at once?

// False: `change` returned nothing, since there is nothing to do.
Result<bool> change_control(
    const Queue& queue,
    const std::function<Result<std::optional<std::string>>(std::string_view control)>& change) {
  const std::string& key = queue.layout.control_key;
  return retry_conflicts(key, kTries, [&]() -> std::optional<Result<bool>> {
    const auto control = queue.store.get(key);
    if (!control) return tl::unexpected(control.error());
    const auto value = change(*control ? std::string_view{(*control)->value} : "");
    if (!value) return fail(value.error().code, key + ": " + value.error().message);
    if (!*value) return false;
    LICTOR_TRY(const auto written,
               queue.store.replace(key, *control ? (*control)->modify_index : 0, **value));
    if (written) return true;
    return std::nullopt;
  });
}

std::string whoever(const std::string& by) { return by.empty() ? who_asks() : by; }

}  // namespace

Result<bool> pause_queue(const Queue& queue, const std::string& reason, const std::string& by) {
  return change_control(queue, [&](std::string_view control) -> std::optional<std::string> {
    if (wire::control_fault(control).empty() && read_pause(control).paused) return std::nullopt;
    return with_pause(control, whoever(by), wall_now(), reason);
  });
}

Result<bool> resume_queue(const Queue& queue, const std::string& by) {
  return change_control(queue, [&](std::string_view control) -> std::optional<std::string> {
    if (!read_pause(control).paused) return std::nullopt;
    return with_resume(control, whoever(by), wall_now());
  });
}

Result<PauseState> pause_state(const Queue& queue) {
  const auto control = queue.store.get(queue.layout.control_key);
  if (!control) return tl::unexpected(control.error());
  return *control ? read_pause((*control)->value) : PauseState{};
}

Result<void> ask_to_step_down(const Queue& queue) {
  Random random{random_seed()};
  const std::string id = random.hex();
  const auto asked =
      change_control(queue, [&](std::string_view control) -> Result<std::optional<std::string>> {
        if (const std::string fault = wire::control_fault(control); !fault.empty()) {
          return fail(ErrorCode::kInvalid, fault +
                                               "; the leader reads no request in it: run \"lictor "
                                               "resume\" or \"lictor pause\" to correct it");
        }
        return with_step_down(control, id, who_asks(), wall_now());
      });
  if (!asked) return tl::unexpected(asked.error());
  return {};
}

}  // namespace lictor::client
