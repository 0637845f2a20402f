#pragma once

// The records of new tasks, as text. Pure.
//
//   flags, NewTask --> RecordFields --make_record()--+
//                                                    +--> checks of the daemon --> NewRecord
//   a producer's JSON ----------complete_record()----+
//
// Both ways refuse what the daemon would refuse, by the daemon's own code (wire/record.h): a
// producer learns of a mistake from submit(), and not hours later from a dead letter.
//
// The members of a producer's text are kept to the byte: parsed and printed again, a long number
// would change. Only members that lictor alone may set are removed, so that an exported record can
// be submitted again.
//
// A generated taskTime keeps its offset in the text. RecordWriter moves such times on to keep the
// order of many records; restamp() then rewrites the digits in place.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "client/task_id.h"
#include "lictor/client.h"
#include "lictor/result.h"
#include "lictor/time.h"

namespace lictor::client {

struct NewRecord {
  std::string id;
  std::string record;
  /// The generated taskTime, and its offset in the record.
  struct MadeTime {
    WallTime time{};
    std::size_t at = 0;
  };
  std::optional<MadeTime> made_time{};  ///< empty if the producer gave a time

  /// Replaces the generated time. Only with `made_time`.
  void restamp(WallTime time);
};

/// Builds the text of a JSON object.
class ObjectText {
 public:
  /// Adds a member. Neither `json` nor its name is checked for validity or repetition.
  void add(std::string_view name, std::string_view json);
  void add_raw(std::string_view quoted_name, std::string_view json);
  /// Adds the text of one or more members.
  void add_members(std::string_view members);
  [[nodiscard]] std::size_t size() const { return text_.size(); }
  [[nodiscard]] std::string take() { return std::move(text_) + '}'; }

 private:
  std::string text_{'{'};
};

/// The members of a record; those without a value are left out.
struct RecordFields {
  std::string id, type;
  WallTime task_time{};
  bool made_time = false;  ///< task_time is generated
  std::string para;        ///< JSON
  std::optional<WallTime> execute_at, expire_at;
  std::optional<std::string> serial_key;
  std::optional<std::uint32_t> max_attempts;
  std::optional<std::string> timeout;
  std::optional<std::string> backoff;  ///< JSON
};

/// A schedule's template: the record without id, taskTime and the members that lictor sets.
[[nodiscard]] std::string make_template(const RecordFields& fields);

/// Errors: kInvalid, kTooLarge, as the daemon would refuse the record.
[[nodiscard]] Result<NewRecord> make_record(const RecordFields& fields);

/// `ids` makes a missing id. Errors: kInvalid, naming the field; kTooLarge.
[[nodiscard]] Result<NewRecord> make_record(const NewTask& task, WallTime now, TaskIds& ids);

/// The record with a missing id, taskTime and taskType added, and without the members that only
/// lictor may set (a claim, attempts). `type`: for records without one; may be empty. Errors:
/// kInvalid, naming field, expectation and finding; kTooLarge.
[[nodiscard]] Result<NewRecord> complete_record(std::string_view record, const std::string& type,
                                                WallTime now, TaskIds& ids);

}  // namespace lictor::client
