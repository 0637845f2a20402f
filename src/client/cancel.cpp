#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/printable.h"
#include "client/change.h"
#include "client/dead_letters.h"
#include "client/task_info.h"
#include "client/unnameable.h"

namespace lictor::client {
namespace {

// Errors: those of a Consul that does not answer, which need not be waited for twice.
Result<Plan> removal_plan(const Queue& queue) {
  // Only for saying whether a claimed task runs, so that not knowing is no obstacle.
  const auto lock = queue.store.get(queue.layout.leader_key);
  if (!lock &&
      (lock.error().code == ErrorCode::kTimeout || lock.error().code == ErrorCode::kUnavailable)) {
    return tl::unexpected(unchanged(lock.error()));
  }
  const Leader leader = lock ? leader_of(*lock) : Leader{};
  const bool known = lock.has_value();
  const auto view = [&queue, leader, known](wire::KvEntry entry) {
    TaskInfo task = view_task(queue.layout, std::move(entry), leader, wall_now());
    if (!known && task.state == TaskState::kOrphan) task.state = TaskState::kRunning;
    return task;
  };
  return Plan{view, plan_removal};
}

// What there is instead of the task.
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
  const auto plan = removal_plan(queue);
  if (!plan) return tl::unexpected(plan.error());
  auto cancelled = change_one(queue, queue.layout.task_key(id), *plan);
  if (cancelled || cancelled.error().code != ErrorCode::kNotFound) return cancelled;
  return tl::unexpected(not_there(queue, id));
}

Result<BulkResult> cancel_tasks(const Queue& queue, const TaskFilter& filter,
                                const Progress& progress) {
  if (filter.state == TaskState::kDead || filter.state == TaskState::kDone) {
    return fail(ErrorCode::kInvalid, "what is dead or done cannot be cancelled");
  }
  auto listed = list_tasks(queue, filter);
  if (!listed) return tl::unexpected(std::move(listed.error()));
  std::vector<BulkResult::Refusal> unnameable;
  std::erase_if(listed->tasks, [&](const TaskInfo& task) {
    if (task.state == TaskState::kUnnameable) {
      unnameable.push_back({task.id,
                            {ErrorCode::kFailed, "cannot cancel " + printable(task.id) + ": " +
                                                     unnameable_hint(queue.layout, task.id)}});
    }
    return task.state >= TaskState::kUnnameable;
  });
  const auto plan = removal_plan(queue);
  if (!plan) return tl::unexpected(plan.error());
  auto result = change_many(queue, std::move(listed->tasks), *plan, progress);
  std::move(unnameable.begin(), unnameable.end(), std::back_inserter(result.refused));
  return result;
}

}  // namespace lictor::client
