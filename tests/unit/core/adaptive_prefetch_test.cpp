// Claims ahead of a free slot that nobody asked for: by how long jobs took of late.

#include <algorithm>

#include <doctest/doctest.h>

#include "alone.h"

using namespace lictor;
using namespace lictor::core;
using namespace lictor::core::test;

namespace {

QueueOptions by_their_time(std::uint32_t concurrency = 2) {
  QueueOptions options = options_of("a");
  options.concurrency = concurrency;
  options.prefetch_horizon = 20ms;
  return options;
}

void put(Cluster& cluster, const std::string& name, int count) {
  for (int i = 0; i < count; ++i) {
    Task& task = cluster.make(name + std::to_string(1000 + i));
    task.task_time = WallTime{std::chrono::seconds{2}};
    cluster.store.put(task);
  }
}

std::size_t taken(Cluster& cluster) {
  const Keys keys = cluster.store.task_keys();
  return static_cast<std::size_t>(std::count_if(keys.begin(), keys.end(), [&](const auto& key) {
    return cluster.store.task(key)->stamp.taken;
  }));
}

std::size_t most_taken_until_idle(Alone& a) {
  std::size_t most = 0;
  REQUIRE(a.cluster.run_until(
      [&] {
        most = std::max(most, taken(a.cluster));
        return a.idle();
      },
      60s));
  return most;
}

struct Drain {
  std::size_t most_taken = 0;
  std::size_t transactions = 0;
};

Drain drain(QueueOptions options, Duration job) {
  Alone a{std::move(options)};
  a.cluster.exclusive = false;
  a.all_end_after(job);
  put(a.cluster, "t", 100);
  Drain drained;
  drained.most_taken = most_taken_until_idle(a);
  drained.transactions = all<Commit>(a.daemon).size();
  return drained;
}

// A hundred short jobs, and then two that run for long, with many claimed behind them.
void hold_ahead(Alone& a) {
  a.cluster.exclusive = false;
  a.cluster.plan = [](const Task& task) {
    return JobPlan{task.key < "tasks/u" ? Duration{1ms} : Duration{1h}, JobEnding::kDone, {}};
  };
  put(a.cluster, "t", 100);
  put(a.cluster, "u", 100);
  REQUIRE(a.cluster.run_until([&] { return a.cluster.started.size() == 102; }, 60s));
  a.cluster.run_for(100ms);
}

}  // namespace

TEST_SUITE_BEGIN("core");

TEST_CASE("jobs of milliseconds are claimed ahead, and share their transactions") {
  QueueOptions without = by_their_time();
  without.prefetch_horizon = {};
  const Drain plain = drain(without, 1ms);
  CHECK(plain.most_taken <= 2 * without.concurrency);  // claimed, or ended and not yet written
  const Drain ahead = drain(by_their_time(), 1ms);
  CHECK(ahead.most_taken > 20);
  CHECK(3 * ahead.transactions < plain.transactions);
}

TEST_CASE("jobs that take their time are claimed when there is room") {
  CHECK(drain(by_their_time(), 100ms).most_taken <= 4);
  CHECK(drain(by_their_time(1), 1ms).most_taken <= 2);  // one at a time: strictly in order
}

TEST_CASE("what finds no slot after all is given back, and has lost nothing") {
  Alone a{by_their_time()};
  hold_ahead(a);
  CHECK(taken(a.cluster) > 10);
  CHECK(a.daemon.queue->claimed_ahead() > 10);
  a.cluster.run_for(2s);
  CHECK(taken(a.cluster) == 2);
  CHECK(a.daemon.queue->claimed_ahead() == 0);
  for (const std::string& key : a.cluster.store.task_keys()) {
    const Task& task = *a.cluster.store.task(key);
    CHECK(task.stamp.attempt == (task.stamp.taken ? 1 : 0));
    CHECK(task.stamp.lost == 0);
  }
  // One that comes first from now on is the next.
  a.cluster.put("early", [&](Task& task) { task.task_time = WallTime{std::chrono::seconds{1}}; });
  a.cluster.run_for(100ms);
  a.cluster.end_job(a.daemon, "tasks/u1000");
  a.cluster.run_for(100ms);
  REQUIRE(a.cluster.started.size() > 102);
  CHECK(a.cluster.started[102] == "tasks/early");
}

TEST_CASE("a reload that ends claims ahead gives back those that are held") {
  const auto held_after = [](std::uint32_t concurrency, std::uint32_t prefetch) {
    Alone a{by_their_time()};
    hold_ahead(a);
    REQUIRE(a.daemon.queue->claimed_ahead() > 10);
    QueueOptions next = options_of("a");
    next.concurrency = concurrency;
    next.prefetch = prefetch;
    a.cluster.tell(a.daemon, Reconfigured{std::make_shared<const QueueOptions>(next)});
    a.cluster.run_for(100ms);
    CHECK(taken(a.cluster) == 2 + a.daemon.queue->claimed_ahead());
    return a.daemon.queue->claimed_ahead();
  };
  CHECK(held_after(2, 0) == 0);
  CHECK(held_after(1, 0) == 0);
  CHECK(held_after(2, 5) > 0);
}

TEST_CASE("what a lost owner would end is not claimed ahead unasked") {
  QueueOptions once = by_their_time();
  once.any_type->delivery = Delivery::kAtMostOnce;
  CHECK(drain(once, 1ms).most_taken <= 4);
  QueueOptions no_second = by_their_time();
  no_second.max_losses = 1;
  CHECK(drain(no_second, 1ms).most_taken <= 4);
  QueueOptions slow = by_their_time();
  slow.rate_limit = Rate{1ms, 10};
  CHECK(drain(slow, 1ms).most_taken <= 4);
}

TEST_CASE("never more than may end and not be written") {
  QueueOptions options = by_their_time();
  options.max_unacked = 9;
  CHECK(drain(options, 1ms).most_taken <= 9 + 9);
  options.max_unacked = 2;
  CHECK(drain(options, 1ms).most_taken <= 4);
}

TEST_SUITE_END();
