#pragma once

// The state of a key under the tasks' prefix. Each known key is in exactly one.
//
//                       listed
//                          |
//                          v             near its time
//                       unread <------------------------------------ distant
//                          |                                            ^
//                          | read, and where its order counts all of    |
//                          | its generation: `placed` by its record     |
//                          v                                            |
//   +--> waiting, ignored, unreadable, distant <------------------------+
//   |       |                  |                                        |
//   |       | lacks nothing:   +--> burying (also what expired): never  |
//   |       | claim                    |         claimed                |
//   |       v                          | written                        |
//   |    claiming --- a newer version was seen ---> checking -----------+
//   |       | applied                  |               | unchanged      |
//   |       v                          |               |               |
//   |    claimed <---------------------|---------------+   rewritten   |
//   |       |  ------------------------|------------------> placed -----+
//   |       | start                    |
//   |       v                          |
//   |    running ----------------------|--> leftover (leadership was lost)
//   |       | exit                     |
//   |       v                          v
//   +--- ending -------------------> deleted (kept until no answer that is older can come)
//    to try again      written         +--> forgotten
//
// A waiting task lacks at most one thing (Lack) and stands in the order of what it lacks; a freed
// one wakes its first.
//
// A task of a partition that this host does not hold is `foreign`, whatever its state at its own
// leader. It is read again when the partition is won, and becomes foreign again, from any state,
// when the partition is lost.
//
// In every state but `leftover` a key that is gone from Consul becomes deleted: at once if no write
// or job of ours is under way for it, otherwise when that has ended. A scheduled task can be
// claimed ahead of its time. The manual, concepts.md, says the same for users.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace lictor::core {

enum class TaskState : std::uint8_t {
  kUnread,      // its key is known; its value, or those of its generation, are being read
  kForeign,     // of a partition that this host does not hold: only its key and version are kept
  kDistant,     // due much later: only its key, version and time are kept
  kWaiting,     // for its turn, or for its Lack
  kIgnored,     // left in place, because of its Lack
  kUnreadable,  // its value is no task: to become a dead letter
  kClaiming,    // the claim is on its way to Consul
  kChecking,    // claimed, but a newer version was seen: it is read again before it starts
  kClaimed,     // waits for a free slot, or, claimed ahead, for its time
  kRunning,     // its job runs, or was asked to end (Attempt::stop)
  kEnding,    // its end is on its way to Consul: finish, retry, given back, dead letter; or it was
              // withdrawn, and whether it was written again is being read
  kBurying,   // on its way to the dead letters without ever having been claimed
  kLeftover,  // a job of an earlier term that still runs
  kDeleted,   // gone; remembered while an older answer could still show it
};

inline constexpr std::size_t kTaskStates = static_cast<std::size_t>(TaskState::kDeleted) + 1;

/// The reason why a key cannot be claimed.
enum class Lack : std::uint8_t {
  kNothing,  // due, and the next of its order may be claimed
  // For a waiting task:
  kTime,       // not before executeAt
  kBackoff,    // not before taskRetryAt, after a failure
  kStore,      // Consul refused the claim; tried again a little later
  kSerialKey,  // due, behind another task of its serialKey
  kSlot,       // due, but its executor takes no more: all its slots are taken, or this host could
               // not start its last job; or its partition is being given up
  kExecutor,   // the configuration has none for its type
  // For an ignored key:
  kRoom,  // does not fit into a transaction
  kName,  // its key is not UTF-8, so no request can name it
};

inline constexpr std::size_t kLacks = static_cast<std::size_t>(Lack::kName) + 1;

/// Names as in the manual and metrics. A waiting or ignored key is named by its lack.
[[nodiscard]] std::string_view name_of(TaskState state);
[[nodiscard]] std::string_view name_of(Lack lack);

/// Whether one step leads from one state to the other: the arrows of the diagram above.
[[nodiscard]] bool may_become(TaskState from, TaskState to);

/// Whether the state has a Lack.
[[nodiscard]] constexpr bool has_lack(TaskState state) {
  return state == TaskState::kWaiting || state == TaskState::kIgnored;
}
/// Whether its job runs on this host.
[[nodiscard]] constexpr bool has_job(TaskState state) {
  return state == TaskState::kRunning || state == TaskState::kLeftover;
}
/// Whether the task has an Attempt and holds its serialKey: from the claim to its end.
[[nodiscard]] constexpr bool is_ours(TaskState state) {
  return state == TaskState::kClaiming || state == TaskState::kChecking ||
         state == TaskState::kClaimed || state == TaskState::kRunning ||
         state == TaskState::kEnding;
}

}  // namespace lictor::core
