#pragma once

// Short forms for the tests of schedules. They end the test if a text or zone is wrong.

#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "base/time_text.h"
#include "schedule/cron.h"
#include "schedule/ticks.h"
#include "schedule/zone.h"

namespace lictor::schedule {

using Times = std::vector<std::string>;

inline Cron cron(const std::string& text) {
  auto read = Cron::parse(text);
  INFO(text);
  REQUIRE_MESSAGE(read, read.error().message);
  return *read;
}

/// The words of a text, as times to the second: "2026-11-24T09:30 2026-11-24T09:30:15".
inline Times times_in(const std::string& text, const std::string& zone = {}) {
  Times times;
  std::istringstream words{text};
  for (std::string word; words >> word; times.push_back(word + zone)) {
    if (word.size() == std::string{"2026-11-24T09:30"}.size()) word += ":00";
  }
  return times;
}

/// "2026-11-24T09:30:00" as a time on the wall clock.
inline LocalTime local(const std::string& text) {
  const auto time = parse_tick(text + 'Z');
  REQUIRE_MESSAGE(time, text);
  return LocalTime{time->time_since_epoch()};
}
inline std::string local_text(LocalTime time) {
  return tick_text(Tick{time.time_since_epoch()}).substr(0, 19);
}

inline Tick tick(const std::string& text) {
  const auto time = parse_tick(text);
  REQUIRE_MESSAGE(time, text);
  return *time;
}

/// A zone of the system's tzdata.
inline std::shared_ptr<const Zone> zone(const std::string& name) {
  static Zones zones;
  auto found = zones.find(name);
  REQUIRE_MESSAGE(found, found.error().message);
  return *found;
}

inline Schedule make(Plan plan) {
  auto made = Schedule::make(std::move(plan));
  REQUIRE_MESSAGE(made, made.error().message);
  return *std::move(made);
}

inline Schedule cron_in(const std::string& zone_name, const std::string& text) {
  return make({cron(text), zone(zone_name), {}, {}});
}

/// The first ticks in (after, until], at most `most`.
inline Times ticks(const Schedule& schedule, const std::string& after, const std::string& until,
                   std::size_t most = 100) {
  Times found;
  auto next = schedule.next_after(tick(after));
  for (; next && *next <= tick(until) && found.size() < most; next = schedule.next_after(*next)) {
    found.push_back(tick_text(*next));
  }
  return found;
}

}  // namespace lictor::schedule
