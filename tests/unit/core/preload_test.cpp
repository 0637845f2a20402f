// Tasks are claimed ahead of their time, and start at it.

#include <doctest/doctest.h>

#include "alone.h"

using namespace lictor;
using namespace lictor::core;
using namespace lictor::core::test;

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
  std::optional<Instant> started_at(const std::string& key) {
    for (const auto& logged : daemon.log) {
      const auto* start = std::get_if<StartJob>(&logged.effect);
      if (start != nullptr && start->task->key == key) return logged.at;
    }
    return std::nullopt;
  }
};

}  // namespace

TEST_SUITE_BEGIN("core");

TEST_CASE("what is claimed ahead starts at the instant at which it is due, without Consul") {
  Timed a{ahead(2)};
  a.put("1", 10s);
  const Instant due = a.cluster.now + 10s;
  a.cluster.run_for(8900ms);
  CHECK_FALSE(a.taken("1"));
  a.cluster.run_for(200ms);
  CHECK(a.taken("1"));
  CHECK(a.cluster.started.empty());
  CHECK(a.daemon.queue->drained());  // no due tasks are left
  a.cluster.run_for(1s);
  CHECK(a.started_at("tasks/1") == due);
}

TEST_CASE("nothing is claimed ahead without prefetch or preload, under a rate, or at most once") {
  QueueOptions no_preload = ahead(2);
  no_preload.preload = 0s;
  QueueOptions rated = ahead(2);
  rated.rate_limit = Rate{1ms, 5};
  QueueOptions once = ahead(2);
  once.any_type->delivery = Delivery::kAtMostOnce;
  for (const QueueOptions& options : {ahead(0), no_preload, rated, once}) {
    Timed a{options};
    a.put("1", 500ms);
    a.cluster.run_for(450ms);
    CHECK_FALSE(a.taken("1"));
    a.cluster.run_for(100ms);
    CHECK(a.cluster.started == Keys{"tasks/1"});
  }
}

TEST_CASE("what is claimed ahead takes no slot from what is due") {
  Timed a{ahead(2)};
  a.all_end_after(10ms);
  for (const char* id : {"1", "2", "3"}) a.put(id, 900ms);
  a.cluster.run_for(100ms);
  CHECK(a.taken("1"));
  CHECK(a.taken("2"));
  CHECK_FALSE(a.taken("3"));  // prefetch
  a.cluster.put("now");
  a.cluster.run_for(50ms);
  CHECK(a.cluster.started == Keys{"tasks/now"});
  CHECK(a.cluster.run_until([&] { return a.idle(); }, 5s));
  CHECK(a.cluster.started == Keys{"tasks/now", "tasks/1", "tasks/2", "tasks/3"});
}

TEST_CASE("a task that is due before one that was claimed ahead takes its place") {
  Timed a{ahead(1)};
  a.cluster.put("long");
  a.cluster.run_for(100ms);
  a.put("later", 900ms);
  a.cluster.run_for(100ms);
  REQUIRE(a.taken("later"));
  a.put("sooner", 300ms);
  a.cluster.run_for(100ms);
  CHECK(a.taken("sooner"));
  CHECK_FALSE(a.taken("later"));
  CHECK(a.cluster.store.task("tasks/later")->stamp.attempt == 0);
  a.cluster.run_for(2s);
  a.all_end_after(10ms);
  a.cluster.end_job(a.daemon, "tasks/long");
  CHECK(a.cluster.run_until([&] { return a.idle(); }, 5s));
  CHECK(a.cluster.started == Keys{"tasks/long", "tasks/sooner", "tasks/later"});
}

