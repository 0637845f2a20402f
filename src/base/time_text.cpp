#include "base/time_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <system_error>

#include <fmt/compile.h>

#include "base/text.h"

namespace lictor {
namespace {

using namespace std::chrono;

constexpr long double kMaxDurationNs = 10.0 * 366 * 86400 * 1e9;

struct Unit {
  std::string_view name;
  std::int64_t ns;
};
// Longer names first: "ms" is not "m" and a rest.
constexpr std::array<Unit, 8> kUnits{{{"w", 7 * 86'400'000'000'000},
                                      {"d", 86'400'000'000'000},
                                      {"ms", 1'000'000},
                                      {"us", 1'000},
                                      {"ns", 1},
                                      {"h", 3'600'000'000'000},
                                      {"m", 60'000'000'000},
                                      {"s", 1'000'000'000}}};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Each takes its part off the front of `text`; false: the part is not there.

bool take_number(std::string_view& text, std::size_t digits, int& number) {
  if (text.size() < digits || !std::ranges::all_of(text.substr(0, digits), is_digit)) return false;
  number = to_number<int>(text.substr(0, digits)).value_or(0);
  text.remove_prefix(digits);
  return true;
}

bool take_one_of(std::string_view& text, std::string_view characters) {
  if (text.empty() || characters.find(text.front()) == std::string_view::npos) return false;
  text.remove_prefix(1);
  return true;
}

// ".123...", or nothing. To the millisecond; further digits are cut.
bool take_fraction(std::string_view& text, milliseconds& fraction) {
  if (!take_one_of(text, ".")) return true;
  if (text.empty() || !is_digit(text.front())) return false;
  for (int place = 100; !text.empty() && is_digit(text.front()); place /= 10) {
    fraction += milliseconds{place * (text.front() - '0')};
    text.remove_prefix(1);
  }
  return true;
}

bool take_zone(std::string_view& text, minutes& zone) {
  if (take_one_of(text, "Zz")) return true;
  const int sign = text.starts_with('-') ? -1 : 1;
  int h = 0, m = 0;
  if (!take_one_of(text, "+-") || !take_number(text, 2, h) || !take_one_of(text, ":") ||
      !take_number(text, 2, m)) {
    return false;
  }
  zone = sign * (hours{h} + minutes{m});
  return h <= 23 && m <= 59;
}

// The fields of a text in the form of RFC 3339. They may name no time.
struct Rfc3339 {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0;
  milliseconds fraction{};
  minutes zone{};

  [[nodiscard]] year_month_day date() const {
    return std::chrono::year{year} / std::chrono::month{static_cast<unsigned>(month)} /
           std::chrono::day{static_cast<unsigned>(day)};
  }
  // The part of the text that does not exist; empty: all parts do.
  [[nodiscard]] std::string_view missing() const {
    if (!date().ok()) return "day";
    const bool ok = hour <= 23 && minute <= 59 && second <= 60;  // a leap second is the next one
    return ok ? "" : "time of day";
  }
};

std::optional<Rfc3339> read_rfc3339(std::string_view text) {
  Rfc3339 read;
  const bool whole = take_number(text, 4, read.year) && take_one_of(text, "-") &&
                     take_number(text, 2, read.month) && take_one_of(text, "-") &&
                     take_number(text, 2, read.day) && take_one_of(text, "Tt ") &&
                     take_number(text, 2, read.hour) && take_one_of(text, ":") &&
                     take_number(text, 2, read.minute) && take_one_of(text, ":") &&
                     take_number(text, 2, read.second) && take_fraction(text, read.fraction) &&
                     take_zone(text, read.zone) && text.empty();
  return whole ? std::optional{read} : std::nullopt;
}

}  // namespace

std::optional<Duration> parse_duration(std::string_view text) {
  if (text.empty()) return std::nullopt;
  long double ns = 0;  // exact: reads the output of format_duration() unchanged
  while (!text.empty()) {
    if (!is_digit(text.front()) && text.front() != '.') return std::nullopt;  // "-1s", "inf"
    long double number = 0;
    const auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
    if (error != std::errc{}) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    const auto unit = std::ranges::find_if(
        kUnits, [text](const Unit& each) { return text.starts_with(each.name); });
    if (unit == kUnits.end()) return std::nullopt;
    text.remove_prefix(unit->name.size());
    ns += number * static_cast<long double>(unit->ns);
    if (ns > kMaxDurationNs) return std::nullopt;
  }
  return Duration{std::llround(ns)};
}

std::string format_duration(Duration duration) {
  const auto us = duration_cast<microseconds>(duration).count();
  if (us == 0) return "0s";
  if (us < 0) return "-" + format_duration(microseconds{-us});  // not of the least Duration itself
  if (us % 3'600'000'000 == 0) return std::to_string(us / 3'600'000'000) + "h";
  if (us % 60'000'000 == 0) return std::to_string(us / 60'000'000) + "m";
  const bool seconds_long = us >= 1'000'000;
  const std::int64_t unit = seconds_long ? 1'000'000 : 1'000;
  std::string text = std::to_string(us / unit);
  if (us % unit != 0) {
    text += '.' + std::to_string(unit + us % unit).substr(1);  // with its leading zeros
    text.erase(text.find_last_not_of('0') + 1);
  }
  return text + (seconds_long ? "s" : "ms");
}

std::optional<WallTime> parse_rfc3339(std::string_view text) {
  const auto read = read_rfc3339(text);
  if (!read || !read->missing().empty()) return std::nullopt;
  return sys_days{read->date()} + hours{read->hour} + minutes{read->minute} +
         seconds{read->second} + read->fraction - read->zone;
}

std::string rfc3339_fault(std::string_view text) {
  const auto read = read_rfc3339(text);
  if (!read && parse_rfc3339(std::string{text} + 'Z')) {
    return "it has no zone: end it with Z for UTC, or with one such as +02:00";
  }
  const std::string_view missing = read ? read->missing() : std::string_view{};
  return missing.empty() ? std::string{} : "there is no such " + std::string{missing};
}

std::string format_rfc3339(WallTime time) {
  const auto day = floor<days>(time);
  const year_month_day date{day};
  const hh_mm_ss clock{time - day};
  const int year = static_cast<int>(date.year());
  // The format is compiled: each claim writes a time.
  return fmt::format(FMT_COMPILE("{}{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z"),
                     year < 0 ? "-" : "", std::abs(year), static_cast<unsigned>(date.month()),
                     static_cast<unsigned>(date.day()), clock.hours().count(),
                     clock.minutes().count(), clock.seconds().count(), clock.subseconds().count());
}

}  // namespace lictor
