#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lictor::wire {

/// Where a queue's keys lie (DESIGN section 2), and what they are to be read by. Prefixes end in
/// '/'.
struct Layout {
  std::string tasks_prefix;
  std::string leader_key;
  std::string dead_prefix;
  std::string done_prefix;
  std::string control_key;
  std::string members_prefix;

  /// A JSON pointer (RFC 6901) into the record to what serves as serialKey where a task has none;
  /// empty: nothing does.
  std::string serialize_by{};

  /// The default: everything under `<root><queue>/`.
  [[nodiscard]] static Layout under(std::string_view root, std::string_view queue);

  /// Whether `key` lies under the tasks' prefix and does not end in '/'.
  [[nodiscard]] bool is_task(std::string_view key) const {
    return key.starts_with(tasks_prefix) && !key.ends_with('/');
  }
  /// The key's part after the tasks' prefix; nothing when it is no task's.
  [[nodiscard]] std::optional<std::string> task_id(std::string_view key) const;
  [[nodiscard]] std::string task_key(std::string_view id) const {
    return tasks_prefix + std::string{id};
  }
  /// "dead/<id>", then "dead/<id>~2", "dead/<id>~3", ...
  [[nodiscard]] std::string dead_key(std::string_view task_key, std::uint32_t copy) const;
  /// What all of these but the first begin with.
  [[nodiscard]] std::string dead_copies_prefix(std::string_view task_key) const {
    return dead_key(task_key, 1) + '~';
  }
  [[nodiscard]] std::string done_key(std::string_view task_key) const;
};

/// `key` as the path of a request to Consul: everything but unreserved characters and '/' is
/// percent-encoded (RFC 3986).
[[nodiscard]] std::string kv_path(std::string_view key);

/// Percent-encodes a query's value.
[[nodiscard]] std::string query_value(std::string_view text);

}  // namespace lictor::wire
