// Warm workers: beside functions in C++, which need no process, and beside the same script as a
// program a task.

#include <filesystem>
#include <thread>

#include "bench.h"

namespace lictor::bench {
namespace {

// Both sides run as many at a time as the two processes take.
constexpr const char* kTwo = R"({"concurrency": 2})";
constexpr const char* kMany = R"({"concurrency": 64})";

// The worker appends when it began to its journal.
double pick_up_warm(const live::ConsulAgent& consul, const Worker& worker, live::Kv& kv,
                    std::size_t i) {
  std::error_code none_yet;
  std::filesystem::resize_file(worker.journal(), 0, none_yet);
  const std::string key = task_key(kTasksPrefix, i) + "-warm";
  std::this_thread::sleep_for(30ms);
  const std::int64_t begin = live::monotonic_ns();
  live::Kv{consul.address()}.put(key, cli::task_record(i, "WarmPython", 0, 1));
  std::string began;
  require(live::eventually([&] {
            began = live::read_text(worker.journal());
            return began.ends_with('\n');
          }),
          "the worker did not note its begin");
  require(live::eventually([&] { return !kv.has(key); }), "the task was not finished");
  return ms_between(begin, std::stoll(began));
}

void measure_pick_up(Bench& bench) {
  constexpr std::size_t kWarmUp = 10;
  const auto consul = bench.consul();
  Worker worker{*consul};
  live::Kv kv{consul->address()};
  std::vector<double> function, warm;
  for (std::size_t i = 0; i < kWarmUp + bench.sizes().picked_up; ++i) {
    function.push_back(pick_up(*consul, worker, kv, i));
    warm.push_back(pick_up_warm(*consul, worker, kv, i));
    if (i + 1 != kWarmUp) continue;
    for (auto* each : {&function, &warm}) each->clear();
  }
  worker.stop();
  const Latency cpp = summary(function), python = summary(warm);
  bench.add(
      {"pick-up, a warm worker in Python, median", "ms", python.median_ms, cpp.median_ms, "C++"});
  bench.add({"pick-up, what a warm worker in Python adds", "ms", python.median_ms - cpp.median_ms,
             0.5, "half a millisecond", Row::Wanted::kRatioAtMost, 1});
}

}  // namespace

void measure_workers(Bench& bench) {
  const std::size_t count = bench.sizes().drained, scripts = bench.sizes().scripts;
  Runs two, warm, many, limited, wide, python, cold;
  const auto run = [&](std::size_t tasks, const char* queue, const char* type) {
    return bench.on_consul([&](const auto& at) { return drain(at, tasks, queue, type); });
  };
  for (std::size_t i = 0; i < bench.sizes().runs; ++i) {
    bench.progress("workers, run " + std::to_string(i + 1));
    two.push_back(run(count, kTwo, "Noop"));
    warm.push_back(run(count, kTwo, "Warm"));
    many.push_back(run(count, kMany, "Noop"));
    limited.push_back(run(count, kMany, "Warm"));
    wide.push_back(run(count, kMany, "Wide"));
    python.push_back(run(count, kTwo, "WarmPython"));
    cold.push_back(run(scripts, kTwo, "ColdPython"));
  }
  const auto add = [&](const std::string& name, const Runs& runs, const Runs& beside,
                       const std::string& against, Row::Wanted wanted, double ratio) {
    bench.add({name, "tasks/s", median_of(runs, &Drained::rate), median_of(beside, &Drained::rate),
               against, wanted, ratio});
  };
  const std::string name = "worker, 2 processes, drain " + std::to_string(count);
  add(name + ", concurrency 2", warm, two, "C++, concurrency 2", Row::Wanted::kRatioAtLeast, 0.7);
  add(name + ", concurrency 64", limited, many, "C++, concurrency 64", Row::Wanted::kNothing, 0);
  add(name + ", tasks_per_process 32, concurrency 64", wide, many, "C++, concurrency 64",
      Row::Wanted::kRatioAtLeast, 0.7);
  add(name + ", in Python", python, cold, "the same script by exec, concurrency 2",
      Row::Wanted::kRatioAtLeast, 100);
  bench.add({name + ", concurrency 2: lictor's processor time a task", "us",
             median_of(warm, &Drained::daemon_us), median_of(two, &Drained::daemon_us),
             "C++, concurrency 2"});
  measure_pick_up(bench);
}

}  // namespace lictor::bench
