#pragma once

#include <string>

#include "base/time_text.h"
#include "schedule/cron.h"

namespace lictor::schedule {

/// "2026-11-24T09:30:00" as a time on the wall clock; the test is wrong if it is none.
inline LocalTime local(const std::string& text) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(*parse_rfc3339(text + "Z"));
  return LocalTime{seconds.time_since_epoch()};
}

inline std::string local_text(LocalTime time) {
  return format_rfc3339(WallTime{time.time_since_epoch()}).substr(0, 19);
}

}  // namespace lictor::schedule
