#pragma once

// The places of a queue's keys in Consul. These are the defaults; most may be configured one by
// one.
//
//   <root><queue>/tasks/<id>          a task
//                /dead/<id>           a dead letter; later ones dead/<id>,<index>
//                /done/<id>           the history
//                /leader              the lock of the only partition, and who leads
//                /leader/<P>/<n>      the lock of partition n of P
//                /partitions          P; absent: one
//                /members/<node>      a daemon; members/<node>/drain: it is to lead nothing
//                /control             the operators' switches
//                /schedules/<name>    a recurring task
//                /rate                the bucket of rate_limit

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/partition.h"

namespace lictor::wire {

/// A queue's keys (concepts.md, "Keys"). Prefixes end in '/'.
struct Layout {
  std::string tasks_prefix;
  std::string leader_key;
  std::string dead_prefix;
  std::string done_prefix;
  std::string control_key;
  std::string members_prefix;
  std::string schedules_prefix;

  /// A JSON pointer (RFC 6901) to the value in the record that serves as serialKey for a task
  /// without one; empty: such tasks have no serialKey.
  std::string serialize_by{};

  /// Holds the number of partitions; missing: one.
  std::string partitions_key{};

  /// The bucket of the queue's rate_limit; missing: full.
  std::string rate_key{};

  /// The default: everything under `<root><queue>/`.
  [[nodiscard]] static Layout under(std::string_view root, std::string_view queue);

  /// The lock of a partition: the leader key or, with several, "leader/<count>/<number>" below it.
  [[nodiscard]] std::string lock_key(const core::Partition& partition) const;

  /// Whether `key` lies under the tasks' prefix and does not end in '/'.
  [[nodiscard]] bool is_task(std::string_view key) const {
    return key.starts_with(tasks_prefix) && !key.ends_with('/');
  }
  /// The part of the key after the tasks' prefix; std::nullopt if the key is not a task's.
  [[nodiscard]] std::optional<std::string> task_id(std::string_view key) const;
  [[nodiscard]] std::string task_key(std::string_view id) const {
    return tasks_prefix + std::string{id};
  }
  /// "dead/<id>", the name of the task's first dead letter.
  [[nodiscard]] std::string dead_key(std::string_view task_key) const;
  [[nodiscard]] std::string schedule_key(std::string_view name) const {
    return schedules_prefix + std::string{name};
  }
};

/// `key` as the path of a request to Consul: everything but unreserved characters and '/' is
/// percent-encoded (RFC 3986).
[[nodiscard]] std::string kv_path(std::string_view key);

/// Percent-encodes a query's value.
[[nodiscard]] std::string query_value(std::string_view text);

/// The name of the session that holds a member's entries.
[[nodiscard]] inline std::string member_session_name(const std::string& node) {
  return "lictor member " + node;
}

}  // namespace lictor::wire
