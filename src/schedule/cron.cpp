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

std::uint64_t count_of(std::uint64_t set) { return static_cast<std::uint64_t>(std::popcount(set)); }
std::uint64_t count_below(std::uint64_t set, unsigned value) {
  return count_of(set & ~from(~std::uint64_t{0}, value));
}

seconds time_of(unsigned hour, unsigned minute, unsigned second) {
  return hours{hour} + minutes{minute} + seconds{second};
}

struct Clock {
  explicit Clock(seconds time)
      : hour(static_cast<unsigned>(time.count() / 3600)),
        minute(static_cast<unsigned>(time.count() / 60 % 60)),
        second(static_cast<unsigned>(time.count() % 60)) {}
  unsigned hour, minute, second;
};

unsigned length_of(year_month month) { return static_cast<unsigned>((month / last).day()); }

local_days first_day(year_month month) { return local_days{month / day{1}}; }

year_month month_of(local_days at) {
  const year_month_day date{at};
  return date.year() / date.month();
}

}  // namespace

Result<Cron> Cron::parse(std::string_view text) {
  LICTOR_TRY(const CronFields fields, parse_cron_fields(text));
  const Cron cron{fields};
  if (cron.ever_matches()) return cron;
  return fail(
      ErrorCode::kInvalid,
      "never fires: expected a day that one of the months has, got \"" + excerpt(text) + '"');
}

// The days of `month` that match, the first as bit 1.
CronFields::Set Cron::days_of(year_month month) const {
  using Set = CronFields::Set;
  constexpr Set kWeekly = 1U | 1U << 7U | 1U << 14U | 1U << 21U | 1U << 28U;
  constexpr Set kAllWeekdays = 0x7f;
  const CronFields& f = fields_;
  const unsigned length = length_of(month);
  const Set all = (Set{2} << length) - 2;
  Set by_day = f.days & all;
  for (unsigned n = 0; n < length; ++n) {
    if (has(f.days_before_last, n)) by_day |= Set{1} << (length - n);
  }
  if (f.weekdays == kAllWeekdays && !f.weekday_restricted) return by_day;
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

bool Cron::has_day(local_days at) const {
  const year_month_day date{at};
  return has(fields_.months, static_cast<unsigned>(date.month())) &&
         has(days_of(date.year() / date.month()), static_cast<unsigned>(date.day()));
}

// The calendar repeats itself, weekdays included, after 400 years.
bool Cron::ever_matches() const {
  const year_month begin = year{2000} / January;
  for (year_month month = begin; month < begin + years{400}; month += months{1}) {
    if (has(fields_.months, static_cast<unsigned>(month.month())) && days_of(month) != 0) {
      return true;
    }
  }
  return false;
}

bool Cron::matches(LocalTime time) const {
  const local_days day = floor<days>(time);
  const Clock clock{time - day};
  return has(fields_.hours, clock.hour) && has(fields_.minutes, clock.minute) &&
         has(fields_.seconds, clock.second) && has_day(day);
}

// The first time of day from `time` on.
std::optional<seconds> Cron::next_time(seconds time) const {
  const CronFields& f = fields_;
  const Clock clock{time};
  if (has(f.hours, clock.hour)) {
    if (has(f.minutes, clock.minute)) {
      if (const auto later = from(f.seconds, clock.second)) {
        return time_of(clock.hour, clock.minute, first(later));
      }
    }
    if (const auto later = from(f.minutes, clock.minute + 1)) {
      return time_of(clock.hour, first(later), first(f.seconds));
    }
  }
  if (const auto later = from(f.hours, clock.hour + 1)) {
    return time_of(first(later), first(f.minutes), first(f.seconds));
  }
  return std::nullopt;
}

// Month by month, and within a month by the set of its days. Only on the first day does the time of
// day matter; on each later one the first time of the expression is the answer.
std::optional<LocalTime> Cron::next(LocalTime begin, LocalTime before) const {
  const local_days begin_day = floor<days>(begin);
  year_month month = month_of(begin_day);
  for (local_days month_begin = first_day(month); month_begin < before;
       month += months{1}, month_begin = first_day(month)) {
    if (!has(fields_.months, static_cast<unsigned>(month.month()))) continue;
    std::uint64_t left = days_of(month);
    if (month_begin < begin_day) {
      left = from(left, static_cast<unsigned>(year_month_day{begin_day}.day()));
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

std::uint64_t Cron::times_a_day() const {
  return count_of(fields_.hours) * count_of(fields_.minutes) * count_of(fields_.seconds);
}

std::uint64_t Cron::times_before(seconds time) const {
  const CronFields& f = fields_;
  const Clock clock{time};
  const std::uint64_t a_minute = count_of(f.seconds);
  std::uint64_t count = count_below(f.hours, clock.hour) * count_of(f.minutes) * a_minute;
  if (has(f.hours, clock.hour)) {
    count += count_below(f.minutes, clock.minute) * a_minute;
    if (has(f.minutes, clock.minute)) count += count_below(f.seconds, clock.second);
  }
  return count;
}

std::uint64_t Cron::days_before(local_days begin, local_days before) const {
  std::uint64_t count = 0;
  year_month month = month_of(begin);
  for (local_days month_begin = first_day(month); month_begin < before;
       month += months{1}, month_begin = first_day(month)) {
    if (!has(fields_.months, static_cast<unsigned>(month.month()))) continue;
    std::uint64_t counted = days_of(month);
    if (month_begin < begin) {
      counted = from(counted, static_cast<unsigned>(year_month_day{begin}.day()));
    }
    const auto end = (before - month_begin).count() + 1;  // the first day too late
    count += end > 31 ? count_of(counted) : count_below(counted, static_cast<unsigned>(end));
  }
  return count;
}

// Whole days first, the last day's part added, the first day's part before `begin` subtracted.
std::uint64_t Cron::count(LocalTime begin, LocalTime before) const {
  if (begin >= before) return 0;
  const local_days first_day = floor<days>(begin);
  const local_days last_day = floor<days>(before);
  std::uint64_t count = days_before(first_day, last_day) * times_a_day();
  if (has_day(last_day)) count += times_before(before - last_day);
  if (has_day(first_day)) count -= times_before(begin - first_day);
  return count;
}

}  // namespace lictor::schedule
