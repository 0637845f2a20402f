#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lictor/result.h"

namespace lictor::runtime {

enum class Level { kTrace, kDebug, kInfo, kWarn, kError };
enum class LogStyle {
  kText,     ///< a line for people: time, level, message, fields as name=value
  kJson,     ///< one object a line
  kJournal,  ///< systemd's journal, fields as LICTOR_<NAME>
};

using Fields = std::vector<std::pair<std::string_view, std::string>>;

/// Says where the log goes, once, before there are threads. Errors: kInvalid.
void set_up_log(LogStyle style, Level least);

/// From now on. Thread safe.
void set_log_level(Level least);

/// Whether a line of `level` would be written; saves the work of wording it.
[[nodiscard]] bool logs(Level level) noexcept;

/// One line on standard error, or one entry of the journal. Thread safe. Fields that are empty are
/// left out.
void log(Level level, std::string_view message, const Fields& fields = {});

}  // namespace lictor::runtime
