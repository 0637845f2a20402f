#include "schedule/posix_rule.h"

#include <algorithm>

namespace lictor::schedule {
namespace {

using namespace std::chrono;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }

// Takes parts off the front of a text.
class Reader {
 public:
  explicit Reader(std::string_view left) : left_(left) {}

  [[nodiscard]] bool done() const { return left_.empty(); }
  bool take(char c) {
    if (!left_.starts_with(c)) return false;
    left_.remove_prefix(1);
    return true;
  }
  // "CET", "<+0530>"
  bool name() {
    std::size_t size = 0;
    if (left_.starts_with('<')) {
      size = left_.find('>');
      if (size == std::string_view::npos) return false;
      ++size;
    } else {
      while (size < left_.size() && is_letter(left_[size])) ++size;
      if (size < 3) return false;
    }
    left_.remove_prefix(size);
    return true;
  }
  std::optional<unsigned> number(unsigned least, unsigned most) {
    unsigned value = 0;
    std::size_t digits = 0;
    for (; digits < left_.size() && is_digit(left_[digits]) && digits < 4; ++digits) {
      value = value * 10 + static_cast<unsigned>(left_[digits] - '0');
    }
    if (digits == 0 || value < least || value > most) return std::nullopt;
    left_.remove_prefix(digits);
    return value;
  }
  // "-1", "5:30", "+10:30:15"
  std::optional<seconds> time(unsigned most_hours) {
    const bool negative = take('-');
    if (!negative) take('+');
    const auto h = number(0, most_hours);
    if (!h) return std::nullopt;
    seconds time = hours{*h};
    if (take(':')) {
      const auto m = number(0, 59);
      if (!m) return std::nullopt;
      time += minutes{*m};
      if (take(':')) {
        const auto s = number(0, 59);
        if (!s) return std::nullopt;
        time += seconds{*s};
      }
    }
    return negative ? -time : time;
  }

 private:
  std::string_view left_;
};

std::optional<PosixRule::Day> take_day(Reader& text) {
  using Day = PosixRule::Day;
  Day day;
  day.time = hours{2};
  std::optional<unsigned> number;
  if (text.take('M')) {
    day.kind = Day::Kind::kWeekday;
    const auto month = text.number(1, 12);
    if (!month || !text.take('.')) return std::nullopt;
    const auto week = text.number(1, 5);
    if (!week || !text.take('.')) return std::nullopt;
    day.month = *month;
    day.week = *week;
    number = text.number(0, 6);
  } else if (text.take('J')) {
    day.kind = Day::Kind::kJulian;
    number = text.number(1, 365);
  } else {
    number = text.number(0, 365);
  }
  if (!number) return std::nullopt;
  day.number = *number;
  if (text.take('/')) {
    const auto time = text.time(167);
    if (!time) return std::nullopt;
    day.time = *time;
  }
  return day;
}

}  // namespace

local_seconds PosixRule::Day::in(std::chrono::year year) const {
  const local_days new_year{year / January / 1};
  switch (kind) {
    case Kind::kWeekday: {
      const year_month_weekday_last last{year, std::chrono::month{month},
                                         weekday_last{weekday{number}}};
      const year_month_weekday counted{year, std::chrono::month{month},
                                       weekday_indexed{weekday{number}, week}};
      return local_days{counted.ok() ? local_days{counted} : local_days{last}} + time;
    }
    case Kind::kJulian: {
      const bool after_leap_day = year.is_leap() && number >= 60;
      return new_year + days{static_cast<int>(number) - 1 + (after_leap_day ? 1 : 0)} + time;
    }
    case Kind::kZeroBased:
      break;
  }
  return new_year + days{static_cast<int>(number)} + time;
}

std::optional<PosixRule> PosixRule::parse(std::string_view whole) {
  Reader text{whole};
  PosixRule rule;
  if (!text.name()) return std::nullopt;
  const auto standard = text.time(24);
  if (!standard) return std::nullopt;
  rule.standard = -*standard;  // POSIX counts to the west
  if (text.done()) return rule;

  rule.has_summer = true;
  rule.summer = rule.standard + hours{1};
  if (!text.name()) return std::nullopt;
  if (!text.take(',')) {
    const auto summer = text.time(24);
    if (!summer || !text.take(',')) return std::nullopt;
    rule.summer = -*summer;
  }
  const auto begin = take_day(text);
  if (!begin || !text.take(',')) return std::nullopt;
  const auto end = take_day(text);
  if (!end || !text.done()) return std::nullopt;
  rule.summer_begin = *begin;
  rule.summer_end = *end;
  return rule;
}

}  // namespace lictor::schedule
