#pragma once

// What the core knows of a key under the tasks' prefix. Each known key is in one of these states.
//
//                       listed
//                          |
//                          v             near its time
//                       unread <------------------------------------ distant
//                          |                                            ^
//                          | read, and where its order counts all of    |
//                          | its generation: `placed` by its record     |
//                          v                                            |
//   +--> scheduled, retrying, ready, no executor, too large, unreadable, distant <--+
//   |        |         |       |                               |                    |
//   |        | due     | due   +--> blocked (its serialKey is busy) --> ready       |
//   |        v         v       +--> limited (its executor takes no more) -------+   |
//   |        +-------> ready <--------------------------------------------------+   |
//   |                    |                                                          |
//   |                    | claim                                                    |
//   |                    v                                                          |
//   |   refused <---- claiming --- a newer version was seen ---> checking ----------+
//   |   (tried again)    | applied                                  | unchanged      |
//   |                    v                                          |               |
//   |                 claimed <-------------------------------------+   rewritten   |
//   |                    |  -----------------------------------------------> placed +
//   |                    | start
//   |                    v
//   |                 running --> stopping (withdrawn, timed out, drain, lease) --> leftover
//   |                    |           |                              (leadership was lost)
//   |                    | exit      | exit
//   |                    v           v
//   +-- to try again -- ending <-----+      burying (expired or unreadable: never claimed)
//                        |                     |
//                        | written             | written
//                        v                     v
//                     deleted (kept until no answer that is older can come) --> forgotten
//
// A task of a partition that this host does not hold is `foreign`, in whatever state it is for its
// own leader: read again when the partition is won, and foreign again, from any state, when it is
// lost.
//
// In every state but `leftover` a key that is gone from Consul becomes deleted: at once if nothing
// of ours is under way for it, else when that has ended. A scheduled task can be claimed ahead of
// its time. The manual, concepts.md, says the same for users.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace lictor::core {

enum class TaskState : std::uint8_t {
  kUnread,      // its key is known, its value, or that of others of its generation, is being read
  kForeign,     // of a partition that this host does not hold: only its key and version are kept
  kDistant,     // due much later: only its key, version and time are kept
  kScheduled,   // not before executeAt
  kRetrying,    // not before taskRetryAt, after a failure
  kRefused,     // Consul refused the claim; tried again a little later
  kReady,       // due
  kBlocked,     // due, behind another task of its serialKey
  kLimited,     // due, but its executor takes no more: all its slots are taken, or this host could
                // not start its last job; or its partition is being given up
  kNoExecutor,  // the configuration has no executor for its type
  kTooLarge,    // does not fit into a transaction: left where it is
  kUnnameable,  // its key is not UTF-8, so that no request can name it: left where it is
  kUnreadable,  // its value is no task: to become a dead letter
  kClaiming,    // the claim is on its way to Consul
  kChecking,    // claimed, but a newer version was seen: it is read again before it starts
  kClaimed,     // waits for a free slot, or, claimed ahead, for its time
  kRunning,     // its job runs
  kStopping,    // its job was asked to end
  kEnding,      // its end is on its way to Consul: finish, retry, given back, dead letter
  kBurying,     // on its way to the dead letters without ever having been claimed
  kLeftover,    // a job of an earlier term that still runs
  kDeleted,     // gone; remembered while an older answer could still show it
};

inline constexpr std::size_t kTaskStates = static_cast<std::size_t>(TaskState::kDeleted) + 1;

/// The state in words, as the manual and logs have it.
[[nodiscard]] std::string_view name_of(TaskState state);

/// Whether one step leads from one state to the other: the arrows of the diagram above.
[[nodiscard]] bool may_become(TaskState from, TaskState to);

/// Nothing of ours is under way for it, and its record is known.
[[nodiscard]] constexpr bool is_waiting(TaskState state) {
  return state == TaskState::kScheduled || state == TaskState::kRetrying ||
         state == TaskState::kRefused || state == TaskState::kReady ||
         state == TaskState::kBlocked || state == TaskState::kLimited ||
         state == TaskState::kNoExecutor;
}
/// Its job runs, in this term.
[[nodiscard]] constexpr bool is_running(TaskState state) {
  return state == TaskState::kRunning || state == TaskState::kStopping;
}
/// From the claim to its end: it has an Attempt, and holds its serialKey.
[[nodiscard]] constexpr bool is_ours(TaskState state) {
  return state == TaskState::kClaiming || state == TaskState::kChecking ||
         state == TaskState::kClaimed || state == TaskState::kRunning ||
         state == TaskState::kStopping || state == TaskState::kEnding;
}

}  // namespace lictor::core
