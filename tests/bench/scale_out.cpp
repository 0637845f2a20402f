// The gain from more daemons: jobs that sleep, in a queue of 16 partitions, run by one daemon and
// by several; and whether one partition costs less than many on one host. The work is counted in
// the middle of a drain, while every daemon has tasks.

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "bench.h"

namespace lictor::bench {
namespace {

constexpr std::size_t kPartitions = 16;
constexpr std::size_t kHotTasks = 50;  // of one serialKey, among the others

struct Jobs {
  std::size_t ms;           // each sleeps so long
  std::size_t concurrency;  // of a daemon
};

struct Work {
  double rate = 0;       // tasks/s
  double consul_us = 0;  // processor time a task
};

using Workers = std::vector<std::unique_ptr<Worker>>;

std::size_t run_so_far(const Workers& workers) {
  std::size_t runs = 0;
  for (const auto& worker : workers) runs += worker->board().runs.load();
  return runs;
}

// Whether each leads as many partitions as any other, give or take one.
bool is_shared(live::Kv& kv, std::size_t daemons) {
  const auto shares = live::shares_of(kv, kLeaderKey, kPartitions);
  if (shares.size() != daemons) return false;
  const auto [least, most] =
      std::minmax_element(shares.begin(), shares.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; });
  return most->second - least->second <= 1;
}

void require_order(const Workers& workers) {
  std::vector<Board::Mark> hot;
  for (const auto& worker : workers) {
    const Board& board = worker->board();
    for (std::size_t i = 0; i < board.marks.load(); ++i) hot.push_back(board.mark[i]);
  }
  std::sort(hot.begin(), hot.end(),
            [](const auto& a, const auto& b) { return a.began_ns < b.began_ns; });
  require(hot.size() == kHotTasks, "tasks of the serialKey ran twice, or not at all");
  require(std::is_sorted(hot.begin(), hot.end(),
                         [](const auto& a, const auto& b) { return a.task < b.task; }),
          "tasks of the serialKey ran out of order");
}

Work work(const live::ConsulAgent& consul, std::size_t daemons, const Jobs& jobs,
          std::chrono::seconds span) {
  live::Kv kv{consul.address()};
  kv.put("lictor/default/control", std::string{R"({"paused": {"by": "bench"}})"});
  const std::size_t a_second = daemons * jobs.concurrency * 1000 / jobs.ms;
  const std::size_t count =
      std::max(a_second * static_cast<std::size_t>(span.count()), 2 * kHotTasks);
  // Loaded before a daemon leads: it reads all tasks before a claim, and so keeps their order.
  load(consul, kTasksPrefix, count, [&](std::size_t i) {
    const bool is_hot = i % (count / kHotTasks) == 0 && i / (count / kHotTasks) < kHotTasks;
    return fmt::format(R"({{"taskType":"{}","taskTime":{},"taskPara":{{"ms":{}}}{}}})",
                       is_hot ? "SleepMarked" : "Sleep", 1000 + i, jobs.ms,
                       is_hot ? R"(,"serialKey":"hot")" : "");
  });
  const std::string queue =
      fmt::format(R"({{"partitions": {}, "concurrency": {}}})", kPartitions, jobs.concurrency);
  Workers workers;
  for (std::size_t i = 0; i < daemons; ++i) {
    workers.push_back(
        std::make_unique<Worker>(consul, queue, "bench-" + std::to_string(i + 1), false));
  }
  require(live::eventually([&] {
            std::this_thread::sleep_for(100ms);
            return is_shared(kv, daemons);
          }),
          "the partitions are not shared");
  // Waits until that part of the work is done.
  const auto until = [&](double part) {
    const auto runs = static_cast<std::size_t>(part * static_cast<double>(count));
    require(live::eventually([&] { return run_so_far(workers) >= runs; }, 10min),
            "the tasks are not run");
    struct At {
      std::int64_t ns, consul_ns;
      std::size_t runs;
    };
    return At{live::monotonic_ns(), cpu_ns(consul.pid()), run_so_far(workers)};
  };
  kv.put("lictor/default/control", std::string{"{}"});
  const auto begin = until(0.15);
  const auto end = until(0.75);
  workers.front()->wait_until_drained(kv, task_key(kTasksPrefix, count - 1));
  require(run_so_far(workers) == count, "not every task was run once");
  require_order(workers);
  for (const auto& worker : workers) worker->stop();
  const auto tasks = static_cast<double>(end.runs - begin.runs);
  return {tasks / live::seconds_between(begin.ns, end.ns),
          static_cast<double>(end.consul_ns - begin.consul_ns) / 1e3 / tasks};
}

}  // namespace

void measure_scale_out(Bench& bench) {
  for (const Jobs& jobs : {Jobs{5, 2}, Jobs{100, 8}}) {
    const std::string name = fmt::format("jobs of {} ms, concurrency {}, {} partitions: ", jobs.ms,
                                         jobs.concurrency, kPartitions);
    Work one;
    for (const std::size_t daemons : bench.sizes().daemons) {
      bench.progress(fmt::format("scale-out: {}{} daemons", name, daemons));
      const Work done = bench.on_consul(
          [&](const auto& consul) { return work(consul, daemons, jobs, bench.sizes().worked); });
      if (daemons == 1) one = done;
      const double wanted = 7.0 / 8 * static_cast<double>(daemons);
      bench.add({name + std::to_string(daemons) + " daemons", "tasks/s", done.rate, one.rate,
                 "one daemon", daemons == 1 ? Row::Wanted::kNothing : Row::Wanted::kRatioAtLeast,
                 wanted});
      bench.add({name + std::to_string(daemons) + " daemons, Consul's time a task", "us",
                 done.consul_us, one.consul_us, "one daemon",
                 daemons == 1 ? Row::Wanted::kNothing : Row::Wanted::kRatioAtMost, 1.3});
    }
  }
  const std::size_t count = bench.sizes().drained;
  std::vector<double> many, single;
  for (std::size_t run = 0; run < bench.sizes().runs; ++run) {
    bench.progress("scale-out: one daemon drains 16 partitions, and one");
    many.push_back(bench.on_consul([&](const auto& at) {
      return drain(at, count, R"({"concurrency": 64, "partitions": 16})").rate;
    }));
    single.push_back(bench.on_consul(
        [&](const auto& at) { return drain(at, count, R"({"concurrency": 64})").rate; }));
  }
  bench.add({"drain " + std::to_string(count) + ", 16 partitions on one daemon", "tasks/s",
             median(many), median(single), "one partition", Row::Wanted::kRatioAtLeast, 0.8});
}

}  // namespace lictor::bench
