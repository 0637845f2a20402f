#include "core/task.h"

#include <algorithm>

#include "core/mutant.h"

namespace lictor::core {

Order order_of(const Task& task) {
  const WallTime time =
      task.execute_at ? *task.execute_at : task.task_time.value_or(WallTime::min());
  return {time, task.create_index, task.key};
}

std::optional<WallTime> due_of(const Task& task) {
  if (!task.execute_at || mutant(Mutant::kIgnoreExecuteAt)) return task.stamp.retry_at;
  if (!task.stamp.retry_at) return task.execute_at;
  return std::max(*task.execute_at, *task.stamp.retry_at);
}

}  // namespace lictor::core
