#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/admin_client.h"
#include "cli/commands.h"
#include "client/config_parts.h"
#include "client/locks.h"
#include "core/partition.h"
#include "lictor/result.h"
#include "net/transport.h"
#include "wire/fleet.h"

namespace lictor::cli {

/// A member, from its key below the members prefix. The value may be of another version: missing
/// fields are empty.
struct Member {
  std::string node;  ///< from the key, if the value lacks it
  std::string host{}, pid{}, version{};
  std::vector<std::string> admin{};  ///< URLs of its admin face
  std::string since{};
  bool leads = false;
  std::string config{};  ///< digest of its configuration
  client::ConfigParts parts{};
  std::string reload_error{};  ///< why it keeps an older configuration than its file
  std::string seen{};          ///< when it last wrote its entry, by its own clock; RFC 3339
  std::vector<std::uint32_t> partitions{};  ///< that it leads; of an undivided queue 0
  bool draining = false;                    ///< an operator wants it to lead none
  std::vector<std::string> history{};       ///< the queues that it keeps the results of
  wire::QueueNumbers wishes{}, weights{};   ///< how many partitions it wants, and its weight
};

/// In the order of their keys. Without the right to read the locks, nobody leads. Errors: those of
/// Store::list().
[[nodiscard]] Result<std::vector<Member>> read_members(Store& store, const wire::Layout& layout);
[[nodiscard]] Result<std::vector<Member>> read_members(Store& store, const wire::Layout& layout,
                                                       const client::Locks& locks);

/// The member `node`. Nothing: there is none, or the token may not read it.
[[nodiscard]] std::optional<Member> read_member(Store& store, const wire::Layout& layout,
                                                const std::string& node);

/// The leader key, or the lock of a partition. Another version or program may have written its
/// value.
struct Lock {
  std::string session;      ///< empty: nobody holds it
  nlohmann::json value;     ///< an object
  std::uint64_t index = 0;  ///< 0: there is no such key
  core::Partition partition{};

  /// A field of the value; empty: there is none.
  [[nodiscard]] std::string text(const char* field) const;
  /// Of the leader; empty: nobody leads.
  [[nodiscard]] std::string name() const;
};
[[nodiscard]] Lock lock_of(const std::optional<wire::KvEntry>& entry,
                           core::Partition partition = {});
[[nodiscard]] Lock lock_of(const client::Locks& locks, std::uint32_t partition);
/// Of an undivided queue.
[[nodiscard]] Result<Lock> read_lock(Store& store, const wire::Layout& layout);

/// How a member's admin face can be asked from the host called `own_host`.
struct Reach {
  std::vector<std::string> addresses;  ///< none: it cannot
  std::string why_not;                 ///< then, with the way out
};
[[nodiscard]] Reach reach_of(const Member& member, std::string_view own_host);

/// Whether a member's admin face answers. A dead daemon's stops long before its session ends.
struct Pulse {
  std::optional<bool> answers;  ///< nothing: it cannot be asked from here
  std::string silence;          ///< if it does not: "its daemon does not answer: ..."
};
/// Blocks, for `limit` at most.
[[nodiscard]] Pulse pulse_of(const Member& member,
                             std::chrono::milliseconds limit = std::chrono::seconds{5});
/// The limit where the answer is only an addition to the output.
inline constexpr std::chrono::milliseconds kGlance{1'000};
/// Asks all, several at once.
[[nodiscard]] std::vector<Pulse> pulses_of(const std::vector<Member>& members);

/// A member writes its entry each 10s; one may be late or lost, and clocks differ.
inline constexpr Duration kSilent = std::chrono::seconds{25};
/// Why the member may be dead: its face does not answer, or it was not seen for kSilent. Follows
/// "<name> leads, but". Empty: no reason.
[[nodiscard]] std::string doubt_of(const Member& member, const Pulse& pulse);

}  // namespace lictor::cli
