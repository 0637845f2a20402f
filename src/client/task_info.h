#pragma once

// A task as its stored record shows it, for people and as JSON, with the same members in commands
// and in the admin API. Pure.

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "lictor/client.h"
#include "lictor/time.h"
#include "wire/layout.h"
#include "wire/record.h"

namespace lictor::client {

class Locks;

/// A task, whose state depends on the leader of its partition.
[[nodiscard]] TaskInfo view_task(const wire::Layout& layout, wire::KvEntry entry,
                                 const Locks& locks, WallTime now);

/// An entry below the layout's dead prefix.
[[nodiscard]] TaskInfo view_dead_letter(const wire::Layout& layout, wire::KvEntry entry);

/// An entry below the layout's done prefix.
[[nodiscard]] TaskInfo view_done(const wire::Layout& layout, wire::KvEntry entry);

/// "waiting", ...; an orphan is "running".
[[nodiscard]] std::string_view state_name(TaskState state);
/// The state's name for people: an orphan is "running (orphan)".
[[nodiscard]] std::string_view state_text(TaskState state);

/// The common part of similar errors: after the first colon each word with a digit is a "#", as in
/// "exit status 3: job # failed". For unreadable records it is the field at fault and the
/// expectation there, without the value.
[[nodiscard]] std::string error_kind(std::string_view error, std::string_view reason = {});

/// "running on host-a, attempt 2: exit 3", in one line, printable.
[[nodiscard]] std::string described(const TaskInfo& task);

/// The state that a filter for `state` goes by: an orphan's is kRunning, a cancelled task's kDone.
[[nodiscard]] TaskState listed_state(TaskState state);

/// A task's place in the order of `list`: running tasks, the next ones to start, dead and done ones,
/// newest first. Tasks of one rank go by their keys.
struct ListRank {
  int state = 0;
  std::int64_t time = 0;
  std::uint64_t index = 0;

  friend auto operator<=>(const ListRank&, const ListRank&) = default;
};
[[nodiscard]] ListRank list_rank(const TaskInfo& task);
[[nodiscard]] bool listed_before(const TaskInfo& a, const TaskInfo& b);

/// The text of the member `name` of an object; if it is no string, its JSON. Empty if it is missing
/// or null.
[[nodiscard]] std::string text_of(const nlohmann::json& object, const char* name);

/// Empty text is null.
[[nodiscard]] nlohmann::ordered_json text_or_null(const std::string& text);

/// {"by", "at", "reason"}; null: not paused.
[[nodiscard]] nlohmann::ordered_json pause_json(const PauseState& state);

/// A task in a list. "bytes" is the size of its record.
[[nodiscard]] nlohmann::ordered_json task_json(const TaskInfo& task);

/// task_json() with session, output tail, result and record. The record is "value" if it is JSON,
/// "raw" if it is other UTF-8 text, else "raw_base64".
[[nodiscard]] nlohmann::ordered_json whole_task_json(const TaskInfo& task);

/// Adds a key's value in one of these three forms.
void add_value_json(const std::string& value, nlohmann::ordered_json& out);

}  // namespace lictor::client
