// Random expressions around the clock changes of many zones, against a computation that knows no
// shortcuts: it looks at each minute and each rule by itself.

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "base/random.h"
#include "texts.h"

namespace lictor::schedule {
namespace {

using namespace std::chrono_literals;
using std::chrono::seconds;

class Chance {
 public:
  explicit Chance(std::uint64_t seed) : random_(seed) {}
  unsigned below(unsigned count) { return static_cast<unsigned>(random_.next() % count); }
  unsigned from(unsigned low, unsigned high) { return low + below(high - low + 1); }
  bool one_in(unsigned count) { return below(count) == 0; }

 private:
  Random random_;
};

struct Field {
  std::string text;
  std::set<unsigned> values;
};

unsigned random_step(Chance& chance, unsigned least, unsigned most) {
  return chance.from(2, most == 7 ? 7 : most - least + 1);
}

// One element of a field's list.
void add_element(Chance& chance, unsigned least, unsigned most, Field& field) {
  if (!field.text.empty()) field.text += ',';
  unsigned low = chance.from(least, most), high = chance.from(least, most), step = 1;
  if (low > high) std::swap(low, high);
  const unsigned drawn = chance.below(5);
  field.text += std::to_string(low);
  if (drawn > 2) high = low;
  if (drawn < 2) field.text += '-' + std::to_string(high);
  if (drawn == 1 || drawn == 2) {
    step = random_step(chance, least, most);
    field.text += '/' + std::to_string(step);
  }
  if (drawn == 2) high = most;
  for (unsigned value = low; value <= high; value += step) field.values.insert(value);
}

Field random_field(Chance& chance, unsigned least, unsigned most, unsigned star_in) {
  Field field;
  if (chance.one_in(star_in)) {
    const unsigned step = chance.one_in(2) ? 1 : random_step(chance, least, most);
    field.text = step == 1 ? "*" : "*/" + std::to_string(step);
    for (unsigned value = least; value <= most; value += step) field.values.insert(value);
    return field;
  }
  for (unsigned count = chance.one_in(3) ? chance.from(2, 3) : 1; count > 0; --count) {
    add_element(chance, least, most, field);
  }
  return field;
}

struct Expression {
  Field minute, hour, day, month, weekday;

  explicit Expression(Chance& chance)
      : minute(random_field(chance, 0, 59, 3)),
        hour(random_field(chance, 0, 23, 3)),
        day(random_field(chance, 1, 31, 2)),
        month(random_field(chance, 1, 12, 2)),
        weekday(random_field(chance, 0, 7, 2)) {
    if (weekday.values.contains(7)) weekday.values.insert(0);
  }

