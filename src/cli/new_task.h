#pragma once

// From the flags of `submit` to the record of a new task. Pure.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/new_record.h"
#include "client/task_id.h"
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
  std::optional<std::string> expire_at;  ///< as `at`
  std::optional<std::string> expire_in;  ///< as `in`
  std::optional<std::string> task_time;
  std::optional<std::string> serial_key;
  std::optional<std::uint32_t> max_attempts;
  std::optional<std::string> timeout;
  std::optional<std::string> backoff;  ///< a duration: the first one
};

/// Errors: kInvalid, naming the flag.
[[nodiscard]] Result<client::NewRecord> new_task(const TaskText& text, WallTime now,
                                                 client::TaskIds& ids);

/// A time as an argument: RFC 3339 with a zone, or seconds or milliseconds since the epoch.
[[nodiscard]] Result<WallTime> time_argument(std::string_view text);

}  // namespace lictor::cli
