// Measures many tasks that are due at one instant.

#include <algorithm>
#include <ctime>
#include <optional>

#include "bench.h"

namespace lictor::bench {
namespace {

struct Starts {
  double first_ms = 0, last_ms = 0;
};

// The CLOCK_MONOTONIC time at this time of day.
std::int64_t monotonic_at(std::int64_t at_ms) {
  timespec wall{};
  clock_gettime(CLOCK_REALTIME, &wall);
  const std::int64_t wall_ns = std::int64_t{wall.tv_sec} * 1'000'000'000 + wall.tv_nsec;
  return live::monotonic_ns() + (at_ms * 1'000'000 - wall_ns);
}

// Returns std::nullopt if the tasks were due before all were written.
std::optional<Starts> starts_at_once(const live::ConsulAgent& consul, std::size_t count,
                                     std::chrono::milliseconds preload,
                                     std::chrono::milliseconds writing) {
  Worker worker{consul, R"({"concurrency": 64, "prefetch": 10000, "preload": ")" +
                            std::to_string(preload.count()) + R"(ms"})"};
  live::Kv kv{consul.address()};
  const std::int64_t due_ms = wall_ms() + (preload + writing).count();
  load(consul, kTasksPrefix, count, [&](std::size_t i) { return task_record(i, "Mark", due_ms); });
  const bool in_time = wall_ms() + preload.count() < due_ms;
  worker.wait_for_runs(count);
  const std::int64_t due = monotonic_at(due_ms);
  worker.wait_until_drained(kv, task_key(kTasksPrefix, count - 1));
  require(worker.board().runs == count, "a task was run twice");
  const auto* marks = worker.board().mark;
  const auto [first, last] = std::minmax_element(
      marks, marks + count, [](const auto& a, const auto& b) { return a.began_ns < b.began_ns; });
  const Starts starts{static_cast<double>(first->began_ns - due) / 1e6,
                      static_cast<double>(last->began_ns - due) / 1e6};
  // Two clocks of different resolution are compared: executeAt is in milliseconds.
  require(starts.first_ms > -1, "a task was started before it was due");
  worker.stop();
  return in_time ? std::optional{starts} : std::nullopt;
}

Starts starts_at_once(Bench& bench, std::chrono::milliseconds preload) {
  const std::size_t count = bench.sizes().due;
  for (auto writing = 1s + std::chrono::milliseconds{count / 4};; writing *= 4) {
    const auto consul = bench.consul();
    if (const auto starts = starts_at_once(*consul, count, preload, writing)) return *starts;
    require(writing < 60s, "writing the tasks takes too long");
    bench.progress("due at once: written too late, again with more time");
  }
}

}  // namespace

void measure_due(Bench& bench) {
  const std::size_t count = bench.sizes().due;
  for (const auto preload : bench.sizes().preload) {
    bench.progress("due at once, preload " + std::to_string(preload.count()) + " ms");
    const Starts starts = starts_at_once(bench, preload);
    const std::string name = std::to_string(count) + " due at once, preload " +
                             std::to_string(preload.count() / 1000) + "s: ";
    bench.add_at_most(name + "first start", "ms", starts.first_ms, 2);
    bench.add_at_most(name + "last start", "ms", starts.last_ms, 100);
  }
}

}  // namespace lictor::bench
