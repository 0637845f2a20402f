// The speed of draining waiting tasks, beside raw transactions of the same shape and beside the
// plain loop; and whether that rate depends on how many tasks wait.

#include <algorithm>
#include <map>

#include "bench.h"

namespace lictor::bench {
namespace {

constexpr const char* kWide = R"({"concurrency": 64})";
constexpr const char* kNoneAhead = R"({"concurrency": 64, "prefetch": 0})";
constexpr const char* kOrdered = R"({"prefetch": 64})";

void report_wide(Bench& bench, std::size_t in_one, const std::map<std::size_t, Runs>& raw,
                 const Runs& wide, const Runs& none_ahead, const Runs& ordered) {
  std::size_t best = raw.begin()->first;
  for (const auto& [connections, runs] : raw) {
    const double rate = median_of(runs, &Drained::rate);
    bench.progress("raw transactions, " + std::to_string(connections) +
                   " connections: " + std::to_string(static_cast<int>(rate)) + " tasks/s");
    if (rate > median_of(raw.at(best), &Drained::rate)) best = connections;
  }
  const double rate = median_of(raw.at(best), &Drained::rate);
  const std::string each = std::to_string(in_one);
  const std::string against =
      "raw " + each + " cas, " + each + " delete-cas; " + std::to_string(best) + " connections";
  const std::string name = "drain " + std::to_string(bench.sizes().drained) + ", concurrency ";
  bench.add({name + "64", "tasks/s", median_of(wide, &Drained::rate), rate, against,
             Row::Wanted::kRatioAtLeast, 0.7});
  bench.add(
      {name + "64, prefetch 0", "tasks/s", median_of(none_ahead, &Drained::rate), rate, against});
  bench.add({name + "1, prefetch 64", "tasks/s", median_of(ordered, &Drained::rate), rate, against,
             Row::Wanted::kRatioAtLeast, 0.5});
  const double consul_us = median_of(wide, &Drained::consul_us);
  bench.add({name + "64: Consul's processor time a task", "us", consul_us,
             median_of(raw.at(best), &Drained::consul_us), against});
  bench.add({name + "64: lictor's processor time a task", "us",
             median_of(wide, &Drained::daemon_us), consul_us, "Consul's in the same run"});
}

void measure_wide(Bench& bench) {
  const std::size_t count = bench.sizes().drained;
  std::map<std::size_t, Runs> raw;
  Runs wide, none_ahead, ordered;
  for (std::size_t run = 0; run < bench.sizes().runs; ++run) {
    bench.progress("drain, run " + std::to_string(run + 1));
    for (const std::size_t connections : bench.sizes().connections) {
      raw[connections].push_back(
          bench.on_consul([&](const auto& at) { return raw_drain(at, count, connections); }));
    }
    wide.push_back(bench.on_consul([&](const auto& at) { return drain(at, count, kWide); }));
    none_ahead.push_back(
        bench.on_consul([&](const auto& at) { return drain(at, count, kNoneAhead); }));
    ordered.push_back(bench.on_consul([&](const auto& at) { return drain(at, count, kOrdered); }));
  }
  const std::size_t in_one = bench.on_consul(operations_taken) - 1;
  report_wide(bench, in_one, raw, wide, none_ahead, ordered);
}

void measure_single(Bench& bench) {
  const std::size_t count = bench.sizes().drained_singly;
  std::vector<double> single, raw, plain;
  for (std::size_t run = 0; run < bench.sizes().runs; ++run) {
    bench.progress("drain one by one, run " + std::to_string(run + 1));
    raw.push_back(bench.on_consul([&](const auto& at) { return raw_single_rate(at, count); }));
    single.push_back(bench.on_consul([&](const auto& at) { return drain(at, count, "{}").rate; }));
    plain.push_back(bench.on_consul([&](const auto& at) { return plain_loop_rate(at, count); }));
  }
  const std::string name = "drain " + std::to_string(count) + ", ";
  bench.add({name + "concurrency 1", "tasks/s", median(single), median(raw),
             "raw check-session + delete-cas + cas; 1 connection", Row::Wanted::kRatioAtLeast,
             0.8});
  bench.add({name + "concurrency 1", "tasks/s", median(single), median(plain),
             "the plain loop, keep-alive"});
}

}  // namespace

double median_of(const Runs& runs, double Drained::*figure) {
  std::vector<double> values;
  for (const Drained& run : runs) values.push_back(run.*figure);
  return median(std::move(values));
}

Drained drain(const live::ConsulAgent& consul, std::size_t count, const std::string& queue,
              const std::string& type) {
  live::Kv kv{consul.address()};
  kv.put("lictor/default/control", std::string{R"({"paused": {"by": "bench"}})"});
  load(consul, kTasksPrefix, count, [&](std::size_t i) { return task_record(i, type); });
  Worker worker{consul, queue};
  const std::int64_t consul_before = cpu_ns(consul.pid()), daemon_before = cpu_ns(worker.pid());
  const std::int64_t begin = live::monotonic_ns();
  kv.put("lictor/default/control", std::string{"{}"});
  worker.wait_until_drained(kv, task_key(kTasksPrefix, count - 1));
  const double seconds = live::seconds_between(begin, live::monotonic_ns());
  const auto us = [&](std::int64_t spent_ns) {
    return static_cast<double>(spent_ns) / 1e3 / static_cast<double>(count);
  };
  const Drained drained{static_cast<double>(count) / seconds,
                        us(cpu_ns(consul.pid()) - consul_before),
                        us(cpu_ns(worker.pid()) - daemon_before)};
  require(type != "Noop" || worker.board().runs == count, "not every task was run once");
  worker.stop();
  return drained;
}

void measure_drain(Bench& bench) {
  measure_wide(bench);
  measure_single(bench);
}

}  // namespace lictor::bench
