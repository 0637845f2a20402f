#pragma once

// Task records (DESIGN section 3): bytes of a KV value to a core::Task and back. Pure; never
// throws; takes any bytes.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/effect.h"
#include "core/event.h"
#include "core/task.h"
#include "lictor/result.h"
#include "wire/json_text.h"
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

/// What `entry` says of a task. What cannot be read as one comes back as a BadRecord whose error
/// names field, expectation and finding. `entry.key` must lie under the layout's tasks prefix.
[[nodiscard]] core::StoredRecord read_record(const Layout& layout, KvEntry&& entry);

/// The record with lictor's fields as in `stamp` and everything else as its producer wrote it, but
/// for space where something was put in or taken out; taskTaken keeps its place and its form (a
/// string stays a string). `record` is one that read_record() took, `places` what it then said.
[[nodiscard]] std::string restamp_record(std::string_view record, const core::Stamp& stamp,
                                         const core::RecordPlaces& places = {});

/// The record as its producer wrote it: taskTaken false, lictor's other fields gone.
[[nodiscard]] std::string unstamped_record(std::string_view record);
/// The same, member by member. False: it was written so.
bool unstamp(std::vector<Member>& members);
/// What a job is given of a task that read_record() has read: the same, also where another daemon
/// has begun it before.
[[nodiscard]] std::shared_ptr<const std::string> job_record(const core::Task& task);
/// Whether read_record() takes such a value for a task, and else why not: what its place in the
/// order goes by first (core::Order).
[[nodiscard]] Result<WallTime> check_record(std::string_view record);
/// The same of a record that split_object() has taken, whose members these are.
[[nodiscard]] Result<WallTime> check_record(const std::vector<Member>& members);

/// A JSON string's text. Errors: kInvalid. `json_text` is JSON.
[[nodiscard]] Result<std::string> read_string(std::string_view json_text);

/// Seconds or milliseconds since the epoch, or RFC 3339, as producers write times. `text` is JSON.
[[nodiscard]] Result<WallTime> read_time(std::string_view json_text, bool rfc3339);

/// What a failure's text is cut to in records and dead letters, before it is escaped.
inline constexpr std::size_t kMaxErrorBytes = 2'000;

/// How many bytes a record that cannot be read takes in its dead letter, as text or in base64.
[[nodiscard]] std::size_t raw_size(std::string_view record);

/// The value of dead/<id> for a task that is given up.
[[nodiscard]] std::string dead_letter(const core::BuryOp& op, std::string_view node);

/// The value of done/<id> for a task that is finished.
[[nodiscard]] std::string done_record(const core::DoneRecord& done, std::string_view node);

/// When the task of a done/<id> value was finished; nothing when it does not say.
[[nodiscard]] std::optional<WallTime> done_at(std::string_view value);

}  // namespace lictor::wire
