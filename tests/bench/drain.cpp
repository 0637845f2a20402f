// How fast waiting tasks are drained, beside what raw transactions of the same shape reach, and
// beside the plain loop.

#include <algorithm>
#include <map>

#include "bench.h"
#include "raw.h"

namespace lictor::bench {
namespace {

constexpr const char* kWide = R"({"concurrency": 64})";
constexpr const char* kOrdered = R"({"prefetch": 64})";

void measure_wide(Bench& bench) {
  const Sizes& sizes = bench.sizes();
  std::vector<double> wide, ordered;
  std::map<std::size_t, std::vector<double>> raw;
  for (std::size_t run = 0; run < sizes.runs; ++run) {
    bench.tell("drain, run " + std::to_string(run + 1));
    for (const std::size_t connections : sizes.connections) {
      raw[connections].push_back(bench.on_consul(
          [&](const auto& consul) { return raw_drain_rate(consul, sizes.drained, connections); }));
    }
    wide.push_back(bench.on_consul(
        [&](const auto& consul) { return drain_rate(consul, sizes.drained, kWide); }));
    ordered.push_back(bench.on_consul(
        [&](const auto& consul) { return drain_rate(consul, sizes.drained, kOrdered); }));
  }
  double best = 0;
  std::string against;
  for (const auto& [connections, rates] : raw) {
    const double rate = median(rates);
    bench.tell("raw transactions, " + std::to_string(connections) +
               " connections: " + std::to_string(static_cast<int>(rate)) + " tasks/s");
    if (rate <= best) continue;
    best = rate;
    against = "raw 63 cas, 63 delete-cas; " + std::to_string(connections) + " connections";
  }
  const std::string name = "drain " + std::to_string(sizes.drained) + ", ";
  bench.add({name + "concurrency 64", "tasks/s", median(wide), best, against,
             Row::Wanted::kRatioAtLeast, 0.7});
  bench.add({name + "concurrency 1, prefetch 64", "tasks/s", median(ordered), best, against,
             Row::Wanted::kRatioAtLeast, 0.5});
}

void measure_single(Bench& bench) {
  const std::size_t count = bench.sizes().drained_singly;
  std::vector<double> single, raw, fresh, kept;
  for (std::size_t run = 0; run < bench.sizes().runs; ++run) {
    bench.tell("drain one by one, run " + std::to_string(run + 1));
    raw.push_back(bench.on_consul([&](const auto& at) { return raw_single_rate(at, count); }));
    single.push_back(bench.on_consul([&](const auto& at) { return drain_rate(at, count, "{}"); }));
    fresh.push_back(
        bench.on_consul([&](const auto& at) { return plain_loop_rate(at, count, true); }));
    kept.push_back(
        bench.on_consul([&](const auto& at) { return plain_loop_rate(at, count, false); }));
  }
  const std::string name = "drain " + std::to_string(count) + ", ";
  bench.add({name + "concurrency 1", "tasks/s", median(single), median(raw),
             "raw check-session + delete-cas + cas; 1 connection", Row::Wanted::kRatioAtLeast,
             0.8});
  bench.add({name + "concurrency 1", "tasks/s", median(single), median(kept),
             "the plain loop, keep-alive"});
  bench.add({name + "concurrency 1", "tasks/s", median(single), median(fresh),
             "the plain loop, a new connection a request"});
}

}  // namespace

double drain_rate(const live::ConsulAgent& consul, std::size_t count, const std::string& queue,
                  const std::string& type) {
  live::Kv kv{consul.address()};
  kv.put("lictor/default/control", std::string{R"({"paused": {"by": "bench"}})"});
  load(consul, kTasksPrefix, count, [&](std::size_t i) { return task_record(i, type); });
  Worker worker{consul, queue};

  const std::int64_t begin = live::monotonic_ns();
  kv.put("lictor/default/control", std::string{"{}"});
  worker.wait_until_drained(kv, task_key(kTasksPrefix, count - 1));
  const double seconds = live::seconds_between(begin, live::monotonic_ns());
  if (type == "Noop") {
    require(worker.board().runs == count, "not every task was run once");
  }
  worker.stop();
  return static_cast<double>(count) / seconds;
}

void measure_drain(Bench& bench) {
  measure_wide(bench);
  measure_single(bench);
}

}  // namespace lictor::bench
