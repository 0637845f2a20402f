#pragma once

// The records of new tasks. Pure.

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
  WallTime place{};  ///< what its place in the order goes by first
  /// The taskTime that was made for it, and where in the record it is written.
  struct MadeTime {
    WallTime time{};
    std::size_t at = 0;
    bool is_place = true;  ///< else it goes by executeAt
  };
  std::optional<MadeTime> made_time{};  ///< nothing: its producer gave it one

  /// Another for what was made.
  void restamp(WallTime time);
};

/// A JSON object that grows.
class ObjectText {
 public:
  ObjectText() = default;
  /// Of so many bytes, or about.
  explicit ObjectText(std::size_t bytes) { text_.reserve(bytes); }

  void add(std::string_view name, std::string_view json);
  void add_raw(std::string_view quoted_name, std::string_view json);
  /// One or more as they are written elsewhere.
  void add_members(std::string_view members);
  [[nodiscard]] std::size_t size() const { return text_.size(); }
  [[nodiscard]] std::string take() { return std::move(text_) + '}'; }

 private:
  std::string text_{'{'};
};

/// What a record is made of; what has no value is left out.
struct RecordFields {
  std::string id, type;
  WallTime task_time{};
  bool made_time = false;  ///< it is none of the producer's
  std::string para;        ///< JSON
  std::optional<WallTime> execute_at, expire_at;
  std::optional<std::string> serial_key;
  std::optional<std::uint32_t> max_attempts;
  std::optional<std::string> timeout;
  std::optional<std::string> backoff;  ///< JSON
};

/// Errors: kInvalid, kTooLarge: what the daemon would say of the record.
[[nodiscard]] Result<NewRecord> make_record(const RecordFields& fields);

/// `ids` makes the id where there is none. Errors: kInvalid, naming the field; kTooLarge.
[[nodiscard]] Result<NewRecord> make_record(const NewTask& task, WallTime now, TaskIds& ids);

/// Completes the records of many tasks, one after the other: id, taskTime and taskType are added
/// where they are missing, what only lictor may say (a claim, attempts) is taken out.
class RecordCompleter {
 public:
  /// `type`: for records without one; may be empty.
  RecordCompleter(const std::string& type, TaskIds& ids);

  /// Errors: kInvalid, naming field, expectation and finding.
  [[nodiscard]] Result<NewRecord> complete(std::string_view record, WallTime now);

 private:
  std::string type_text_;  // JSON; "" when there is none
  TaskIds& ids_;
};

}  // namespace lictor::client
