#pragma once

// From what a producer says to the record of a new task. Pure.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/task_id.h"
#include "lictor/result.h"
#include "lictor/time.h"

namespace lictor::cli {

/// A task as the flags of `submit` describe it, unread.
struct TaskText {
  std::string type;
  std::optional<std::string> id;
  std::vector<std::string> paras;        ///< "NAME=VALUE"
  std::optional<std::string> para_json;  ///< JSON
  std::optional<std::string> at;         ///< RFC 3339, or seconds since the epoch
  std::optional<std::string> in;         ///< a duration
  std::optional<std::string> task_time;
  std::optional<std::string> serial_key;
  std::optional<std::uint32_t> max_attempts;
  std::optional<std::string> timeout;
};

struct NewTask {
  std::string id;
  std::string record;
};

/// Errors: kInvalid, naming the flag.
[[nodiscard]] Result<NewTask> new_task(const TaskText& text, WallTime now, TaskIds& ids);

/// Completes the records of many tasks, one after the other: id, taskTime and taskType are added
/// where they are missing, what only lictor may say (a claim, attempts) is taken out. Tasks that
/// get their time here start in the order of the calls, if they are written in it: those of one
/// millisecond that share a transaction are ordered by their keys, so where the keys are not in
/// order the time is moved on by a millisecond.
class RecordCompleter {
 public:
  /// `type`: for records without one; may be empty.
  RecordCompleter(std::string type, TaskIds& ids) : type_(std::move(type)), ids_(ids) {}

  /// Errors: kInvalid, naming field, expectation and finding.
  [[nodiscard]] Result<NewTask> complete(std::string_view record, WallTime now);

 private:
  std::string type_;
  TaskIds& ids_;
  WallTime last_time_{};
  std::string last_id_;
};

/// A time as an argument: RFC 3339 with a zone, or seconds or milliseconds since the epoch.
[[nodiscard]] Result<WallTime> time_argument(std::string_view text);

}  // namespace lictor::cli
