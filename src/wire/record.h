#pragma once

// Task records (producers.md): a KV value to a core::Task and back. Pure; never throws; accepts
// any bytes.
//
// A record belongs to its producer. lictor adds its own fields (taskTaken, taskAttempt, taskLost,
// taskRetryAt, taskClaim, taskError) and copies the rest as text: a long number that is parsed and
// printed again may change.
//
//   producer's record --restamp_record()--> with a claim, a retry --unstamped_record()--> as it was
//         |                                                                                   |
//         +--read_record()--> core::Task, or core::BadRecord              jobs, dead letters <+
//
// The last of repeated names counts, and `null` is "not set", as many libraries write it. A record
// that is no task is not lost: it becomes a dead letter, whose error names the field at fault.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_text.h"
#include "core/effect.h"
#include "core/event.h"
#include "core/task.h"
#include "lictor/result.h"
#include "wire/layout.h"

namespace lictor::wire {

/// One entry of the KV store.
struct KvEntry {
  std::string key;
  std::string value;
  std::string session;
  std::uint64_t flags = 0;
  std::uint64_t create_index = 0;
  std::uint64_t modify_index = 0;
};

/// Reads a task. An unreadable record becomes a BadRecord whose error names the field, and the
/// expected and the actual value. `entry.key` must be under the layout's tasks prefix.
[[nodiscard]] core::StoredRecord read_record(const Layout& layout, KvEntry&& entry);

/// The record with lictor's fields set to `stamp` and everything else as its producer wrote it,
/// except for spaces beside changed fields. taskTaken keeps its place and its form (a string stays
/// a string). read_record() has accepted `record`.
[[nodiscard]] std::string restamp_record(std::string_view record, const core::Stamp& stamp);

/// The record as its producer wrote it, and as each attempt gets it: taskTaken is false, lictor's
/// other fields are removed.
[[nodiscard]] std::string unstamped_record(std::string_view record);
/// unstamped_record() of a task that was read. Shares its record if there is nothing to remove.
[[nodiscard]] std::shared_ptr<const std::string> unstamped_record(const core::Task& task);
/// The fields whose names lictor would read if they were spelt right: "executeat: did you mean
/// executeAt?". Empty: there are none. `record` is a JSON object.
[[nodiscard]] std::string misspelt_fields(std::string_view record);
/// Errors: kInvalid, why read_record() would not accept the value.
[[nodiscard]] Result<void> check_record(std::string_view record);

/// A JSON string's text. Errors: kInvalid. `json_text` is JSON.
[[nodiscard]] Result<std::string> read_string(std::string_view json_text);

/// A producer's time: seconds since the epoch, from 10^11 on milliseconds, whole or with a fraction
/// (rounded to the millisecond), as a number or a string; or RFC 3339. `json_text` is JSON.
[[nodiscard]] Result<WallTime> read_time(std::string_view json_text);

/// A duration in quotes, such as "90s". Errors: kInvalid. `json_text` is JSON.
[[nodiscard]] Result<Duration> read_duration(std::string_view json_text);

/// The error of a field whose JSON `got` is not what was expected.
[[nodiscard]] tl::unexpected<Error> unexpected_value(std::string_view expected,
                                                     std::string_view got);

/// `error` with the name of its field in front.
[[nodiscard]] tl::unexpected<Error> in_field(std::string_view name, const Error& error);

/// Moves a field that was read to `target`, or returns the error.
template <class T, class Target>
Result<void> store(Result<T> value, Target& target) {
  if (!value) return tl::unexpected(std::move(value.error()));
  target = *std::move(value);
  return {};
}

/// The longest error text in records and dead letters, in bytes before escaping.
inline constexpr std::size_t kMaxErrorBytes = 2'000;

/// The size of an unreadable record in its dead letter, as text or in base64.
[[nodiscard]] std::size_t raw_size(std::string_view record);

/// The value of dead/<id> for a task that is given up.
[[nodiscard]] std::string dead_letter(const core::BuryOp& op, std::string_view node);

/// The value of done/<id> for a task that is finished.
[[nodiscard]] std::string done_record(const core::DoneRecord& done, std::string_view node);

/// When the task of a done/<id> value finished; std::nullopt if the value has no time.
[[nodiscard]] std::optional<WallTime> done_at(std::string_view value);

}  // namespace lictor::wire
