#pragma once

// A task as flags describe it, for submit, try and schedule add.
//
//   flags --> TaskText, as they were given --> new_task(), task_template() --> a record
//                  |
//                  +-- read_parameters(): "@FILE" and "-" are replaced once all flags are read
//
// Times stay unread up to new_task(), so that an error names the flag with the text that was given,
// and "--in 10m" counts from when the task is written.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "client/new_record.h"
#include "client/task_id.h"

namespace lictor::cli {

struct TaskText {
  std::string type;
  std::optional<std::string> id;
  std::vector<std::string> paras;        ///< "NAME=VALUE"
  std::optional<std::string> para_json;  ///< JSON
  std::optional<std::string> at;         ///< RFC 3339, or seconds since the epoch
  std::optional<Duration> in;
  std::optional<std::string> expire_at;  ///< as `at`
  std::optional<Duration> expire_in;
  std::optional<std::string> task_time;
  std::optional<std::string> serial_key;
  std::optional<std::uint32_t> max_attempts;
  std::optional<Duration> timeout;
  std::optional<Duration> backoff;  ///< the first one
};

/// Adds --para and --para-json; call read_parameters() afterwards.
void add_parameters(Arguments& to, TaskText& task);
/// Replaces "@FILE" and "-" in --para-json by the content. Blocks.
[[nodiscard]] Result<void> read_parameters(TaskText& task);
/// Adds --serial-key, --max-attempts, --timeout and --backoff.
void add_limits(Arguments& to, TaskText& task);

/// Errors: kInvalid, naming the flag.
[[nodiscard]] Result<client::NewRecord> new_task(const TaskText& text, WallTime now,
                                                 client::TaskIds& ids);

/// submit --ndjson: writes each line of `file` ("-": standard input) as a task. `type`: for records
/// without one; may be empty.
[[nodiscard]] Result<int> submit_many(const Client& client, const std::string& file,
                                      const std::string& type, SubmitOrder order);

/// The record of a schedule's tasks. Errors: as above.
[[nodiscard]] Result<std::string> task_template(const TaskText& text);

/// A time as an argument: RFC 3339 with a zone, or seconds or milliseconds since the epoch.
[[nodiscard]] Result<WallTime> time_argument(std::string_view text);

}  // namespace lictor::cli
