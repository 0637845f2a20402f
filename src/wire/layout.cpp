#include "wire/layout.h"

#include "base/text.h"

namespace lictor::wire {

Layout Layout::under(std::string_view root, std::string_view queue) {
  const std::string base = std::string{root} + std::string{queue} + "/";
  return {base + "tasks/",     base + "leader",   base + "dead/",      base + "done/",
          base + "control",    base + "members/", base + "schedules/", {},
          base + "partitions", base + "rate"};
}

std::string Layout::lock_key(const core::Partition& partition) const {
  if (partition.count == 1) return leader_key;
  return leader_key + "/" + std::to_string(partition.count) + "/" +
         std::to_string(partition.number);
}

std::optional<std::string> Layout::task_id(std::string_view key) const {
  if (!is_task(key)) return std::nullopt;
  return std::string{key.substr(tasks_prefix.size())};
}

std::string Layout::dead_key(std::string_view task_key) const {
  return dead_prefix + task_id(task_key).value_or(std::string{task_key});
}

std::string kv_path(std::string_view key) { return "/v1/kv/" + percent_encoded(key, "-_.~/"); }

std::string query_value(std::string_view text) { return percent_encoded(text, "-_.~"); }

}  // namespace lictor::wire
