// The text of a cron expression, from the outside in; cron.h has the grammar.
//
//   expression --@daily--> five fields
//      +--split_fields()--> 5 or 6 (seconds first) texts
//           field --parse_list()--> parts between commas --parse_set()--> range and step --> bits
//                       +--parse_day(): L, L-3      --> days_before_last
//                       +--parse_weekday(): 5L, 5#2 --> last_weekdays, nth_weekdays
//
// Dialects of cron differ most in the days, so a text that means one thing here and another thing
// elsewhere is an error with advice, not a guess: W, a range from high to low.

#include <array>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/try.h"
#include "schedule/cron.h"

namespace lictor::schedule {
namespace {

using Set = CronFields::Set;

struct FieldRule {
  const char* name;
  const char* values;  // for messages
  unsigned least, most;
  std::span<const std::string_view> names;  // of the values from `least` on
};

constexpr std::array<std::string_view, 12> kMonths{"jan", "feb", "mar", "apr", "may", "jun",
                                                   "jul", "aug", "sep", "oct", "nov", "dec"};
constexpr std::array<std::string_view, 7> kWeekdays{"sun", "mon", "tue", "wed",
                                                    "thu", "fri", "sat"};
constexpr FieldRule kSecond{"second", "0 to 59", 0, 59, {}};
constexpr FieldRule kMinute{"minute", "0 to 59", 0, 59, {}};
constexpr FieldRule kHour{"hour", "0 to 23", 0, 23, {}};
constexpr FieldRule kDay{"day of month", "1 to 31 or L", 1, 31, {}};
constexpr FieldRule kMonth{"month", "1 to 12 or jan to dec", 1, 12, kMonths};
constexpr FieldRule kWeekday{"day of week", "0 to 7 or sun to sat", 0, 7, kWeekdays};

// An error for `field`: `what` was expected, and `got` is the part of the text at fault.
tl::unexpected<Error> expected(const FieldRule& field, std::string_view what, std::string_view got,
                               const std::string& advice = {}) {
  return fail(ErrorCode::kInvalid, std::string{field.name} + ": expected " + std::string{what} +
                                       ", got \"" + excerpt(got) + '"' + advice);
}

bool is_star(const FieldRule& field, std::string_view text) {
  return text == "*" || (text == "?" && (&field == &kDay || &field == &kWeekday));
}

bool is_last(std::string_view text) { return text == "L" || text == "l"; }

Result<unsigned> parse_value(const FieldRule& field, std::string_view text) {
  const auto number = to_number<unsigned>(text);
  if (number && *number >= field.least && *number <= field.most) return *number;
  for (unsigned i = 0; i < field.names.size(); ++i) {
    if (equal_but_for_case(text, field.names[i])) return field.least + i;
  }
  return expected(field, field.values, text);
}

struct Range {
  unsigned low, high;
};

Result<Range> parse_range(const FieldRule& field, std::string_view text) {
  if (is_star(field, text)) return Range{field.least, field.most};
  const std::size_t dash = text.find('-');
  LICTOR_TRY(unsigned low, parse_value(field, text.substr(0, dash)));
  if (dash == std::string_view::npos) return Range{low, low};
  const std::string_view end = text.substr(dash + 1);
  if (&field == &kDay && is_last(end)) return Range{low, field.most};
  LICTOR_TRY(unsigned high, parse_value(field, end));
  if (&field == &kWeekday) {  // "fri-sun" and "7-2": Sunday ends the week and begins it
    if (high == 0 && low > 0) high = 7;
    if (low == 7 && high < 7) low = 0;
  }
  if (low <= high) return Range{low, high};
  const auto span = [](unsigned a, unsigned b) {
    return a == b ? std::to_string(a) : std::to_string(a) + '-' + std::to_string(b);
  };
  const unsigned most = &field == &kWeekday ? 6 : field.most;
  return expected(field, "a range from low to high", text,
                  "; write \"" + span(low, most) + ',' + span(field.least, high) + '"');
}

// A value, a range or "*", with a step or without. Sunday is 0 and 7 in the text, and bit 0 in the
// set; a single value with a step begins a range: "5/15" is "5-59/15".
Result<Set> parse_set(const FieldRule& field, std::string_view text) {
  const std::size_t slash = text.find('/');
  LICTOR_TRY(Range range, parse_range(field, text.substr(0, slash)));
  unsigned step = 1;
  if (slash != std::string_view::npos) {
    const std::string_view step_text = text.substr(slash + 1);
    const unsigned most = &field == &kWeekday ? 7 : field.most - field.least + 1;
    const auto number = to_number<unsigned>(step_text);
    if (!number || *number == 0 || *number > most) {
      return expected(field, "a step of 1 to " + std::to_string(most), step_text);
    }
    step = *number;
    if (text.substr(0, slash).find('-') == std::string_view::npos) range.high = field.most;
  }
  Set set = 0;
  for (unsigned value = range.low; value <= range.high; value += step) {
    set |= Set{1} << (&field == &kWeekday ? value % 7 : value);
  }
  return set;
}

// The parts between characters of `separators`, empty ones too.
std::vector<std::string_view> split(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> parts;
  for (std::size_t end = 0; end != std::string_view::npos;) {
    end = text.find_first_of(separators);
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return parts;
}

// The union of the sets that `parse` makes of the parts of a list.
template <class Parse>
Result<Set> parse_list(const FieldRule& field, std::string_view text, Parse parse) {
  Set all = 0;
  for (const std::string_view part : split(text, ",")) {
    if (part.empty()) return expected(field, "values with one comma between them", text);
    LICTOR_TRY(const Set set, parse(part));
    all |= set;
  }
  return all;
}

Result<Set> parse_field(const FieldRule& field, std::string_view text) {
  return parse_list(field, text, [&](std::string_view part) { return parse_set(field, part); });
}

// The set of a plain part; empty for a part with "#" or "L", which goes into `fields`.
Result<Set> parse_weekday(std::string_view part, CronFields& fields) {
  const auto single = [](std::string_view text) -> Result<Set> {
    LICTOR_TRY(const unsigned value, parse_value(kWeekday, text));
    return Set{1} << value % 7;
  };
  if (const std::size_t at = part.find('#'); at != std::string_view::npos) {
    const auto n = to_number<std::size_t>(part.substr(at + 1));
    if (!n || *n == 0 || *n > fields.nth_weekdays.size()) {
      return expected(kWeekday, "1 to 5 after #", part.substr(at + 1));
    }
    LICTOR_TRY(const Set day, single(part.substr(0, at)));
    fields.nth_weekdays[*n - 1] |= day;
    return 0;
  }
  if (is_last(part)) return expected(kWeekday, "a day with L, such as 5L", part);
  const bool last_in_front = is_last(part.substr(0, 1));
  if (last_in_front || is_last(part.substr(part.size() - 1))) {
    LICTOR_TRY(const Set day, single(part.substr(last_in_front ? 1 : 0, part.size() - 1)));
    fields.last_weekdays |= day;
    return 0;
  }
  return parse_set(kWeekday, part);
}

// The set of a plain part; empty for "L" and "L-3", which go into `fields`.
Result<Set> parse_day(std::string_view part, CronFields& fields) {
  if (part.find_first_of("Ww") != std::string_view::npos) {
    return expected(kDay, kDay.values, part,
                    "; there is no working day nearest to a date: name days of the week instead");
  }
  if (!is_last(part.substr(0, 1))) return parse_set(kDay, part);
  unsigned before = 0;
  if (part.size() > 1) {
    const auto number = part[1] == '-' ? to_number<unsigned>(part.substr(2)) : std::nullopt;
    if (!number || *number > 30) return expected(kDay, "L, or L-1 to L-30", part);
    before = *number;
  }
  fields.days_before_last |= Set{1} << before;
  return 0;
}

bool is_restricted(std::string_view day_field) {
  return !day_field.starts_with('*') && !day_field.starts_with('?');
}

// The fields of a macro; "" for other texts.
std::string_view fields_of_macro(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kMacros{
      {{"@yearly", "0 0 1 1 *"},
       {"@annually", "0 0 1 1 *"},
       {"@monthly", "0 0 1 * *"},
       {"@weekly", "0 0 * * 0"},
       {"@daily", "0 0 * * *"},
       {"@midnight", "0 0 * * *"},
       {"@hourly", "0 * * * *"}}};
  for (const auto& [name, fields] : kMacros) {
    if (equal_but_for_case(text, name)) return fields;
  }
  return {};
}

std::vector<std::string_view> split_fields(std::string_view text) {
  std::vector<std::string_view> fields = split(text, " \t");
  std::erase(fields, std::string_view{});
  return fields;
}

}  // namespace

Result<CronFields> parse_cron_fields(std::string_view expression) {
  std::vector<std::string_view> texts = split_fields(expression);
  if (!texts.empty() && texts.front().starts_with('@')) {
    const std::string_view meant = texts.size() == 1 ? fields_of_macro(texts.front()) : "";
    if (meant.empty()) {
      return fail(ErrorCode::kInvalid,
                  "expected @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly or "
                  "@every with a duration, got \"" +
                      excerpt(expression) + '"');
    }
    texts = split_fields(meant);
  }
  if (texts.size() != 5 && texts.size() != 6) {
    return fail(ErrorCode::kInvalid, "expected five fields, or six with seconds first, got " +
                                         std::to_string(texts.size()) + ": \"" +
                                         excerpt(expression) + '"');
  }

  CronFields fields;
  std::size_t at = 0;
  if (texts.size() == 6) {
    LICTOR_TRY(fields.seconds, parse_field(kSecond, texts[at++]));
  }
  LICTOR_TRY(fields.minutes, parse_field(kMinute, texts[at++]));
  const std::string_view hour = texts[at++];
  LICTOR_TRY(fields.hours, parse_field(kHour, hour));
  constexpr Set kAllHours = (1U << 24U) - 1;
  fields.every_hour =
      hour.find_first_of("*/") != std::string_view::npos || fields.hours == kAllHours;
  const std::string_view day = texts[at++];
  LICTOR_TRY(fields.days,
             parse_list(kDay, day, [&](auto part) { return parse_day(part, fields); }));
  fields.day_restricted = is_restricted(day);
  LICTOR_TRY(fields.months, parse_field(kMonth, texts[at++]));
  const std::string_view weekday = texts[at];
  LICTOR_TRY(fields.weekdays,
             parse_list(kWeekday, weekday, [&](auto part) { return parse_weekday(part, fields); }));
  fields.weekday_restricted = is_restricted(weekday);
  return fields;
}

}  // namespace lictor::schedule
