#pragma once

// Recurring tasks under one leader.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "alone.h"

namespace lictor::core::test {

using schedule::Definition;
using schedule::Tick;
using std::chrono::seconds;

inline const Tick kFirst = std::chrono::floor<seconds>(kWallStart);  // a multiple of ten seconds

/// A schedule of every `interval`, with overlap allowed, changed by `change`.
inline std::shared_ptr<const Definition> every(
    seconds interval, const std::function<void(Definition&)>& change = {}) {
  auto schedule = schedule::Schedule::make({schedule::Every{interval}, nullptr, {}, {}});
  Definition made{std::move(schedule).value(),
                  std::to_string(interval.count()),
                  {},
                  schedule::Overlap::kAllow,
                  {},
                  false,
                  {},
                  {},
                  {}};
  if (change) change(made);
  return std::make_shared<const Definition>(std::move(made));
}

/// The ids of the ticks' tasks, each made once.
inline std::vector<std::string> made(const Cluster& cluster) {
  std::vector<std::string> ids;
  for (const auto& [tick, count] : cluster.store.ticks) {
    CHECK_MESSAGE(count == 1, tick);
    ids.push_back(tick);
  }
  return ids;
}

/// One leader, most often of schedule "s"; times are those since the start.
struct Schedules : Alone {
  /// Each job ends after `job`; std::nullopt: when the test ends it.
  explicit Schedules(std::optional<Duration> job = {}, QueueOptions options = options_of("a"))
      : Alone(std::move(options)) {
    if (job) all_end_after(*job);
  }
  void run_to(Duration time) { cluster.run_for(kStart + time - cluster.now); }
  void put_and_run_to(const std::string& name, const std::shared_ptr<const Definition>& what,
                      Duration time) {
    cluster.store.put_schedule(name, what);
    run_to(time);
  }
  [[nodiscard]] std::vector<std::string> made() const { return test::made(cluster); }
  [[nodiscard]] Definition stored() const { return cluster.store.schedule("s"); }
  [[nodiscard]] Tick last_tick() const { return stored().last_tick.value(); }
  [[nodiscard]] std::uint64_t skipped(Fact::Kind kind) const {
    std::uint64_t ticks = 0;
    for (const Fact& fact : all<Fact>(daemon)) ticks += fact.kind == kind ? fact.count : 0;
    return ticks;
  }
};

}  // namespace lictor::core::test
