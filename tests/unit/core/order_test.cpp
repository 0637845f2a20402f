// The order of tasks, and the fate of their attempts.

#include "alone.h"

namespace lictor::core::test {

TEST_CASE("tasks start by time, then creation; without a time they get that of being seen") {
  Alone a;
  a.all_end_after(10ms);
  a.cluster.pause_and_run(true, 100ms);
  const auto put = [&](const std::string& id, std::optional<std::int64_t> at) {
    a.cluster.put(id, [&](Task& task) {
      if (at) task.task_time = WallTime{std::chrono::seconds{*at}};
    });
  };
  put("late", 300);
  put("b", 100);
  put("z", std::nullopt);
  put("tomorrow", std::chrono::floor<std::chrono::seconds>(a.cluster.wall() + 24h)
                      .time_since_epoch()
                      .count());  // an order, not a date
  put("a", 100);
  put("y", std::nullopt);
  a.cluster.put_and_run("timed", 1s, [](Task& task) {  // executeAt comes before taskTime
    task.task_time = WallTime{std::chrono::seconds{1}};
    task.execute_at = WallTime{std::chrono::seconds{200}};
  });
  CHECK(a.cluster.started.empty());

  a.cluster.store.control(false, "");
  CHECK(a.cluster.run_until([&] { return a.idle(); }, 5s));
  CHECK(a.cluster.started == Keys{"tasks/b", "tasks/a", "tasks/timed", "tasks/late", "tasks/z",
                                  "tasks/y", "tasks/tomorrow"});
}

TEST_CASE("a task without a time has the right place once a clock that was a day ahead is set") {
  Alone a;
  a.all_end_after(10ms);
  a.cluster.store.control(true, "");
  a.cluster.step_clock(a.daemon, 24h);
  a.cluster.run_for(1s);
  a.cluster.put_and_run("untimed", 1s);
  a.cluster.step_clock(a.daemon, -24h);
  a.cluster.run_for(1s);
  a.cluster.put_and_run("later", 1s, [&](Task& task) { task.task_time = a.cluster.wall() + 1h; });
  a.cluster.store.control(false, "");
  CHECK(a.cluster.run_until([&] { return a.idle(); }, 5s));
  CHECK(a.cluster.started == Keys{"tasks/untimed", "tasks/later"});
}

TEST_CASE("a blocked task goes before one of its serialKey whose place a set clock has changed") {
  Alone a{options_with([](QueueOptions& o) { o.concurrency = 2; })};
  const auto with_key = [](Task& task) { task.serial_key = "s"; };
  a.cluster.step_clock(a.daemon, -24h);
  a.cluster.put_and_run("first", 1s, with_key);
  a.cluster.put("untimed", with_key);
  a.cluster.put_and_run("timed", 1s, [&](Task& task) {
    task.serial_key = "s";
    task.task_time = a.cluster.wall() - 1h;
  });
  a.cluster.pause_and_run(true, 1s);
  a.end_and_run("tasks/first", 1s);
  a.cluster.step_clock(a.daemon, 24h);
  a.cluster.run_for(1s);
  a.all_end_after(10ms);
  a.cluster.store.control(false, "");
  CHECK(a.cluster.run_until([&] { return a.idle(); }, 5s));
  CHECK(a.cluster.started == Keys{"tasks/first", "tasks/timed", "tasks/untimed"});
}

TEST_CASE("the time of first seeing a task never falls with its CreateIndex, and does not change") {
  const Instant noon{std::chrono::hours{12}};
  FirstSeen seen;
  CHECK(seen.of(20, noon) == noon);
  CHECK(seen.of(10, noon + 5s) == noon);  // read later, but created before
  CHECK(seen.of(30, noon + 10s) == noon + 10s);
  CHECK(seen.of(50, noon + 20s) == noon + 20s);
  CHECK(seen.of(15, noon + 30s) == noon);
  CHECK(seen.of(30, noon + 30s) == noon + 10s);
}

TEST_CASE("a start says how long the task waited, and how late it is") {
  Alone a;
  a.cluster.put_and_run("first", 100ms);
  a.cluster.put_and_run("timed", 3s, a.cluster.due_in(1s));  // the first one is in the way
  a.end_and_run("tasks/first", 100ms);
  std::map<std::string, Fact> started;
  for (const Fact& fact : all<Fact>(a.daemon)) {
    if (fact.kind == Fact::Kind::kStarted) started.emplace(fact.key, fact);
  }
  REQUIRE(started.size() == 2);
  CHECK(started.at("tasks/first").waited < 100ms);
  CHECK_FALSE(started.at("tasks/first").late.has_value());
  const Fact& late = started.at("tasks/timed");
  CHECK(late.task->id == "timed");
  CHECK(late.waited >= 2s);
  CHECK(late.waited < 2200ms);
  CHECK(late.late.value() >= 2s);
  CHECK(late.late.value() < 2200ms);
}

TEST_CASE("the finishes of the last tasks do not wait for those before them") {
  Alone a{options_with([](QueueOptions& o) { o.concurrency = 64; })};
  a.cluster.exclusive = false;
  // One job ends first, and Consul takes long over its end.
  a.cluster.plan = [](const Task& task) {
    return JobPlan{task.key == "tasks/1" ? 10ms : 12ms, JobEnding::kDone, {}};
  };
  a.once({.back = 300ms}, [](const Effect& effect) { return finishes(effect, "tasks/1"); });
  for (int i = 1; i <= 20; ++i) a.cluster.put(std::to_string(i));
  CHECK(a.cluster.run_until([&] { return a.idle(); }, 100ms));
}

TEST_CASE("a task starts when it is due, not before, also across a step of the wall clock") {
  Alone a;
  a.cluster.put_and_run("later", 9s, a.cluster.due_in(10s));
  CHECK(a.cluster.started.empty());
  a.cluster.run_for(1010ms);
  CHECK(a.cluster.started == Keys{"tasks/later"});

  a.cluster.put("tomorrow", a.cluster.due_in(24h));
  a.end_and_run("tasks/later", 1s);
  a.cluster.tell(a.daemon, WallClockRead{a.cluster.wall() + 25h, a.cluster.now});
  a.cluster.run_for(100ms);
  CHECK(a.cluster.started.back() == "tasks/tomorrow");
}

TEST_CASE("a task that is due in a thousand years makes nobody look") {
  Alone a;
  a.cluster.put_and_run("far", std::chrono::hours{24},
                        a.cluster.due_in(std::chrono::hours{24 * 365 * 1000}));
  const std::size_t before = a.daemon.log.size();
  CHECK(a.daemon.queue->next_deadline() > a.cluster.now);
  a.cluster.run_for(10s);
  CHECK(a.daemon.log.size() < before + 40);
}

TEST_CASE("while the queue is paused running jobs go on, and nothing starts") {
  Alone a;
  a.cluster.put("1");
  a.cluster.put_and_run("2", 100ms);
  a.cluster.pause_and_run(true, 100ms);
  // What becomes due meanwhile is no reason to spin.
  a.cluster.put_and_run("3", 5s, a.cluster.due_in(1s));
  a.end_and_run("tasks/1", 5s);
  CHECK(a.cluster.started == Keys{"tasks/1"});
  CHECK(count(a.daemon, Fact::Kind::kPaused) == 1);
  a.cluster.pause_and_run(false, 100ms);
  CHECK(a.cluster.started == Keys{"tasks/1", "tasks/2"});
}

TEST_CASE("the backoff is jittered, capped, and survives a factor beyond all numbers") {
  Alone a{options_with([](QueueOptions& o) { o.any_type->max_attempts = 1000; })};
  a.all_end_after(1ms, JobEnding::kRetry);
  a.cluster.put_and_run("1", 2s, [](Task& task) {
    task.backoff = Backoff{Duration::zero(), 1s, 100.0, 0.5};
    task.stamp.attempt = 900;
  });
  CHECK(a.cluster.started.size() >= 2);
  CHECK(a.cluster.started.size() < 6);
}

TEST_CASE("an unreadable record becomes a dead letter, and never overwrites another one") {
  Alone a;
  a.all_end_after(1ms);
  a.cluster.store.write("tasks/1", "{");
  a.cluster.put_and_run("2", 1s);
  CHECK(a.dead("dead/1").reason == "unreadable");
  CHECK_FALSE(a.dead("dead/1").readable);
  CHECK(a.idle());
  a.cluster.store.write("tasks/1", "[");
  a.cluster.run_for(1s);
  CHECK(*a.dead("dead/1").record == "{");
  const std::string second = a.cluster.store.dead.rbegin()->first;
  CHECK(second.starts_with("dead/1,"));
  CHECK(*a.dead(second).record == "[");
  a.cluster.put("1");  // a readable one under the name of a buried one is a task
  a.cluster.run_for(1s);
  CHECK(a.cluster.started.back() == "tasks/1");
}

TEST_CASE("a task without an executor waits, and holds up nobody") {
  QueueOptions options = options_of("a");
  options.any_type.reset();
  options.types["Known"] = TypePolicy{};
  Alone a{options};
  a.cluster.put("1");
  a.cluster.put("2", [&](Task& task) { task.type = "Known"; });
  a.cluster.plan = [](const Task&) { return JobPlan{1ms, JobEnding::kDone, {}}; };
  // The cluster's warden asks for the policy of a type; there is one for "Known".
  a.cluster.run_for(1s);
  CHECK(a.cluster.started == Keys{"tasks/2"});
  CHECK(a.cluster.store.has("tasks/1"));
  CHECK(count(a.daemon, Fact::Kind::kNoExecutor) == 1);
}

TEST_CASE("a waiting task whose executor is taken away is reported") {
  Alone a;
  a.cluster.put("1");
  a.cluster.put_and_run("2", 1s);
  REQUIRE(a.cluster.started == Keys{"tasks/1"});
  CHECK(count(a.daemon, Fact::Kind::kNoExecutor) == 0);
  a.cluster.reload(a.daemon, options_with([](QueueOptions& o) { o.any_type.reset(); }), 1s);
  CHECK(count(a.daemon, Fact::Kind::kNoExecutor) == 1);
}

TEST_CASE("a record too large for one fenced transaction is left alone, readable or not") {
  Alone a;
  a.cluster.put("1", with_record(std::string(393'000, '.')));
  a.cluster.store.write("tasks/bad", std::string(393'000, '.'));
  a.cluster.put_and_run("2", 1s);
  CHECK(a.cluster.started == Keys{"tasks/2"});
  CHECK(count(a.daemon, Fact::Kind::kTooLarge) == 2);
  CHECK(a.cluster.store.has("tasks/1"));
  CHECK(a.cluster.store.has("tasks/bad"));
  CHECK(a.cluster.store.dead.empty());
  const auto why = a.why("1");
  REQUIRE(why.size() == 1);
  CHECK(why[0].kind == Reason::Kind::kTooLarge);
  CHECK(why[0].text.starts_with("393000 bytes; a transaction holds records of up to 387"));
  a.cluster.put("1");  // shorter now
  a.end_and_run("tasks/2", 1s);
  CHECK(a.cluster.started.back() == "tasks/1");
}

TEST_CASE("a record that just fits into one transaction is claimed, and its failure is written") {
  Alone a;
  Task& task = a.cluster.make("1");
  const std::size_t most =
      a.cluster.store.costs()->record_limit(task.key, QueueOptions{}.max_transaction_bytes);
  task.record = std::make_shared<const std::string>(std::string(most, '.'));
  a.cluster.store.put(task);
  a.cluster.run_for(1s);
  REQUIRE(a.cluster.started == Keys{"tasks/1"});
  a.end_and_run("tasks/1", 1s, JobEnding::kPermanent);
  CHECK(a.dead("dead/1").reason == "permanent");
  CHECK(a.idle());
  CHECK(count(a.daemon, Fact::Kind::kTooLarge) == 0);
}

TEST_CASE("a task that may not be written is set aside, and holds up nobody") {
  Alone a;
  a.cluster.store.no_right.insert("tasks/1");
  a.all_end_after(10ms);
  a.cluster.put("1");
  a.cluster.put_and_run("2", 4s);
  CHECK(a.cluster.started == Keys{"tasks/2"});
  CHECK(count(a.daemon, Fact::Kind::kDenied) == 1);
  a.cluster.store.no_right.clear();
  a.cluster.run_for(3s);
  CHECK(a.cluster.started == Keys{"tasks/2", "tasks/1"});
}

}  // namespace lictor::core::test
