#pragma once

// What the daemons of a queue with several partitions read from Consul besides tasks: the number of
// partitions, who takes part, and all locks at once. Pure.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/http.h"
#include "core/event.h"
#include "core/leadership/count_change.h"
#include "wire/consul.h"

namespace lictor::wire {

/// The number of partitions, as the value of its key has it. Errors: kInvalid, it is no number from
/// 1 to core::kMostPartitions.
[[nodiscard]] Result<std::uint32_t> read_count(std::string_view value);

/// By queue, as a member's entry has them: "partitions": {"<queue>": 16}. A queue that is not there
/// has 1.
using QueueNumbers = std::map<std::string, std::uint32_t, std::less<>>;
/// The numbers under `name` in `entry`, each limited to 1 to core::kMostPartitions.
[[nodiscard]] QueueNumbers queue_numbers(const nlohmann::json& entry, const char* name);
[[nodiscard]] std::uint32_t number_of(const QueueNumbers& numbers, std::string_view queue);

/// The answer to read_fleet().
struct FleetRead {
  std::string error;  ///< empty: the rest is there
  std::vector<core::FleetMember> members;
  std::optional<std::uint32_t> count;  ///< of partitions; nothing: Consul has no number
  std::uint64_t count_index = 0;       ///< the ModifyIndex of that number
  struct Lock {
    std::string key;
    core::LeaderRead read;
  };
  std::vector<Lock> locks;  ///< the leader key and all below it, of any number of partitions
};
[[nodiscard]] http::Request read_fleet(const Binding& binding, bool with_locks);
[[nodiscard]] FleetRead decode_fleet(const Binding& binding, const http::Response& response);

/// Writes the number of partitions where there is none, unless one of `locks` has changed.
[[nodiscard]] http::Request create_count(const Binding& binding, std::uint32_t count,
                                         const std::vector<FleetRead::Lock>& locks, WallTime at);
/// Whether there is no such number. It needs the right to write it, as does AcquireLock with
/// if_undivided (Consul 1.8.7): 403 or 409 if that is missing.
[[nodiscard]] http::Request probe_undivided(const Binding& binding);
/// Asks whether the token may change the number of partitions to `to`. Changes nothing.
[[nodiscard]] http::Request probe_change(const Binding& binding, std::uint32_t to);
/// The answer; nothing: Consul gave none. `error`: why not, with the rules to grant if the token may
/// not.
[[nodiscard]] std::optional<bool> may_change(const Binding& binding, const http::Response& response,
                                             std::string& error);
/// Changes the number of partitions from `from`, to none if `to` is 1, while `session` holds all
/// their locks.
[[nodiscard]] http::Request change_count(const Binding& binding, std::uint32_t to,
                                         std::uint32_t from, std::uint64_t count_index,
                                         std::string_view session);
/// Whether such a request was applied. `error`: what Consul answered else, and the rules to grant
/// if it was "Permission denied".
[[nodiscard]] bool is_count_written(const Binding& binding, const http::Response& response,
                                    std::string& error);
[[nodiscard]] bool is_denied(std::string_view error);

/// All locks of a queue, by a blocking query from `index` on.
[[nodiscard]] http::Request watch_locks(const Binding& binding, std::uint32_t count,
                                        std::uint64_t index);
/// By partition. `found` is false where there is no key; each has `consul_index`.
struct LocksRead {
  bool ok = false;
  std::string error;
  std::uint64_t consul_index = 0;
  std::vector<core::LeaderRead> locks;
  bool over_limit = false;  // not ok, because of Consul's limits
};
[[nodiscard]] LocksRead decode_locks(const Binding& binding, std::uint32_t count,
                                     const http::Response& response);

}  // namespace lictor::wire
