#include "core/task.h"

#include <algorithm>
#include <tuple>

namespace lictor::core {

WallTime order_time(const Task& task) {
  return task.execute_at ? *task.execute_at : task.task_time.value_or(task.first_seen);
}

bool starts_before(const Task& a, const Task& b) {
  const WallTime time_a = order_time(a);
  const WallTime time_b = order_time(b);
  return std::tie(time_a, a.create_index, a.key) < std::tie(time_b, b.create_index, b.key);
}

std::optional<WallTime> due_of(const Task& task) {
  if (!task.execute_at) return task.stamp.retry_at;
  if (!task.stamp.retry_at) return task.execute_at;
  return std::max(*task.execute_at, *task.stamp.retry_at);
}

}  // namespace lictor::core
