#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/printable.h"
#include "client/dead_letters.h"
#include "client/queue.h"
#include "client/task_id.h"
#include "client/task_info.h"

namespace lictor::client {
namespace {

bool wanted(const TaskInfo& task, const TaskFilter& filter) {
  if (filter.state) {
    const bool orphan = *filter.state == TaskState::kRunning && task.state == TaskState::kOrphan;
    if (task.state != *filter.state && !orphan) return false;
  }
  if (!filter.type.empty() && task.type != filter.type) return false;
  if (!filter.reason.empty() && task.reason != filter.reason) return false;
  return !filter.before || (task.since && *task.since < *filter.before);
}

// Sorts pointers: a TaskInfo is large, so move each once.
std::vector<TaskInfo> in_listed_order(std::vector<TaskInfo> tasks) {
  std::vector<TaskInfo*> order;
  order.reserve(tasks.size());
  for (TaskInfo& task : tasks) order.push_back(&task);
  std::sort(order.begin(), order.end(),
            [](const TaskInfo* a, const TaskInfo* b) { return listed_before(*a, *b); });
  std::vector<TaskInfo> ordered;
  ordered.reserve(tasks.size());
  for (TaskInfo* task : order) ordered.push_back(std::move(*task));
  return ordered;
}

using View = TaskInfo (*)(const wire::Layout&, wire::KvEntry);

// Adds the dead letters or the history. `required`: a missing right is an error.
Result<void> gather_ended(const Queue& queue, const std::string& prefix, View view,
                          const TaskFilter& filter, bool required, TaskList& gathered) {
  auto listed = queue.store.list(prefix);
  const bool denied = !listed && listed.error().code == ErrorCode::kPermissionDenied;
  if (!listed && (!denied || required)) return tl::unexpected(std::move(listed.error()));
  if (denied || listed->hidden) gathered.hidden.push_back(prefix);
  if (denied) return {};
  for (wire::KvEntry& entry : listed->entries) {
    if (entry.key.ends_with('/')) continue;
    TaskInfo task = view(queue.layout, std::move(entry));
    if (wanted(task, filter)) gathered.tasks.push_back(std::move(task));
  }
  return {};
}

Result<void> gather_tasks(const Queue& queue, const TaskFilter& filter, TaskList& gathered) {
  auto listed = queue.store.list(queue.layout.tasks_prefix);
  if (!listed) return tl::unexpected(std::move(listed.error()));
  const auto lock = queue.store.get(queue.layout.leader_key);
  if (!lock && lock.error().code != ErrorCode::kPermissionDenied) {
    return tl::unexpected(lock.error());
  }
  const Leader leader = leader_if_known(lock);
  if (listed->hidden) gathered.hidden.push_back(queue.layout.tasks_prefix);
  const UnnameableKeys unnameable{queue.store, listed->entries};
  gathered.tasks.reserve(listed->entries.size());
  for (wire::KvEntry& entry : listed->entries) {
    if (!queue.layout.task_id(entry.key)) continue;  // a folder
    TaskInfo task = view_task(queue.layout, std::move(entry), leader, wall_now());
    unnameable.mark(task);
    if (wanted(task, filter)) gathered.tasks.push_back(std::move(task));
  }
  return {};
}

}  // namespace

Result<TaskList> list_tasks(const Queue& queue, const TaskFilter& filter) {
  TaskList gathered;
  Result<void> read;
  const bool ended = filter.state == TaskState::kDead || filter.state == TaskState::kDone;
  if (!ended) read = gather_tasks(queue, filter, gathered);
  if (read && (!filter.state || filter.state == TaskState::kDead)) {
    read = gather_ended(queue, queue.layout.dead_prefix, view_dead_letter, filter,
                        filter.state.has_value(), gathered);
  }
  if (read && filter.state == TaskState::kDone) {
    read = gather_ended(queue, queue.layout.done_prefix, view_done, filter, true, gathered);
  }
  if (!read) return tl::unexpected(std::move(read.error()));
  gathered.tasks = in_listed_order(std::move(gathered.tasks));
  return gathered;
}

Result<std::vector<TaskInfo>> show_task(const Queue& queue, const std::string& id) {
  std::vector<TaskInfo> found;
  auto task = queue.store.get(queue.layout.task_key(id));
  if (!task) return tl::unexpected(std::move(task.error()));
  if (*task) {
    const auto lock = queue.store.get(queue.layout.leader_key);
    found.push_back(view_task(queue.layout, **std::move(task), leader_if_known(lock), wall_now()));
  }
  auto letters = dead_letters_of(queue, id);
  if (letters) std::move(letters->begin(), letters->end(), std::back_inserter(found));
  auto done = queue.store.get(queue.done_key(id));
  if (done && *done) found.push_back(view_done(queue.layout, std::move(**done)));
  if (!found.empty()) return found;

  // Without all rights, "not found" cannot be known.
  if (!letters) return tl::unexpected(std::move(letters.error()));
  if (!done && done.error().code != ErrorCode::kPermissionDenied) {
    return tl::unexpected(std::move(done.error()));
  }
  const std::string hint = unnameable_hint(queue.layout, id);
  return fail(
      ErrorCode::kNotFound,
      "no task " + printable(id) + " in queue \"" + queue.name + "\", neither waiting nor dead" +
          (hint.empty() ? " (looked at " + printable(queue.layout.task_key(id)) + " and below " +
                              queue.layout.dead_prefix +
                              "); a task that is done is gone, unless the queue keeps a history"
                        : "; " + hint));
}

}  // namespace lictor::client
