

#include "schedule/ticks.h"
#include "texts.h"

namespace lictor::schedule {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::seconds kGrace = 5s;

Tick of_day(const std::string& time) { return tick("2026-11-24T" + time + "Z"); }

// A case with a tick each hour.
struct Case {
  Schedule schedule = cron_in("UTC", "0 * * * *");
  Missed missed;

  [[nodiscard]] std::string decide(const std::string& last, const std::string& now) const {
    const Due due =
        due_ticks(schedule, missed, of_day(last), of_day(now), of_day(now) - kGrace - 1s);
    std::string text;
    for (const Tick made : due.make) text += "make " + tick_text(made).substr(11, 8) + ' ';
    text += "skip " + std::to_string(due.skipped);
    return due.last ? text + " last " + tick_text(*due.last).substr(11, 8) : text;
  }
};

Case with(Missed::Policy policy, std::uint32_t limit = 50, std::chrono::seconds max_age = 24h) {
  return {cron_in("UTC", "0 * * * *"), {policy, limit, max_age}};
}

TEST_CASE("a tick on time is made, whatever happens to missed ones") {
  for (const auto policy : {Missed::Policy::kSkip, Missed::Policy::kOnce, Missed::Policy::kAll}) {
    const Case hourly = with(policy);
    CHECK(hourly.decide("09:00:00", "09:59:59") == "skip 0");
    CHECK(hourly.decide("09:00:00", "10:00:00") == "make 10:00:00 skip 0 last 10:00:00");
    CHECK(hourly.decide("09:00:00", "10:00:05") == "make 10:00:00 skip 0 last 10:00:00");
    CHECK(hourly.decide("10:00:00", "10:00:05") == "skip 0");
  }
}

TEST_CASE("a clock that was set back across a tick makes no tick twice") {
  for (const auto policy : {Missed::Policy::kSkip, Missed::Policy::kOnce, Missed::Policy::kAll}) {
    const Case hourly = with(policy);
    CHECK(hourly.decide("10:00:00", "09:59:58") == "skip 0");
    CHECK(hourly.decide("10:00:00", "10:00:02") == "skip 0");
    CHECK(hourly.decide("10:00:00", "08:00:00") == "skip 0");
  }
}

TEST_CASE("skip makes no missed tick") {
  const Case hourly = with(Missed::Policy::kSkip);
  CHECK(hourly.decide("09:00:00", "10:00:06") == "skip 1 last 10:00:00");
  CHECK(hourly.decide("09:00:00", "13:30:00") == "skip 4 last 13:00:00");
  CHECK(hourly.decide("09:00:00", "13:00:02") == "make 13:00:00 skip 3 last 13:00:00");
}

TEST_CASE("once makes the newest missed tick, and none if a tick is on time") {
  const Case hourly = with(Missed::Policy::kOnce);
  CHECK(hourly.decide("09:00:00", "10:00:06") == "make 10:00:00 skip 0 last 10:00:00");
  CHECK(hourly.decide("09:00:00", "13:30:00") == "make 13:00:00 skip 3 last 13:00:00");
  CHECK(hourly.decide("09:00:00", "13:00:02") == "make 13:00:00 skip 3 last 13:00:00");
}

TEST_CASE("all makes the missed ticks up to a limit, and none that is too old") {
  CHECK(with(Missed::Policy::kAll).decide("09:00:00", "12:30:00") ==
        "make 10:00:00 make 11:00:00 make 12:00:00 skip 0 last 12:00:00");
  CHECK(with(Missed::Policy::kAll, 2).decide("09:00:00", "12:30:00") ==
        "make 11:00:00 make 12:00:00 skip 1 last 12:00:00");
  // The limit is for missed ticks.
  CHECK(with(Missed::Policy::kAll, 2).decide("09:00:00", "13:00:01") ==
        "make 11:00:00 make 12:00:00 make 13:00:00 skip 1 last 13:00:00");
  CHECK(with(Missed::Policy::kAll, 0).decide("09:00:00", "13:00:01") ==
        "make 13:00:00 skip 3 last 13:00:00");
  CHECK(with(Missed::Policy::kAll, 50, 90min).decide("09:00:00", "12:30:00") ==
        "make 11:00:00 make 12:00:00 skip 1 last 12:00:00");
  CHECK(with(Missed::Policy::kAll, 50, 0s).decide("09:00:00", "13:00:01") ==
        "make 13:00:00 skip 3 last 13:00:00");
}

TEST_CASE("a schedule of each second that nobody served for ten years is no burden") {
  Case each_second = with(Missed::Policy::kAll, 3, 240h);
  each_second.schedule = make({cron("* * * * * *"), zone("Europe/Rome"), {}, {}});
  const Due due = due_ticks(each_second.schedule, each_second.missed, tick("2016-11-24T00:00:00Z"),
                            tick("2026-11-24T00:00:00Z"), tick("2026-11-23T23:59:59Z"));
  CHECK(due.make.size() == 4);
  CHECK(due.skipped == Schedule::kMostCounted);
  CHECK(due.last == tick("2026-11-24T00:00:00Z"));
}

TEST_CASE("after the end of a schedule nothing is due") {
  Case ended = with(Missed::Policy::kAll);
  ended.schedule = make({cron("0 * * * *"), nullptr, {}, tick("2026-11-24T10:00:00Z")});
  CHECK(ended.decide("09:00:00", "13:00:00") == "make 10:00:00 skip 0 last 10:00:00");
  CHECK(ended.decide("10:00:00", "13:00:00") == "skip 0");
}

}  // namespace
}  // namespace lictor::schedule
