#pragma once

// What a stored record says of a task, for people. Pure.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lictor/time.h"
#include "wire/layout.h"
#include "wire/record.h"

namespace lictor::cli {

enum class TaskState {
  kRunning,     // claimed by the leader's session
  kOrphan,      // claimed, but by a session that does not lead (any more); will be run again
  kWaiting,     // may start
  kScheduled,   // not yet due
  kUnreadable,  // becomes a dead letter as soon as somebody leads
  kTooLarge,    // cannot be rewritten, so it can be neither claimed nor run
  kDead,
};

struct TaskView {
  std::string id;  ///< the key's part after the prefix
  std::string key;
  std::string type;
  TaskState state = TaskState::kWaiting;
  std::optional<WallTime> time;   ///< what its place in the order goes by
  std::optional<WallTime> due;    ///< not before
  std::optional<WallTime> since;  ///< claimed; dead: buried
  std::uint32_t attempt = 0;      ///< attempts begun
  std::uint32_t lost = 0;
  std::string node;
  std::string session;
  std::string serial_key;
  std::string reason;  ///< dead letters only
  std::string error;
  std::string output_tail;
  std::string record;  ///< the value's bytes; of a dead letter all of them
  std::uint64_t create_index = 0;
  std::uint64_t modify_index = 0;
};

/// `leader_session`: who holds the lock; empty: nobody.
[[nodiscard]] TaskView view_task(const wire::Layout& layout, wire::KvEntry entry,
                                 std::string_view leader_session, WallTime now);

/// An entry below the layout's dead prefix.
[[nodiscard]] TaskView view_dead_letter(const wire::Layout& layout, wire::KvEntry entry);

/// "waiting", ...; an orphan is "running".
[[nodiscard]] std::string_view state_name(TaskState state);
/// For people: an orphan is "running (orphan)".
[[nodiscard]] std::string_view state_text(TaskState state);

/// The order of `list`: what runs, what will start next, what is dead.
[[nodiscard]] bool listed_before(const TaskView& a, const TaskView& b);

}  // namespace lictor::cli
