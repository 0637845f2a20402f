#include "schedule/ticks.h"

#include <set>
#include <span>

#include "texts.h"

namespace lictor::schedule {
namespace {

using namespace std::chrono_literals;

// The ticks of an expression in a zone, after one time and until another; to the minute, in UTC.
struct Row {
  const char* zone;
  const char* expression;
  const char* after;
  const char* until;
  const char* times;
};

void check_rows(std::span<const Row> table) {
  for (const Row& row : table) {
    INFO(row.zone, ", ", row.expression, ", ", row.after);
    const Schedule schedule = cron_in(row.zone, row.expression);
    const std::string after = std::string{row.after} + ":00Z",
                      until = std::string{row.until} + ":00Z";
    const Times times = times_in(row.times, "Z");
    CHECK(ticks(schedule, after, until) == times);
    CHECK(schedule.count(tick(after), tick(until)) == times.size());
  }
}

TEST_CASE("a time skipped by a jump of the clock fires once, at the jump, if hours are named") {
  const Row table[] = {
      {"Europe/Rome", "30 2 * * *", "2026-03-27T12:00", "2026-03-30T12:00",
       "2026-03-28T01:30 2026-03-29T01:00 2026-03-30T00:30"},
      {"Europe/Rome", "0 2,3 * * *", "2026-03-28T12:00", "2026-03-29T12:00", "2026-03-29T01:00"},
      {"Europe/Rome", "30 2,3 * * *", "2026-03-28T12:00", "2026-03-29T12:00",
       "2026-03-29T01:00 2026-03-29T01:30"},
      {"Europe/Rome", "30 2 * * mon", "2026-03-28T12:00", "2026-03-29T12:00", ""},
      // Half an hour is skipped: from 02:00 to 02:30.
      {"Australia/Lord_Howe", "15 2 * * *", "2026-10-03T00:00", "2026-10-04T23:00",
       "2026-10-03T15:30 2026-10-04T15:15"},
      // Midnight is skipped, and with it the time of "@daily".
      {"America/Sao_Paulo", "0 0 * * *", "2018-11-03T00:00", "2018-11-05T12:00",
       "2018-11-03T03:00 2018-11-04T03:00 2018-11-05T02:00"},
      // All of 30 December is skipped.
      {"Pacific/Apia", "0 9 * * *", "2011-12-29T00:00", "2011-12-31T23:00",
       "2011-12-29T19:00 2011-12-30T10:00 2011-12-30T19:00 2011-12-31T19:00"},
      // A month and a day are those of the zone.
      {"America/New_York", "0 22 L * *", "2026-02-01T03:00", "2026-04-30T00:00",
       "2026-03-01T03:00 2026-04-01T02:00"},
  };
  check_rows(table);
}

TEST_CASE("a time that the clock shows twice fires once only if the expression has hours") {
  const Row table[] = {
      {"Europe/Rome", "30 2 * * *", "2026-10-24T12:00", "2026-10-26T12:00",
       "2026-10-25T00:30 2026-10-26T01:30"},
      {"Europe/Rome", "*/30 2 * * *", "2026-10-24T12:00", "2026-10-25T12:00",
       "2026-10-25T00:00 2026-10-25T00:30"},
      {"Europe/Rome", "30 2 * * *", "2026-10-25T00:30", "2026-10-25T23:00", ""},
      {"Australia/Lord_Howe", "45 1 * * *", "2026-04-04T00:00", "2026-04-05T23:00",
       "2026-04-04T14:45 2026-04-05T15:15"},
  };
  check_rows(table);
}

TEST_CASE("an expression that repeats goes on by elapsed time through both changes") {
  const struct {
    const char* zone;
    const char* around;
  } changes[] = {{"Europe/Rome", "2026-03-29T01:00:00Z"},
                 {"Europe/Rome", "2026-10-25T01:00:00Z"},
                 {"Australia/Lord_Howe", "2026-04-04T15:00:00Z"},
                 {"Australia/Lord_Howe", "2026-10-03T15:30:00Z"},
                 {"Pacific/Apia", "2011-12-30T10:00:00Z"}};
  for (const auto& change : changes) {
    INFO(change.zone, ", ", change.around);
    const Tick begin = tick(change.around) - 6h;
    const Tick end = tick(change.around) + 6h;
    for (const char* expression : {"*/5 * * * *", "*/30 * * * *", "0,30 0-23 * * *"}) {
      CAPTURE(expression);
      const Schedule schedule = cron_in(change.zone, expression);
      const auto step = std::string{expression}.starts_with("*/5") ? 5min : 30min;
      std::optional<Tick> at = schedule.next_after(begin);
      CHECK(schedule.count(begin, end) == 12h / step);
      while (at && *at < end) {
        const Tick next = schedule.next_after(*at).value();
        REQUIRE(next - *at == step);
        at = next;
      }
    }
  }
}

TEST_CASE("every counts elapsed time from start, or from the epoch") {
  const Schedule from_epoch = make({Every{90s}, nullptr, {}, {}});
  CHECK(ticks(from_epoch, "2026-11-24T09:30:00Z", "2026-11-24T09:34:00Z") ==
        Times{"2026-11-24T09:31:30Z", "2026-11-24T09:33:00Z"});
  CHECK(from_epoch.next_after(tick("1969-12-31T00:00:00Z")) == tick("1970-01-01T00:00:00Z"));
  CHECK(from_epoch.next_after(Tick::min()) == tick("1970-01-01T00:00:00Z"));
  CHECK(from_epoch.count(tick("2026-11-24T00:00:00Z"), tick("2026-11-25T00:00:00Z")) == 960);

  const Schedule from_start =
      make({Every{1h}, nullptr, tick("2026-11-24T09:30:07Z"), tick("2026-11-24T11:30:07Z")});
  CHECK(ticks(from_start, "2020-01-01T00:00:00Z", "2030-01-01T00:00:00Z") ==
        Times{"2026-11-24T09:30:07Z", "2026-11-24T10:30:07Z", "2026-11-24T11:30:07Z"});
  CHECK(from_start.count(tick("2020-01-01T00:00:00Z"), tick("2030-01-01T00:00:00Z")) == 3);
  CHECK(from_start.count(tick("2026-11-24T09:30:07Z"), tick("2026-11-24T11:30:06Z")) == 1);
}

TEST_CASE("at names the instants, in any order, each once") {
  const Schedule schedule = make({At{{tick("2026-12-24T18:00:00Z"), tick("2026-11-24T09:30:00Z"),
                                      tick("2026-12-24T18:00:00Z"), tick("2027-01-01T00:00:00Z")}},
                                  nullptr,
                                  {},
                                  tick("2026-12-31T00:00:00Z")});
  CHECK(ticks(schedule, "2020-01-01T00:00:00Z", "2030-01-01T00:00:00Z") ==
        Times{"2026-11-24T09:30:00Z", "2026-12-24T18:00:00Z"});
  CHECK(schedule.count(tick("2026-11-24T09:30:00Z"), tick("2030-01-01T00:00:00Z")) == 1);
  CHECK_FALSE(schedule.next_after(tick("2026-12-24T18:00:00Z")).has_value());
}

TEST_CASE("start and end bound the ticks, and belong to them") {
  const Schedule schedule = make(
      {cron("0 * * * *"), zone("UTC"), tick("2026-11-24T09:00:00Z"), tick("2026-11-24T11:00:00Z")});
  CHECK(ticks(schedule, "2020-01-01T00:00:00Z", "2030-01-01T00:00:00Z") ==
        Times{"2026-11-24T09:00:00Z", "2026-11-24T10:00:00Z", "2026-11-24T11:00:00Z"});
  CHECK(schedule.count(tick("2020-01-01T00:00:00Z"), tick("2030-01-01T00:00:00Z")) == 3);
}

TEST_CASE("the shortest gap of a schedule is that of all its gaps, not the first") {
  CHECK(cron_in("UTC", "0,10 * * * *").shortest_gap() == 10min);  // after one of 50 minutes
  CHECK(cron_in("UTC", "10,20 * * * *").shortest_gap() == 10min);
  CHECK(make({Every{90s}, nullptr, {}, {}}).shortest_gap() == 90s);
  CHECK(make({At{{tick("2026-12-24T18:00:00Z")}}, nullptr, {}, {}}).shortest_gap() == std::nullopt);
}

TEST_CASE("a plan without a tick is refused") {
  const auto error = [](Plan plan) { return Schedule::make(std::move(plan)).error().message; };
  const Tick start = tick("2026-11-24T09:30:00Z");
  CHECK(error({Every{0s}, nullptr, {}, {}}) == R"(every: expected 1s or more, got "0s")");
  CHECK(error({At{}, nullptr, {}, {}}) == "at: expected at least one time, got none");
  CHECK(error({Every{1h}, nullptr, start, start - 1s}) ==
        R"(end: expected a time from start (2026-11-24T09:30:00Z) on, got "2026-11-24T09:29:59Z")");
  CHECK(error({cron("0 0 29 2 *"), nullptr, start, start + 24h}) ==
        "never fires: expected at least one tick from start (2026-11-24T09:30:00Z) until end "
        "(2026-11-25T09:30:00Z), got none");
  CHECK(error({At{{start}}, nullptr, start + 1s, {}}) ==
        "never fires: expected at least one tick from start (2026-11-24T09:30:01Z), got none");
}

TEST_CASE("the last tick is in the year 9999") {
  const Schedule schedule = cron_in("Europe/Rome", "0 12 31 12 *");
  CHECK(schedule.next_after(tick("9999-01-01T00:00:00Z")) == tick("9999-12-31T11:00:00Z"));
  CHECK_FALSE(schedule.next_after(tick("9999-12-31T11:00:00Z")).has_value());
  CHECK_FALSE(schedule.next_after(Tick::max()).has_value());
  CHECK(schedule.next_after(Tick::min()).has_value());
  CHECK(schedule.count(Tick::min(), Tick::max()) == 9999);
}

TEST_CASE("the newest ticks are found however many are before them") {
  const Tick now = tick("2026-11-24T09:30:00Z");
  const Schedule schedule = cron_in("Europe/Rome", "* * * * * *");
  CHECK(schedule.newest(tick("2000-01-01T00:00:00Z"), now, 2) == std::vector{now - 1s, now});
  CHECK(schedule.newest(now - 2s, now, 5) == std::vector{now - 1s, now});
  CHECK(schedule.newest(now, now, 5).empty());
  CHECK(schedule.newest(now + 1s, now, 5).empty());
  CHECK(schedule.newest(now - 2s, now, 0).empty());
  const Schedule rare = cron_in("Europe/Rome", "0 0 29 2 *");
  CHECK(rare.newest(tick("2000-01-01T00:00:00Z"), now, 1) ==
        std::vector{tick("2024-02-28T23:00:00Z")});
}

TEST_CASE("a tick names its task") {
  const Tick at = tick("2026-11-24T09:30:00Z");
  CHECK(tick_text(at) == "2026-11-24T09:30:00Z");
  CHECK(tick_id("backup", at) == "backup/20261124T093000Z");
  CHECK(tick_id("db/x", kFirstTick) == "db/x/00010101T000000Z");
  const auto read = parse_tick_id("db/backup/20261124T093000Z").value();
  CHECK(read.schedule_name == "db/backup");
  CHECK(read.tick == at);
  for (const char* id : {"", "backup", "20261124T093000Z", "/20261124T093000Z", "backup/20261124",
                         "backup/2026-11-24T09:30:00Z", "backup/20261324T093000Z", "backup@soon",
                         "backup@20261124T093000Z", "backup/20261124T093000.5Z"}) {
    CAPTURE(id);
    CHECK_FALSE(parse_tick_id(id));
  }
  CHECK(parse_tick("2026-11-24T10:30:00+01:00") == at);
  CHECK(parse_tick("2026-11-24T09:30:00.000Z") == at);
  for (const char* text : {"", "2026-11-24T09:30:00.250Z", "2026-11-24", "soon"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_tick(text).has_value());
  }
}

TEST_CASE("jitter spreads schedules, and is the same on every host") {
  CHECK(delay_of("backup", 0ms) == 0ms);
  CHECK(delay_of("backup", 1ms) == 0ms);
  CHECK(delay_of("backup", 1h) == delay_of("backup", 1h));
  // Fixed numbers: hosts with different versions agree, too.
  CHECK(delay_of("backup", 1h) == 212'352ms);
  CHECK(delay_of("report", 1h) == 2'424'388ms);
  std::set<std::int64_t> minutes;
  for (int i = 0; i < 1'000; ++i) {
    const auto delay = delay_of("schedule-" + std::to_string(i), 1h);
    REQUIRE(delay >= 0ms);
    REQUIRE(delay < 1h);
    minutes.insert(delay / 1min);
  }
  CHECK(minutes.size() == 60);
}

}  // namespace
}  // namespace lictor::schedule
