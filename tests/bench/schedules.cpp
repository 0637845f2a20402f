// What schedules cost: a leader with many of them that have nothing to do beside one without, and
// the ticks of many at one instant beside as many plain tasks.

#include <algorithm>
#include <string>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "bench.h"

namespace lictor::bench {
namespace {

constexpr const char* kSchedulesPrefix = "lictor/default/schedules/";
constexpr const char* kConcurrent = R"({"concurrency":64})";

struct Idle {
  double daemon = 0, consul = 0;  // percent of a core
  double megabytes = 0;
};

Idle idle_leader(const live::ConsulAgent& consul, std::chrono::milliseconds span) {
  Worker worker{consul};
  // New schedules are written once, with the time from which they count.
  std::this_thread::sleep_for(std::min<std::chrono::milliseconds>(5s, span));
  const std::int64_t daemon = cpu_ns(worker.pid()), agent = cpu_ns(consul.pid());
  std::this_thread::sleep_for(span);
  const Idle idle{core_percent(cpu_ns(worker.pid()) - daemon, span),
                  core_percent(cpu_ns(consul.pid()) - agent, span),
                  static_cast<double>(resident_bytes(worker.pid())) / 1e6};
  worker.stop();
  return idle;
}

void write_schedules(const live::ConsulAgent& consul, std::size_t count, const std::string& rule) {
  load(consul, kSchedulesPrefix, count, [&](std::size_t) {
    return fmt::format(R"({{{},"overlap":"allow","lastTick":"2026-01-01T00:00:00Z",)"
                       R"("missed":"skip","task":{{"taskType":"Noop"}}}})",
                       rule);
  });
}

// Tasks a second, from the tick until none is left.
double tick_rate(const live::ConsulAgent& consul, std::size_t count) {
  Worker worker{consul, kConcurrent};
  live::Kv kv{consul.address()};
  const std::int64_t tick = wall_ms() / 1000 + 5;
  write_schedules(consul, count, fmt::format(R"("at":[{}])", tick));
  const std::int64_t begin = std::max(tick * 1000, wall_ms());
  std::this_thread::sleep_for(std::chrono::milliseconds{begin - wall_ms()});
  worker.wait_for_runs(count);
  require(live::eventually([&] { return names_below(kv, kTasksPrefix).empty(); }),
          "tasks of the ticks are left");
  const double seconds = static_cast<double>(wall_ms() - begin) / 1e3;
  worker.stop();
  return static_cast<double>(count) / seconds;
}

}  // namespace

void measure_schedules(Bench& bench) {
  const std::size_t count = bench.sizes().schedules;
  const auto span = bench.sizes().idle;
  const std::string many = std::to_string(count) + " schedules";
  bench.progress("schedules: an idle leader without any, then with " + std::to_string(count));
  const Idle without =
      bench.on_consul([&](const live::ConsulAgent& consul) { return idle_leader(consul, span); });
  const Idle with = bench.on_consul([&](const live::ConsulAgent& consul) {
    write_schedules(consul, count, R"("cron":"0 0 1 1 *")");
    return idle_leader(consul, span);
  });
  bench.add({"idle leader with " + many, "% core", with.daemon, without.daemon, "without any"});
  bench.add({"Consul's time for it", "% core", with.consul, without.consul, "without any"});
  bench.add({"memory with " + many, "MB", with.megabytes, without.megabytes, "without any"});

  const std::size_t ticks = bench.sizes().ticks;
  bench.progress("schedules: ticks at one instant, beside plain tasks");
  const double ticked =
      bench.on_consul([&](const live::ConsulAgent& consul) { return tick_rate(consul, ticks); });
  const double plain = bench.on_consul(
      [&](const live::ConsulAgent& consul) { return drain(consul, ticks, kConcurrent).rate; });
  bench.add({std::to_string(ticks) + " ticks at one instant", "tasks/s", ticked, plain,
             "plain tasks that wait"});
}

}  // namespace lictor::bench
