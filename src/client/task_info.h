#pragma once

// What a stored record says of a task, for people. Pure.

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "lictor/client.h"
#include "lictor/result.h"
#include "lictor/time.h"
#include "wire/layout.h"
#include "wire/record.h"

namespace lictor::client {

/// The holder of the lock.
struct Leader {
  std::string session;   ///< empty: none
  std::string instance;  ///< which start of the daemon it is; empty: it does not say
  bool known = true;     ///< false: the key cannot be read, so claimed tasks count as running
};

/// `lock`: the leader key, if it exists.
[[nodiscard]] Leader leader_of(const std::optional<wire::KvEntry>& lock);

[[nodiscard]] TaskInfo view_task(const wire::Layout& layout, wire::KvEntry entry,
                                 const Leader& leader, WallTime now);
/// The same where the leader depends on the task, of which all but the state is known then.
using LeaderOf = std::function<const Leader&(const TaskInfo&)>;
[[nodiscard]] TaskInfo view_led_task(const wire::Layout& layout, wire::KvEntry entry,
                                     const LeaderOf& leader_of, WallTime now);

/// An entry below the layout's dead prefix.
[[nodiscard]] TaskInfo view_dead_letter(const wire::Layout& layout, wire::KvEntry entry);

/// An entry below the layout's done prefix.
[[nodiscard]] TaskInfo view_done(const wire::Layout& layout, wire::KvEntry entry);

/// "waiting", ...; an orphan is "running".
[[nodiscard]] std::string_view state_name(TaskState state);
/// For people: an orphan is "running (orphan)".
[[nodiscard]] std::string_view state_text(TaskState state);

/// What errors that are alike share: after the first colon each word with a digit is a "#", as in
/// "exit status 3: job # failed".
[[nodiscard]] std::string error_kind(std::string_view error);

/// "running on host-a, attempt 2: exit 3", in one line, printable.
[[nodiscard]] std::string described(const TaskInfo& task);

/// The state that a filter for `state` goes by: an orphan's is kRunning, a cancelled task's kDone.
[[nodiscard]] TaskState listed_state(TaskState state);

/// The order of `list`: what runs, what will start next; what is dead or done, the newest first.
[[nodiscard]] bool listed_before(const TaskInfo& a, const TaskInfo& b);

}  // namespace lictor::client