TEST_CASE("of those that are due together the first in order are claimed ahead") {
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

// Only where none that are due would start the sooner, and not for long.
TEST_CASE("of many that are due together the last starts before the first end is written") {
  constexpr int kCount = 200;
  struct Case {
    Duration job, wait;  // until the first transaction after the instant
  };
  for (const auto& [job, wait] : {Case{100us, kCount / 2 * 100us}, Case{10ms, 100ms}}) {
    QueueOptions options = ahead(kCount);
    options.concurrency = 2;
    options.session_ttl = options.lock_delay = 60s;
    Timed a{options};
    a.cluster.exclusive = false;
    a.all_end_after(job);
    const Instant due = a.cluster.now + 2s;
    for (int i = 0; i < kCount; ++i) a.put(std::to_string(i), 2s);
    a.cluster.run_for(1900ms);
    REQUIRE(a.daemon.queue->claimed_ahead() == kCount);
    CHECK(a.cluster.run_until([&] { return a.idle(); }, 10s));
    CHECK(a.cluster.started.size() == kCount);

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

TEST_CASE("what is claimed ahead is given back on a pause, and started when due after it") {
  Timed a{ahead(2)};
  a.put("1", 900ms);
  a.cluster.run_for(100ms);
  REQUIRE(a.taken("1"));
  a.cluster.store.control(true, "");
  a.cluster.run_for(100ms);
  CHECK_FALSE(a.taken("1"));
  CHECK(a.cluster.store.task("tasks/1")->stamp.attempt == 0);
  a.cluster.run_for(2s);
  CHECK(a.cluster.started.empty());
  a.cluster.store.control(false, "");
  a.cluster.run_for(100ms);
  CHECK(a.cluster.started == Keys{"tasks/1"});
}

TEST_CASE("what is claimed ahead and then moved, or deleted, is let go") {
  Timed a{ahead(2)};
  a.put("moved", 900ms);
  a.put("deleted", 900ms);
  a.cluster.run_for(100ms);
  REQUIRE(a.taken("moved"));
  a.put("moved", 10s);
  a.cluster.store.remove("tasks/deleted");
  a.cluster.run_for(9s);
  CHECK(a.cluster.started.empty());
  a.cluster.run_for(2s);
  CHECK(a.cluster.started == Keys{"tasks/moved"});
}

TEST_CASE("a wall clock that was set back gives back what is early again") {
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
  QueueOptions options = ahead(2);
  options.any_type->backoff = Backoff{10s, 10s, 1.0, 0.0};
  Timed a{options};
  a.cluster.put("1");
  a.cluster.run_for(100ms);
  a.cluster.end_job(a.daemon, "tasks/1", JobEnding::kRetry, "no luck");
  a.cluster.run_for(9500ms);
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

TEST_CASE("what was claimed ahead and expires before a slot is free becomes a dead letter") {
  Timed a{ahead(2)};
  a.cluster.put("long");
  a.cluster.run_for(100ms);
  a.put("1", 500ms, [&](Task& task) { task.expire_at = a.cluster.wall() + 2s; });
  a.cluster.run_for(3s);
  a.cluster.end_job(a.daemon, "tasks/long");
  a.cluster.run_for(100ms);
  CHECK(a.cluster.started == Keys{"tasks/long"});
  CHECK(a.dead("dead/1").reason == "expired");
  CHECK(a.dead("dead/1").stamp.attempt == 0);
}

TEST_CASE("a task that may be what killed its owners does not run beside what was claimed ahead") {
  Timed a{ahead(2)};
  a.put("1", 900ms);
  a.cluster.run_for(100ms);
  REQUIRE(a.taken("1"));
  Task& killer = a.cluster.make("killer");
  killer.stamp.taken = true;
  killer.stamp.attempt = 1;
  killer.stamp.lost = 1;
  a.cluster.store.put(killer);
  a.cluster.run_for(100ms);
  CHECK(a.cluster.started == Keys{"tasks/killer"});
  CHECK_FALSE(a.taken("1"));
}

TEST_CASE("why: claimed ahead, with the time at which it is due") {
  Timed a{ahead(1)};
  a.put("1", 900ms);
  a.cluster.run_for(100ms);
  const auto reasons = a.daemon.queue->why(a.cluster.now, "tasks/1");
  REQUIRE(reasons.size() == 1);
  CHECK(reasons[0].kind == Reason::Kind::kPrefetched);
  CHECK(reasons[0].until == a.cluster.store.task("tasks/1")->execute_at);
}

TEST_SUITE_END();
