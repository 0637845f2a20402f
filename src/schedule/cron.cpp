#include "schedule/cron.h"

#include <bit>
#include <string>

#include "base/text.h"
#include "base/try.h"

namespace lictor::schedule {
namespace {

using namespace std::chrono;

bool has(std::uint64_t set, unsigned value) { return (set >> value & 1U) != 0; }

// The members of `set` that are `least` or more.
std::uint64_t from(std::uint64_t set, unsigned least) {
  return least >= 64 ? 0 : set & ~std::uint64_t{0} << least;
}

unsigned first(std::uint64_t set) { return static_cast<unsigned>(std::countr_zero(set)); }

seconds time_of(unsigned hour, unsigned minute, unsigned second) {
  return hours{hour} + minutes{minute} + seconds{second};
}

local_days first_day(year_month month) { return local_days{month / day{1}}; }

}  // namespace

Result<Cron> Cron::parse(std::string_view text) {
  LICTOR_TRY(const CronFields fields, parse_cron_fields(text));
  const Cron cron{fields};
  // The calendar repeats itself, weekdays included, after 400 years.
  const LocalTime begin{local_days{year{2000} / January / 1}};
  if (cron.next(begin, begin + years{400})) return cron;
  return fail(
      ErrorCode::kInvalid,
      "never fires: expected a day that one of the months has, got \"" + excerpt(text) + '"');
}

// The days of `month` that match, the first as bit 1.
CronFields::Set Cron::days_of(year_month month) const {
  using Set = CronFields::Set;
  constexpr Set kWeekly = 1U | 1U << 7U | 1U << 14U | 1U << 21U | 1U << 28U;
  const CronFields& f = fields_;
  const auto length = static_cast<unsigned>((month / last).day());
  const Set all = (Set{2} << length) - 2;
  Set by_day = f.days & all;
  for (unsigned n = 0; n < length; ++n) {
    if (has(f.days_before_last, n)) by_day |= Set{1} << (length - n);
  }
  const unsigned weekday_of_first = weekday{first_day(month)}.c_encoding();
  Set by_weekday = 0;
  for (unsigned i = 0; i < 7; ++i) {
    const unsigned day = (i + 7 - weekday_of_first) % 7 + 1;  // the first in the month
    if (has(f.weekdays, i)) by_weekday |= kWeekly << day;
    if (has(f.last_weekdays, i)) by_weekday |= Set{1} << (day + (length - day) / 7 * 7);
    for (unsigned n = 0; n < f.nth_weekdays.size(); ++n) {
      if (has(f.nth_weekdays[n], i)) by_weekday |= Set{1} << (day + 7 * n);
    }
  }
  by_weekday &= all;
  return f.day_restricted && f.weekday_restricted ? by_day | by_weekday : by_day & by_weekday;
}

// The first time of day from `time` on.
std::optional<seconds> Cron::next_time(seconds time) const {
  const CronFields& f = fields_;
  const auto of_day = static_cast<unsigned>(time.count());
  const unsigned hour = of_day / 3600, minute = of_day / 60 % 60;
  if (has(f.hours, hour)) {
    if (has(f.minutes, minute)) {
      if (const auto later = from(f.seconds, of_day % 60)) {
        return time_of(hour, minute, first(later));
      }
    }
    if (const auto later = from(f.minutes, minute + 1)) {
      return time_of(hour, first(later), first(f.seconds));
    }
  }
  if (const auto later = from(f.hours, hour + 1)) {
    return time_of(first(later), first(f.minutes), first(f.seconds));
  }
  return std::nullopt;
}

// Searches month by month, and within a month by the set of its days. Only on the first day does
// the time of day matter; on each later one the first time of the expression is the answer.
std::optional<LocalTime> Cron::next(LocalTime begin, LocalTime before) const {
  const local_days begin_day = floor<days>(begin);
  const year_month_day begin_date{begin_day};
  year_month month = begin_date.year() / begin_date.month();
  for (local_days month_begin = first_day(month); month_begin < before;
       month += months{1}, month_begin = first_day(month)) {
    if (!has(fields_.months, static_cast<unsigned>(month.month()))) continue;
    std::uint64_t left = days_of(month);
    if (month_begin < begin_day) {
      left = from(left, static_cast<unsigned>(begin_date.day()));
    }
    for (; left != 0; left &= left - 1) {
      const local_days day = month_begin + days{static_cast<int>(first(left)) - 1};
      const auto time = next_time(day == begin_day ? seconds{begin - begin_day} : seconds{0});
      if (!time) continue;  // too late on the first day
      const LocalTime found = day + *time;
      return found < before ? std::optional{found} : std::nullopt;
    }
  }
  return std::nullopt;
}

}  // namespace lictor::schedule