  [[nodiscard]] std::string text() const {
    return minute.text + ' ' + hour.text + ' ' + day.text + ' ' + month.text + ' ' + weekday.text;
  }
  [[nodiscard]] bool repeats() const {
    return hour.text.find_first_of("*/") != std::string::npos || hour.values.size() == 24;
  }
  [[nodiscard]] bool matches(LocalTime time) const {
    using namespace std::chrono;
    const auto date_day = floor<days>(time);
    const year_month_day date{date_day};
    const auto minutes_of_day = static_cast<unsigned>(floor<minutes>(time - date_day).count());
    if ((time - date_day) % 60s != 0s) return false;
    if (!minute.values.contains(minutes_of_day % 60)) return false;
    if (!hour.values.contains(minutes_of_day / 60)) return false;
    if (!month.values.contains(static_cast<unsigned>(date.month()))) return false;
    const bool by_day = day.values.contains(static_cast<unsigned>(date.day()));
    const bool by_weekday = weekday.values.contains(std::chrono::weekday{date_day}.c_encoding());
    const bool both_restricted = day.text.front() != '*' && weekday.text.front() != '*';
    return both_restricted ? by_day || by_weekday : by_day && by_weekday;
  }
};

seconds offset_at(const Zone& zone, Tick at) { return zone.period_at(at).offset; }
LocalTime shown(const Zone& zone, Tick at) {
  return LocalTime{at.time_since_epoch() + offset_at(zone, at)};
}

// The ticks in (after, until], which are whole minutes.
std::vector<Tick> expected_ticks(const Expression& expression, const Zone& zone, Tick after,
                                 Tick until) {
  std::map<LocalTime, std::vector<Tick>> instants;  // of what the clock shows at each minute
  std::vector<std::pair<Tick, LocalTime>> jumps;    // each with what the clock showed before it
  LocalTime before = shown(zone, after - 48h);
  for (Tick at = after - 48h; at <= until + 48h; at += 1min) {
    const LocalTime now = shown(zone, at);
    instants[now].push_back(at);
    if (now > before + 1min) jumps.emplace_back(at, before + 1min);
    before = now;
  }
  std::set<Tick> found;
  for (const auto& [time, at] : instants) {
    if (!expression.matches(time)) continue;
    found.insert(at.front());
    if (expression.repeats()) found.insert(at.begin(), at.end());
  }
  for (const auto& [jump, begin] : jumps) {
    for (LocalTime time = begin; time < shown(zone, jump); time += 1min) {
      if (expression.matches(time)) {
        found.insert(expression.repeats() ? jump + (time - begin) : jump);
      }
    }
  }
  return {found.upper_bound(after), found.upper_bound(until)};
}

std::vector<Tick> found_ticks(const Schedule& schedule, Tick after, Tick until) {
  std::vector<Tick> found;
  for (auto next = schedule.next_after(after); next && *next <= until;
       next = schedule.next_after(*next)) {
    if (!found.empty()) REQUIRE(*next > found.back());  // or it would never end
    found.push_back(*next);
  }
  return found;
}

// Returns how many ticks `expression` has in (after, until]; std::nullopt: it never fires.
std::optional<std::size_t> check_ticks(const char* name, const Expression& expression, Tick after,
                                       Tick until, std::size_t most) {
  INFO(name, ", ", tick_text(after), ", ", expression.text());
  const auto read = Cron::parse(expression.text());
  if (!read) {
    REQUIRE(read.error().message.starts_with("never fires"));
    return std::nullopt;
  }
  const auto where = zone(name);
  const Schedule schedule = make({*read, where, {}, {}});
  const auto expected = expected_ticks(expression, *where, after, until);
  REQUIRE(found_ticks(schedule, after, until) == expected);
  REQUIRE(schedule.count(after, until) == expected.size());
  const std::size_t left_out = expected.size() - std::min(most, expected.size());
  REQUIRE(schedule.newest(after, until, most) ==
          std::vector(expected.begin() + static_cast<std::ptrdiff_t>(left_out), expected.end()));
  return expected.size();
}

TEST_CASE("random expressions fire as the rules say, minute by minute, around each clock change") {
  struct Around {
    const char* zone;
    std::array<const char*, 2> changes;
  };
  constexpr Around kChanges[] = {
      {"Europe/Rome", {"2026-03-29T01:00:00Z", "2026-10-25T01:00:00Z"}},
      {"America/New_York", {"2026-03-08T07:00:00Z", "2050-11-06T06:00:00Z"}},
      {"Australia/Lord_Howe", {"2026-04-04T15:00:00Z", "2026-10-03T15:30:00Z"}},
      {"America/Sao_Paulo", {"2018-11-04T03:00:00Z", "2019-02-17T02:00:00Z"}},
      {"Asia/Kolkata", {"1945-10-14T17:30:00Z", "2026-03-01T00:00:00Z"}},
      {"Africa/Casablanca", {"2026-02-15T02:00:00Z", "2026-03-22T02:00:00Z"}},
      {"Pacific/Apia", {"2011-12-30T10:00:00Z", "2012-03-31T14:00:00Z"}},
      {"America/St_Johns", {"1988-04-03T03:31:00Z", "2026-11-01T04:30:00Z"}},
      {"Europe/London", {"2026-03-29T01:00:00Z", "2026-10-25T01:00:00Z"}},
      {"Asia/Tehran", {"2022-03-21T20:30:00Z", "2022-09-21T19:30:00Z"}},
      {"Pacific/Chatham", {"2026-04-04T14:00:00Z", "2026-09-26T14:00:00Z"}},
      {"UTC", {"2024-02-29T00:00:00Z", "2026-12-31T00:00:00Z"}},
  };
  Chance chance{31};
  std::size_t made = 0, ticks_found = 0;
  for (int round = 0; round < 12; ++round) {
    for (const Around& around : kChanges) {
      for (const char* change : around.changes) {
        const Expression expression{chance};
        const Tick after = tick(change) - std::chrono::minutes{chance.below(36 * 60)};
        const Tick until = tick(change) + std::chrono::minutes{chance.below(36 * 60)};
        const auto found = check_ticks(around.zone, expression, after, until, chance.below(10));
        made += found ? 1 : 0;
        ticks_found += found.value_or(0);
      }
    }
  }
  CHECK(made > 250);
  CHECK(ticks_found > 5'000);
}

TEST_CASE("random expressions fire in random weeks of three centuries") {
  Chance chance{32};
  const char* zones[] = {"Europe/Rome", "America/New_York", "Asia/Tokyo",       "Africa/Cairo",
                         "UTC",         "Australia/Sydney", "America/Santiago", "Asia/Kathmandu"};
  for (int round = 0; round < 40; ++round) {
    const Expression expression{chance};
    const char* name = zones[chance.below(std::size(zones))];
    const Tick after = tick("1950-01-01T00:00:00Z") + std::chrono::days{chance.below(110'000)};
    static_cast<void>(check_ticks(name, expression, after, after + 160h, chance.below(10)));
  }
}

}  // namespace
}  // namespace lictor::schedule
