#include "core/task.h"

#include <algorithm>
#include <tuple>

#include "base/text.h"

namespace lictor::core {

std::string claim_nonce(std::string_view process, std::uint64_t attempt) {
  return std::string{process} + '-' + std::to_string(attempt);
}

bool is_up_to(std::string_view nonce, std::string_view last) {
  const auto split = [](std::string_view text) {
    const std::size_t hyphen = std::min(text.rfind('-'), text.size());
    return std::pair{text.substr(0, hyphen),
                     to_number<std::uint64_t>(text.substr(std::min(hyphen + 1, text.size())))};
  };
  const auto [process, attempt] = split(nonce);
  const auto [last_process, last_attempt] = split(last);
  return attempt && last_attempt && process == last_process && *attempt <= *last_attempt;
}

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
