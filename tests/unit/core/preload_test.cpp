// Tasks are claimed ahead of their time, and start at it.

#include <algorithm>

#include "alone.h"

namespace lictor::core::test {
namespace {

QueueOptions ahead(std::uint32_t prefetch) {
  QueueOptions options = options_of("a");
  options.prefetch = prefetch;
  return options;
}

struct Timed : Alone {
  using Alone::Alone;

  void put(const std::string& id, Duration in, std::function<void(Task&)> change = {}) {
    Task& task = cluster.make(id);
    task.execute_at = cluster.wall() + std::chrono::floor<std::chrono::milliseconds>(in);
    if (change) change(task);
    cluster.store.put(task);
  }
  bool taken(const std::string& id) { return cluster.store.task("tasks/" + id)->stamp.taken; }
};

TEST_CASE("a task claimed ahead starts at the instant at which it is due, without Consul") {
  Timed a{ahead(2)};
  a.put("1", 10s);
  const Instant due = a.cluster.now + 10s;
  a.cluster.run_for(8900ms);
  CHECK_FALSE(a.taken("1"));
  a.cluster.run_for(200ms);
  CHECK(a.taken("1"));
  REQUIRE(a.why("1").size() == 1);
  CHECK(a.why("1")[0].kind == Reason::Kind::kPrefetched);
  CHECK(a.why("1")[0].until == a.cluster.store.task("tasks/1")->execute_at);
  CHECK(a.cluster.started.empty());
  CHECK(a.daemon.queue->drained());  // no due tasks are left
  a.cluster.run_for(1s);
  CHECK(a.started_at("tasks/1") == due);
}

TEST_CASE("nothing is claimed ahead without prefetch or preload, under a limit, or at most once") {
  const std::function<void(QueueOptions&)> changes[] = {
      [](QueueOptions& o) { o.prefetch = 0; }, [](QueueOptions& o) { o.preload = 0s; },
      [](QueueOptions& o) {
        o.rate_limit = Rate{1ms, 5};
      },
      [](QueueOptions& o) { o.any_type->delivery = Delivery::kAtMostOnce; },
      [](QueueOptions& o) { o.any_type->concurrency = 1, o.concurrency = 2; }};
  for (const auto& change : changes) {
    Timed a{options_with(change, ahead(2))};
    a.put("1", 500ms);
    a.cluster.run_for(450ms);
    CHECK_FALSE(a.taken("1"));
    a.cluster.run_for(100ms);
    CHECK(a.cluster.started == Keys{"tasks/1"});
  }
}

TEST_CASE("tasks claimed ahead take no slot from tasks that are due") {
  Timed a{ahead(2)};
  a.all_end_after(10ms);
  for (const char* id : {"1", "2", "3"}) a.put(id, 900ms);
  a.cluster.run_for(100ms);
  CHECK(a.taken("1"));
  CHECK(a.taken("2"));
  CHECK_FALSE(a.taken("3"));  // prefetch
  a.cluster.put_and_run("now", 50ms);
  CHECK(a.cluster.started == Keys{"tasks/now"});
  CHECK(a.cluster.run_until([&] { return a.idle(); }, 5s));
  CHECK(a.cluster.started == Keys{"tasks/now", "tasks/1", "tasks/2", "tasks/3"});
}

TEST_CASE("a task that is due before one that was claimed ahead takes its place") {
  Timed a{ahead(1)};
  a.cluster.put_and_run("long", 100ms);
  a.put("later", 900ms);
  a.cluster.run_for(100ms);
  REQUIRE(a.taken("later"));
  a.put("latest", 850ms);
  a.cluster.run_for(100ms);
  CHECK(count(a.daemon, Fact::Kind::kGivenBack) == 0);
  a.put("sooner", 300ms);
  a.cluster.run_for(100ms);
  CHECK(a.taken("sooner"));
  CHECK_FALSE(a.taken("later"));
  CHECK(a.cluster.store.task("tasks/later")->stamp.attempt == 0);
  a.cluster.run_for(2s);
  a.all_end_after(10ms);
  a.cluster.end_job(a.daemon, "tasks/long");
  CHECK(a.cluster.run_until([&] { return a.idle(); }, 5s));
  CHECK(a.cluster.started == Keys{"tasks/long", "tasks/sooner", "tasks/later", "tasks/latest"});
}

TEST_CASE("of tasks that are due together the first in order are claimed ahead") {
  Timed a{ahead(2)};
  a.all_end_after(10ms);
  const WallTime due = a.cluster.wall() + 3s;
  for (const char* id : {"d", "c", "b", "a"}) {
    a.put(id, 3s, [&](Task& task) { task.execute_at = due; });
  }
  a.cluster.run_for(2500ms);
  CHECK(a.taken("d"));
  CHECK(a.taken("c"));
  CHECK_FALSE(a.taken("b"));
  CHECK(a.cluster.run_until([&] { return a.idle(); }, 5s));
  CHECK(a.cluster.started == Keys{"tasks/d", "tasks/c", "tasks/b", "tasks/a"});
}

// Only if no due task would start sooner, and not for long.
TEST_CASE("of many tasks due together the last starts before the first end is written") {
  constexpr int kAtOnce = 200;
  struct Case {
    Duration job, wait;  // until the first transaction after the instant
  };
  for (const auto& [job, wait] : {Case{100us, kAtOnce / 2 * 100us}, Case{10ms, 100ms}}) {
    QueueOptions options = ahead(kAtOnce);
    options.concurrency = 2;
    options.session_ttl = options.lock_delay = 60s;
    Timed a{options};
    a.cluster.exclusive = false;
    a.all_end_after(job);
    const Instant due = a.cluster.now + 2s;
    for (int i = 0; i < kAtOnce; ++i) a.put(std::to_string(i), 2s);
    a.cluster.run_for(1900ms);
    REQUIRE(a.daemon.queue->claimed_ahead() == kAtOnce);
    CHECK(a.cluster.run_until([&] { return a.idle(); }, 10s));
    CHECK(a.cluster.started.size() == kAtOnce);

    std::optional<Instant> written;
    for (const auto& logged : a.daemon.log) {
      if (logged.at >= due && std::holds_alternative<Commit>(logged.effect)) {
        written = logged.at;
        break;
      }
    }
    REQUIRE(written);
    CHECK(*written >= due + wait);
    CHECK(*written < due + wait + 20ms);
  }
}

TEST_CASE("when the wall clock is set back, tasks that are early again are given back") {
  Timed a{ahead(2)};
  a.put("1", 900ms);
  a.cluster.run_for(100ms);
  REQUIRE(a.taken("1"));
  a.cluster.tell(a.daemon, WallClockRead{a.cluster.wall() - 1h, a.cluster.now});
  a.cluster.run_for(100ms);
  CHECK_FALSE(a.taken("1"));
  a.cluster.tell(a.daemon, WallClockRead{a.cluster.wall(), a.cluster.now});
  a.cluster.run_for(1s);
  CHECK(a.cluster.started == Keys{"tasks/1"});
}

TEST_CASE("a retry that is claimed ahead keeps its time, should its owner be lost") {
  Timed a{options_with(
      [](QueueOptions& o) {
        o.any_type->backoff = Backoff{10s, 10s, 1.0, 0.0};
      },
      ahead(2))};
  a.cluster.put_and_run("1", 100ms);
  a.end_and_run("tasks/1", 9500ms, JobEnding::kRetry);
  REQUIRE(a.taken("1"));
  REQUIRE(a.cluster.store.task("tasks/1")->stamp.retry_at);
  CHECK(*a.cluster.store.task("tasks/1")->stamp.retry_at > a.cluster.wall());
  CHECK(a.cluster.started.size() == 1);
  a.cluster.run_for(1s);
  CHECK(a.cluster.started.size() == 2);
}

TEST_CASE("a task of a serialKey is claimed when it is due, and not overtaken") {
  Timed a{ahead(2)};
  a.all_end_after(10ms);
  const WallTime due = a.cluster.wall() + 900ms;
  a.put("keyed", 0s, [&](Task& task) {
    task.execute_at = due;
    task.serial_key = "db";
  });
  a.put("free", 0s, [&](Task& task) { task.execute_at = due; });
  a.cluster.run_for(800ms);
  CHECK_FALSE(a.taken("keyed"));
  CHECK_FALSE(a.taken("free"));
  CHECK(a.cluster.run_until([&] { return a.idle(); }, 5s));
  CHECK(a.cluster.started == Keys{"tasks/keyed", "tasks/free"});
}

TEST_CASE("a task that may have killed its owners does not run beside tasks claimed ahead") {
  Timed a{ahead(2)};
  a.put("1", 900ms);
  a.cluster.run_for(100ms);
  REQUIRE(a.taken("1"));
  put_lost(a.cluster, "killer", 1);
  a.cluster.run_for(100ms);
  CHECK(a.cluster.started == Keys{"tasks/killer"});
  CHECK_FALSE(a.taken("1"));
}

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

TEST_CASE("jobs of milliseconds are claimed ahead, and share transactions; longer ones are not") {
  QueueOptions without = by_their_time();
  without.prefetch_horizon = {};
  const Drain plain = drain(without, 1ms);
  CHECK(plain.most_taken <= 2 * without.concurrency);  // claimed, or ended and not yet written
  const Drain ahead = drain(by_their_time(), 1ms);
  CHECK(ahead.most_taken > 20);
  CHECK(3 * ahead.transactions < plain.transactions);
  CHECK(drain(by_their_time(), 100ms).most_taken <= 4);
  CHECK(drain(by_their_time(1), 1ms).most_taken <= 2);  // one at a time: strictly in order
}

TEST_CASE("a claimed task that finds no slot is given back, and has lost nothing") {
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
  a.cluster.put_and_run("early", 100ms,
                        [&](Task& task) { task.task_time = WallTime{std::chrono::seconds{1}}; });
  a.end_and_run("tasks/u1000", 100ms);
  REQUIRE(a.cluster.started.size() > 102);
  CHECK(a.cluster.started[102] == "tasks/early");
}

TEST_CASE("a reload that ends claims ahead gives back the tasks that are held") {
  const auto held_after = [](std::uint32_t concurrency, std::uint32_t prefetch) {
    Alone a{by_their_time()};
    hold_ahead(a);
    REQUIRE(a.daemon.queue->claimed_ahead() > 10);
    QueueOptions next = options_of("a");
    next.concurrency = concurrency;
    next.prefetch = prefetch;
    a.cluster.reload(a.daemon, next, 100ms);
    CHECK(taken(a.cluster) == 2 + a.daemon.queue->claimed_ahead());
    return a.daemon.queue->claimed_ahead();
  };
  CHECK(held_after(2, 0) == 0);
  CHECK(held_after(1, 0) == 0);
  CHECK(held_after(2, 5) > 0);
}

TEST_CASE("what a lost owner would end, a rate counts, or cannot be acked is not claimed ahead") {
  const std::function<void(QueueOptions&)> changes[] = {
      [](QueueOptions& o) { o.any_type->delivery = Delivery::kAtMostOnce; },
      [](QueueOptions& o) { o.max_losses = 1; },
      [](QueueOptions& o) {
        o.rate_limit = Rate{1ms, 10};
      },
      [](QueueOptions& o) { o.max_unacked = 2; }};
  for (const auto& change : changes) {
    CHECK(drain(options_with(change, by_their_time()), 1ms).most_taken <= 4);
  }
  const auto nine = options_with([](QueueOptions& o) { o.max_unacked = 9; }, by_their_time());
  CHECK(drain(nine, 1ms).most_taken <= 9 + 9);
}

}  // namespace
}  // namespace lictor::core::test
