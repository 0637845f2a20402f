#pragma once

#include <initializer_list>
#include <string_view>

#include "lictor/result.h"

namespace lictor::runtime {

enum class Level { kTrace, kDebug, kInfo, kWarn, kError };
enum class LogStyle {
  kText,     ///< a line for people: time, level, message, fields as name=value
  kJson,     ///< one object a line
  kJournal,  ///< systemd's journal, fields as LICTOR_<NAME>
};

struct Field {
  std::string_view name;
  std::string_view value;
};
using Fields = std::initializer_list<Field>;

/// Says where the log goes, once, before there are threads. Errors: kInvalid.
void set_up_log(LogStyle style, Level least);

/// From now on. Thread safe.
void set_log_level(Level least);

/// Whether a line of `level` would be written; saves the work of wording it.
[[nodiscard]] bool logs(Level level) noexcept;

/// One line on standard error, or one entry of the journal. Thread safe. Fields that are empty are
/// left out. What cannot be written, since the disk is full or nobody has read for a second, is let
/// go, and counted in a line of its own once there is room again.
void log(Level level, std::string_view message, Fields fields = {});

/// While one lives, the lines that its thread logs below kWarn go out together: thousands a second
/// would be as many system calls, and wake whoever reads them as often. Not nested.
class LogBatch {
 public:
  LogBatch();
  ~LogBatch();
  LogBatch(const LogBatch&) = delete;
  LogBatch& operator=(const LogBatch&) = delete;
};

}  // namespace lictor::runtime
