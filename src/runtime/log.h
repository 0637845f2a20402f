#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "lictor/result.h"

namespace lictor::runtime {

enum class Level { kTrace, kDebug, kInfo, kWarn, kError };
enum class LogStyle {
  /// A line for people: time, level, message, fields as name=value. For the journal: no time, and
  /// the level as its prefix.
  kText,
  kJson,     ///< one object a line
  kJournal,  ///< systemd's journal, fields as LICTOR_<NAME>
};

struct Field {
  std::string_view name;
  std::string_view value;
};
using Fields = std::initializer_list<Field>;

/// Whether systemd's journal reads standard error (JOURNAL_STREAM, systemd.exec(5)). It stamps each
/// line, and takes its level from a prefix "<N>".
[[nodiscard]] bool stderr_is_journal();

/// Sets up the log. Call once, before there are threads. `journal`: where journald listens.
void set_up_log(LogStyle style, Level least,
                const std::string& journal = "/run/systemd/journal/socket");

/// Takes effect at once. Thread safe.
void set_log_level(Level least);

/// Whether a line of `level` would be written; ask before building an expensive one.
[[nodiscard]] bool logs(Level level) noexcept;

/// Writes one line to standard error, or one entry to the journal. Thread safe. Empty fields are
/// left out. If the disk is full, if nobody has read for a second, or if the journal does not read,
/// lines are dropped; a later line says how many.
void log(Level level, std::string_view message, Fields fields = {});

/// While one exists, its thread's lines below kWarn are written together at its end: thousands of
/// lines a second would cost as many system calls, and wake the reader as often. Not nested.
class LogBatch {
 public:
  LogBatch();
  ~LogBatch();
  LogBatch(const LogBatch&) = delete;
  LogBatch& operator=(const LogBatch&) = delete;
};

}  // namespace lictor::runtime
