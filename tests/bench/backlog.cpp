// The cost of many tasks that wait for tomorrow: a new task's start, the first reading, memory, and
// an idle daemon's processor time.

#include <random>
#include <thread>

#include <nlohmann/json.hpp>

#include "bench.h"

namespace lictor::bench {
namespace {

constexpr double kEmptyMb = 20;
constexpr double kDistantBytes = 150;  // of a task that waits for tomorrow: its key, version, time
constexpr std::size_t kValueBytes = 300;
constexpr std::size_t kReadings = 3;

std::string waiting_record(std::size_t i, std::int64_t due_ms) {
  const std::size_t bare = task_record(i, "Mark", due_ms, 1).size() - 1;
  return task_record(i, "Mark", due_ms, kValueBytes - bare);
}

// A task that is due, and held in memory as long as nothing runs it.
std::string held_record(std::size_t i) {
  const std::size_t bare = task_record(i, "Nobody", 0, 1).size() - 1;
  return task_record(i, "Nobody", 0, kValueBytes - bare);
}

// The time from a daemon's start to that of a task that was due before and is the last of the list.
double first_reading_ms(const live::ConsulAgent& consul) {
  live::Kv kv{consul.address()};
  const std::string key = std::string{kTasksPrefix} + "~last";
  kv.put(key, task_record(0, "Mark"));
  Worker worker{consul};
  worker.wait_for_runs(1);
  const double ms =
      static_cast<double>(worker.board().mark[0].began_ns - worker.started_ns()) / 1e6;
  require(live::eventually([&] { return !kv.has(key); }), "the task was not finished");
  worker.stop();
  return ms;
}

double raw_reading_ms(const live::ConsulAgent& consul, std::size_t count) {
  live::Kv kv{consul.address()};
  const std::int64_t begin = live::monotonic_ns();
  const auto answer = kv.request("GET", std::string{"/v1/kv/"} + kTasksPrefix + "?recurse");
  require(answer.status == 200, "cannot read the list");
  const auto parsed = answer.json();
  const std::int64_t end = live::monotonic_ns();
  require(parsed.size() >= count, "the list is not complete");
  return static_cast<double>(end - begin) / 1e6;
}

void measure_reading(Bench& bench, const live::ConsulAgent& consul, double empty_ms) {
  std::vector<double> own, raw;
  for (std::size_t i = 0; i < kReadings; ++i) {
    raw.push_back(raw_reading_ms(consul, bench.sizes().backlog));
    own.push_back(first_reading_ms(consul) - empty_ms);
  }
  bench.add({"first full read", "ms", median(own), median(raw), "GET ?recurse + JSON parse",
             Row::Wanted::kRatioAtMost, 2});
}

Latency new_tasks(Bench& bench, const live::ConsulAgent& consul, const Worker& worker) {
  const std::size_t count = bench.sizes().backlog_picked_up;
  std::mt19937 random{5};  // the same intervals in every run
  std::vector<std::int64_t> written;
  live::Kv kv{consul.address()};
  const auto put = [&](std::size_t i) {
    written.push_back(live::monotonic_ns());
    kv.put(std::string{kTasksPrefix} + "new-" + std::to_string(i), task_record(i, "Mark"));
  };
  put(0);  // waits for the first reading of the list, which is measured by itself
  worker.wait_for_runs(1);
  for (std::size_t i = 1; i <= count; ++i) {
    std::this_thread::sleep_for(
        std::chrono::milliseconds{std::uniform_int_distribution<int>{50, 300}(random)});
    put(i);
  }
  worker.wait_for_runs(count + 1);
  std::vector<double> ms;
  for (std::size_t i = 1; i <= count; ++i) {
    const Board::Mark& mark = worker.board().mark[i];
    ms.push_back(
        static_cast<double>(mark.began_ns - written.at(static_cast<std::size_t>(mark.task))) / 1e6);
  }
  return summary(std::move(ms));
}

double worker_bytes(const Worker& worker) {
  return static_cast<double>(bench::resident_bytes(worker.pid()));
}

void measure_idle(Bench& bench, const Worker& leader, const Worker& follower,
                  const std::string& waiting, double leader_mb) {
  const auto span = bench.sizes().idle;
  const std::int64_t leader_before = cpu_ns(leader.pid());
  const std::int64_t follower_before = cpu_ns(follower.pid());
  std::this_thread::sleep_for(span);
  bench.add_at_most("idle leader, " + waiting + ", processor", "% core",
                    core_percent(cpu_ns(leader.pid()) - leader_before, span), 0.15);
  bench.add_at_most("idle follower, " + waiting + ", processor", "% core",
                    core_percent(cpu_ns(follower.pid()) - follower_before, span), 0.15);
  bench.add_at_most("idle leader, " + waiting + ", memory", "MB", worker_bytes(leader) / 1e6,
                    leader_mb);
  bench.add_at_most("idle follower, " + waiting + ", memory", "MB", worker_bytes(follower) / 1e6,
                    20);
}

// The memory of a task that is due and waits.
void measure_held(Bench& bench, double base_bytes) {
  const std::size_t count = bench.sizes().backlog;
  const auto consul = bench.consul();
  bench.progress("backlog: writing " + std::to_string(count) + " tasks that nothing runs");
  load(*consul, kTasksPrefix, count, [&](std::size_t i) { return held_record(i); });
  Worker worker{*consul};
  live::Kv{consul->address()}.put(std::string{kTasksPrefix} + "~last", task_record(0, "Mark"));
  worker.wait_for_runs(1);  // all of the list was read
  std::this_thread::sleep_for(std::min<std::chrono::milliseconds>(2s, bench.sizes().idle));
  bench.add_at_most("memory a task that is due and waits, beyond its value", "bytes",
                    (worker_bytes(worker) - base_bytes) / static_cast<double>(count) -
                        static_cast<double>(kValueBytes),
                    1000);
  worker.stop();
}

}  // namespace

void measure_backlog(Bench& bench) {
  const std::size_t count = bench.sizes().backlog;
  const auto consul = bench.consul();
  bench.progress("backlog: an empty queue first");
  std::vector<double> empty;
  for (std::size_t i = 0; i < kReadings; ++i) empty.push_back(first_reading_ms(*consul));
  double base_bytes = 0;
  {
    Worker leader{*consul};
    Worker follower{*consul, "{}", "bench-2", false};
    std::this_thread::sleep_for(std::min<std::chrono::milliseconds>(2s, bench.sizes().idle));
    measure_idle(bench, leader, follower, "0 waiting", kEmptyMb);
    base_bytes = worker_bytes(leader);
    follower.stop();
    leader.stop();
  }

  bench.progress("backlog: writing " + std::to_string(count) + " tasks for tomorrow");
  const std::int64_t tomorrow = wall_ms() + 24 * 3'600'000LL;
  load(*consul, kTasksPrefix, count, [&](std::size_t i) { return waiting_record(i, tomorrow); });
  bench.progress("backlog: the first full read");
  measure_reading(bench, *consul, median(empty));

  const std::string waiting = std::to_string(count) + " waiting";
  Worker leader{*consul};
  bench.progress("backlog: new tasks beside it");
  const Latency fresh = new_tasks(bench, *consul, leader);
  bench.add_at_most("new task beside " + waiting + ", median", "ms", fresh.median_ms, 50);
  bench.add_at_most("new task beside " + waiting + ", p99", "ms", fresh.p99_ms, 250);
  bench.progress("backlog: doing nothing");
  Worker follower{*consul, "{}", "bench-2", false};
  std::this_thread::sleep_for(std::min<std::chrono::milliseconds>(2s, bench.sizes().idle));
  measure_idle(bench, leader, follower, waiting,
               kEmptyMb + kDistantBytes * static_cast<double>(count) / 1e6);
  bench.add({"memory a task that waits for tomorrow", "bytes",
             (worker_bytes(leader) - base_bytes) / static_cast<double>(count)});
  follower.stop();
  leader.stop();
  measure_held(bench, base_bytes);
}

}  // namespace lictor::bench
