#pragma once

// Cron expressions on a calendar without time zones; schedule/ticks.h maps them to instants.
//
//   [second] minute hour day-of-month month day-of-week       or @yearly, @annually, @monthly,
//                                                             @weekly, @daily, @midnight, @hourly
//   second, minute  0 to 59
//   hour            0 to 23
//   day of month    1 to 31; L: the last day of the month; L-3: the third day before it
//   month           1 to 12, or jan to dec
//   day of week     0 to 7, or sun to sat (0 and 7: Sunday); 5L or L5: the month's last Friday;
//                   5#2: its second Friday
//
// A field is a list ("1,15") of values, ranges ("1-5"), or "*"; a range or "*" may have a step
// ("*/5", "1-30/7"), and "5/15" is "5-59/15". "?" is "*" in the two day fields. Letters may be of
// either case. A step counts from the low end of its range again in each hour, day or month: "*/7"
// in the minute field is 0, 7, ... 56, and then 0.
//
// Days: where both day fields are restricted, a day matches if either matches; otherwise it must
// match both. As in Vixie's cron, a day field is restricted unless it begins with "*" or "?": "*/2"
// is not. So "0 0 1 * mon" is the first of the month and each Monday, while "0 0 */2 * mon" is a
// Monday with an odd number. "1-31" is restricted and matches all days.

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "lictor/result.h"

namespace lictor::schedule {

/// A time on a wall clock, in no zone.
using LocalTime = std::chrono::local_seconds;

/// An expression as it was read: bit n of a set stands for the value n.
struct CronFields {
  using Set = std::uint64_t;

  Set seconds = 1;
  Set minutes = 0;
  Set hours = 0;
  Set days = 0;
  Set months = 0;
  Set weekdays = 0;                   // Sunday: bit 0
  Set days_before_last = 0;           // bit 0: the last day of the month
  Set last_weekdays = 0;              // "5L": the last one in the month
  std::array<Set, 5> nth_weekdays{};  // [0]: the first in the month
  bool day_restricted = false;
  bool weekday_restricted = false;
  bool every_hour = false;  // the hour field has "*" or a step, or lists all hours
};

/// Reads an expression, which may match no day at all. Errors: those of Cron::parse().
[[nodiscard]] Result<CronFields> parse_cron_fields(std::string_view text);

/// A cron expression that matches at least one time. Immutable; any thread may read it.
class Cron {
 public:
  /// Errors: kInvalid, with the field, what was expected and what was found: `hour: expected 0 to
  /// 23, got "24"`; or that the expression never fires (30 February).
  [[nodiscard]] static Result<Cron> parse(std::string_view text);

  /// Whether the expression repeats through the day, rather than naming its hours: the hour field
  /// has "*" or a step, or lists all 24. Decides what a clock change does (schedule/ticks.h).
  [[nodiscard]] bool repeats() const { return fields_.every_hour; }

  /// The first match in [from, before). Skips whole months and days: at most 400 years, the cycle
  /// of the calendar, are looked through, in less than 50 us.
  [[nodiscard]] std::optional<LocalTime> next(LocalTime from, LocalTime before) const;

 private:
  explicit Cron(const CronFields& fields) : fields_(fields) {}

  /// The matching days of a month as a set: all questions about days are answered month by month,
  /// by bits, so that a rare expression does not step through centuries of days.
  [[nodiscard]] CronFields::Set days_of(std::chrono::year_month month) const;
  [[nodiscard]] std::optional<std::chrono::seconds> next_time(std::chrono::seconds from) const;

  CronFields fields_;
};

}  // namespace lictor::schedule
