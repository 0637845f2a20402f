#pragma once

// The members of a queue, and which partitions they lead.
//
// A daemon registers in each queue that it serves: members/<node>, held by a session that deletes
// the entry when it ends, and written again every 10 s with the time (`seen`). The locks show what
// the member leads, the key members/<node>/drain that an operator wants it to lead nothing, and its
// admin API that it lives.

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "client/config_digest.h"
#include "client/locks.h"
#include "client/store.h"
#include "lictor/result.h"
#include "wire/fleet.h"

namespace lictor::cluster {

/// A member, from its key below the members prefix. The value may be of another version: missing
/// fields are empty.
struct Member {
  std::string node;  ///< from the key, if the value lacks it
  std::string host{}, pid{}, version{};
  std::vector<std::string> admin{};  ///< URLs of its admin API
  std::string since{};
  bool leads = false;
  std::string config{};  ///< digest of its configuration
  client::ConfigParts parts{};
  std::string reload_error{};  ///< why it keeps an older configuration than its file
  std::string seen{};          ///< when it last wrote its entry, by its own clock; RFC 3339
  std::vector<std::uint32_t> partitions{};  ///< that it leads; 0 in a queue with one partition
  bool draining = false;                    ///< an operator wants it to lead none
  std::vector<std::string> history{};       ///< the queues that it keeps the results of
  wire::QueueNumbers desired_partitions{};  ///< how many it wants each queue to have
  /// Whether its admin API answers; empty if nobody asked it, or it cannot be asked from here. A
  /// dead daemon's API stops long before its session ends.
  std::optional<bool> answers{};
  std::string silence{};  ///< if it does not answer: "its daemon does not answer: ..."
  std::string unready{};  ///< why it cannot work, though it answers; empty: not known, or it can
  std::string next{};     ///< if it leads and may be dead: who may lead, and when
};

/// Reads the value of the member's key.
[[nodiscard]] Member member_of(std::string name, const std::string& value);
/// For commands and the admin API. `queue`: the queue whose desired number of partitions is shown.
[[nodiscard]] nlohmann::ordered_json member_json(const Member& member, const std::string& queue);
/// Null: there is no such member.
[[nodiscard]] const Member* find_member(const std::vector<Member>& members,
                                        const std::string& node);

/// The members in the order of their keys. Without the right to read the locks, nobody leads.
/// Errors: those of Store::list().
[[nodiscard]] Result<std::vector<Member>> read_members(client::Store& store,
                                                       const wire::Layout& layout);
[[nodiscard]] Result<std::vector<Member>> read_members(client::Store& store,
                                                       const wire::Layout& layout,
                                                       const client::Locks& locks);

/// An entry that is older was not written when it should have been, or by a clock that is behind:
/// it is written each 10 s, and one may be late or lost.
inline constexpr std::chrono::seconds kLateEntry{25};
/// Why the member may be dead: its admin API does not answer, or, if nobody asked it, its entry is
/// older than kLateEntry. Follows "<name> leads, but". Empty: no reason.
[[nodiscard]] std::string unresponsive_reason(const Member& member);

using Partitions = std::vector<std::uint32_t>;  ///< in ascending order

/// "0-3,7"
[[nodiscard]] std::string ranges(const Partitions& partitions);
/// "partition 7", "partitions 0-3,7"
[[nodiscard]] std::string partitions_text(const Partitions& partitions);

/// The partitions that nobody leads.
[[nodiscard]] Partitions free_partitions(const client::Locks& locks);
/// The partitions of each leader, by LockView::name().
[[nodiscard]] std::map<std::string, Partitions> partitions_by_leader(const client::Locks& locks);

}  // namespace lictor::cluster
