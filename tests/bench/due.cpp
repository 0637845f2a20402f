// Many tasks that are due at one instant.

#include <algorithm>
#include <ctime>

#include "bench.h"

namespace lictor::bench {
namespace {

struct Starts {
  double first_ms = 0, last_ms = 0;
};

// CLOCK_MONOTONIC at this time of day.
std::int64_t monotonic_at(std::int64_t at_ms) {
  timespec wall{};
  clock_gettime(CLOCK_REALTIME, &wall);
  const std::int64_t wall_ns = std::int64_t{wall.tv_sec} * 1'000'000'000 + wall.tv_nsec;
  return live::monotonic_ns() + (at_ms * 1'000'000 - wall_ns);
}

Starts starts_at_once(const live::ConsulAgent& consul, std::size_t count,
                      std::chrono::milliseconds preload) {
  Worker worker{consul, R"({"concurrency": 64, "prefetch": 10000, "preload": ")" +
                            std::to_string(preload.count()) + R"(ms"})"};
  // Written well before they are preloaded.
  const auto lead = preload + 2s + std::chrono::milliseconds{count / 2};
  const std::int64_t due_ms = wall_ms() + lead.count();
  load(consul, kTasksPrefix, count, [&](std::size_t i) { return task_record(i, "Mark", due_ms); });
  require(wall_ms() + preload.count() < due_ms, "the tasks were not written in time");
  worker.wait_for_runs(count);
  const std::int64_t due = monotonic_at(due_ms);
  live::Kv kv{consul.address()};
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
  return starts;
}

}  // namespace

void measure_due(Bench& bench) {
  const std::size_t count = bench.sizes().due;
  for (const auto preload : {1'000ms, 5'000ms}) {
    bench.tell("due at once, preload " + std::to_string(preload.count()) + " ms");
    const auto consul = bench.consul();
    const Starts starts = starts_at_once(*consul, count, preload);
    const std::string name = std::to_string(count) + " due at once, preload " +
                             std::to_string(preload.count() / 1000) + "s: ";
    bench.add(
        {name + "first start", "ms", starts.first_ms, {}, "the instant", Row::Wanted::kAtMost, 2});
    bench.add(
        {name + "last start", "ms", starts.last_ms, {}, "the instant", Row::Wanted::kAtMost, 100});
  }
}

}  // namespace lictor::bench
