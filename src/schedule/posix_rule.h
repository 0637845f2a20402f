#pragma once

// The rule by which a zone's clock is changed each year: POSIX's TZ, as it ends a TZif file.
//
//   CET-1CEST,M3.5.0,M10.5.0/3     UTC+1; UTC+2 from the last Sunday of March, 02:00, to the last
//                                  one of October, 03:00
//   <+0530>-5:30                   UTC+5:30 for ever

#include <chrono>
#include <optional>
#include <string_view>

namespace lictor::schedule {

struct PosixRule {
  /// When on which day of a year the clock is changed, on the wall clock before the change.
  struct Day {
    enum class Kind {
      kWeekday,    // "M3.5.0": month, week (5: the last), weekday
      kJulian,     // "J60": from 1, without 29 February
      kZeroBased,  // "59": from 0
    };
    Kind kind = Kind::kZeroBased;
    unsigned month = 1;
    unsigned week = 1;
    unsigned number = 0;          // of the weekday, or of the day in the year
    std::chrono::seconds time{};  // from -167 to 167 hours

    [[nodiscard]] std::chrono::local_seconds in(std::chrono::year year) const;
  };

  std::chrono::seconds standard{};  // east of UTC
  bool has_summer = false;
  std::chrono::seconds summer{};
  Day summer_begin, summer_end;

  /// Nothing: it is no such text.
  [[nodiscard]] static std::optional<PosixRule> parse(std::string_view text);
};

}  // namespace lictor::schedule
