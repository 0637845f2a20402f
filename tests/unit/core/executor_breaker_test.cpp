// Jobs that the host could not even start: no attempt, no hurry, and no task overtakes wrongly.

#include "alone.h"

namespace lictor::core::test {
namespace {

// While `ill`, no job of type "program" can be started; all others end after a moment.
struct Ill : Alone {
  explicit Ill(QueueOptions options) : Alone(std::move(options)) {
    cluster.plan = [this](const Task& task) {
      if (ill && task.type == "program") {
        return JobPlan{Duration::zero(), JobEnding::kNotStarted, "no process"};
      }
      return JobPlan{1ms, JobEnding::kDone, {}};
    };
  }
  void pause(bool paused) { cluster.pause_and_run(paused, 100ms); }
  std::size_t starts_in(Duration time) {
    const std::size_t before = cluster.started.size();
    cluster.run_for(time);
    return cluster.started.size() - before;
  }
  Keys done() { return {cluster.done.begin(), cluster.done.end()}; }

  bool ill = true;
};

QueueOptions with_types(std::uint32_t concurrency) {
  QueueOptions options = options_of("a");
  options.concurrency = concurrency;
  options.types["program"] = *options.any_type;
  return options;
}

TEST_CASE("a start that fails does not count, and is tried again after 1s, 2s, 4s") {
  QueueOptions options = with_types(1);
  options.types["program"].max_attempts = 1;
  options.types["program"].delivery = Delivery::kAtMostOnce;
  Ill a{options};
  a.put("1", "program");
  const std::pair<Duration, std::size_t> table[] = {
      {100ms, 1}, {800ms, 1}, {200ms, 2}, {1800ms, 2}, {200ms, 3}, {3800ms, 3}, {200ms, 4}};
  for (const auto& [time, starts] : table) {
    a.cluster.run_for(time);
    CHECK(a.cluster.started.size() == starts);
  }
  CHECK(a.cluster.store.task("tasks/1")->stamp.attempt == 0);
  CHECK(a.cluster.store.task("tasks/1")->stamp.error == "not started: no process");
  a.cluster.run_for(1h);
  const std::size_t starts = a.cluster.started.size();
  CHECK(starts > 60);  // once a minute
  CHECK(starts < 70);
  CHECK(count(a.daemon, Fact::Kind::kNotStarted) == starts);
  a.ill = false;
  REQUIRE(a.cluster.run_until([&] { return a.idle(); }, 61s));
  CHECK(a.done() == Keys{"record 1"});
  CHECK(a.cluster.store.dead.empty());

  a.ill = true;  // one has started since: from the beginning again
  a.put("2", "program");
  a.cluster.run_for(900ms);
  CHECK(a.cluster.started.size() == starts + 2);
  a.cluster.run_for(200ms);
  CHECK(a.cluster.started.size() == starts + 3);
}

TEST_CASE("one at a time, others go on once the task that cannot be started is withdrawn") {
  Ill a{with_types(1)};
  a.put("1", "program");
  a.cluster.run_for(4s);
  a.put("2", "other");
  a.put("3", "program");
  a.put("4", "other");
  a.cluster.run_for(1s);
  CHECK(a.done().empty());
  const auto reasons = a.why("2");
  REQUIRE(reasons.size() == 1);
  CHECK(reasons.front().kind == Reason::Kind::kOrder);
  CHECK(reasons.front().key == "tasks/1");
  a.cluster.remove_and_run("tasks/1", 100ms);
  CHECK(a.done() == Keys{"record 2"});  // and not what is behind the next of that executor
}

TEST_CASE("one at a time, nothing is claimed ahead of its time beside a task that cannot start") {
  Ill a{options_with([](QueueOptions& o) { o.prefetch = 8; }, with_types(1))};
  a.put("1", "program");
  a.cluster.run_for(4s);
  a.cluster.put_and_run("2", 5s, [&](Task& task) {
    task.type = "other";
    task.execute_at = a.cluster.wall() + 1500ms;
  });
  CHECK(a.done().empty());
  a.ill = false;
  REQUIRE(a.cluster.run_until([&] { return a.idle(); }, 61s));
  CHECK(a.cluster.started.back() == "tasks/2");
}

TEST_CASE("side by side, others go on, except those of its serialKey") {
  Ill a{with_types(4)};
  a.cluster.exclusive = false;
  a.pause(true);
  a.put("1", "program", "db");
  a.put("2", "function", "db");
  a.put("3", "function");
  a.put("4", "program");
  a.put("5", "function", "db");
  a.put("6", "program", "disk");
  a.put("7", "function", "disk");
  a.pause(false);
  a.cluster.run_for(10s);
  CHECK(a.done() == Keys{"record 3"});
  CHECK(a.daemon.queue->waiting() == 6);
  CHECK_FALSE(a.daemon.queue->drained());

  SUBCASE("until it can be started") { a.ill = false; }
  SUBCASE("or is withdrawn, or due later") {
    a.cluster.store.remove("tasks/1");
    a.cluster.store.remove("tasks/4");
    a.cluster.put_and_run("6", 500ms, [&](Task& task) {
      task.type = "program";
      task.serial_key = "disk";
      task.execute_at = a.cluster.wall() + 24h;
    });
    CHECK(a.done() == Keys{"record 2", "record 3", "record 5", "record 7"});
    a.cluster.store.remove("tasks/6");
  }
  REQUIRE(a.cluster.run_until([&] { return a.idle(); }, 61s));
  const auto began = [&](const char* key) {
    return std::find(a.cluster.started.rbegin(), a.cluster.started.rend(), key);
  };
  CHECK(began("tasks/5") < began("tasks/2"));  // from the end
  if (!a.ill) CHECK(began("tasks/2") < began("tasks/1"));
}

TEST_CASE("a hold does not outlive a long pause, its term, or a reload that may be the remedy") {
  Ill a{with_types(1)};
  a.put("1", "program");
  a.cluster.run_for(35s);  // on hold for another half a minute
  SUBCASE("the task is withdrawn, and another comes later") {
    a.cluster.remove_and_run("tasks/1", 2min);
    a.put("2", "program");
    CHECK(a.starts_in(100ms) == 1);
  }
  SUBCASE("a new term") {
    const std::size_t terms = count(a.daemon, Fact::Kind::kLeading);
    a.cluster.kill_session();
    REQUIRE(
        a.cluster.run_until([&] { return count(a.daemon, Fact::Kind::kLeading) > terms; }, 5min));
    CHECK(a.starts_in(200ms) == 1);
  }
  SUBCASE("a reload") {
    a.cluster.reload(a.daemon, a.daemon.options);
    CHECK(a.starts_in(100ms) == 1);
  }
  CHECK(a.starts_in(1s) == 1);
}

TEST_CASE("after a pause one task is tried, and the others follow it") {
  Ill a{options_with([](QueueOptions& o) { o.prefetch = 4; }, with_types(8))};
  a.cluster.exclusive = false;
  a.pause(true);
  for (int i = 0; i < 30; ++i) a.put(std::to_string(i), "program");
  a.cluster.run_for(100ms);
  a.pause(false);
  CHECK(a.cluster.started.size() == 8);  // what was claimed besides is given back
  a.cluster.run_for(500ms);
  CHECK(a.starts_in(10s) == 3);  // pauses end after 1, 3 and 7 s
  CHECK(a.daemon.queue->cannot_start() == "no process");

  SUBCASE("when it has ended") {
    a.ill = false;
    REQUIRE(a.cluster.run_until([&] { return !a.cluster.done.empty(); }, 61s));
    a.cluster.plan = [](const Task&) { return JobPlan{1h, JobEnding::kDone, {}}; };
  }
  SUBCASE("when it has run for a while") {
    a.cluster.plan = [](const Task&) { return JobPlan{1h, JobEnding::kDone, {}}; };
    a.cluster.started.clear();
    REQUIRE(a.cluster.run_until([&] { return a.cluster.started.size() == 1; }, 61s));
    a.cluster.run_for(1900ms);
    CHECK(a.cluster.started.size() == 1);
    const auto why = a.why("20");
    REQUIRE_FALSE(why.empty());
    CHECK(why[0].kind == Reason::Kind::kCannotStart);
    CHECK(why[0].key == a.cluster.started.front());
    CHECK_FALSE(why[0].until);
    CHECK(a.daemon.queue->cannot_start() == "no process");
  }
  CHECK(a.starts_in(200ms) >= 7);
  CHECK(a.daemon.queue->cannot_start().empty());
  for (const auto& [id, job] : std::map{a.daemon.jobs}) {
    a.cluster.end_job(a.daemon, job.task->key, JobEnding::kNotStarted);
  }
  const std::size_t before = a.cluster.started.size();
  REQUIRE(a.cluster.run_until([&] { return a.cluster.started.size() > before; }, 61s));
  a.cluster.run_for(1s);
  CHECK(a.cluster.started.size() == before + 1);  // again one by one
  CHECK(a.cluster.store.dead.empty());
}

TEST_CASE("waits grow if a start takes longer to fail than the pause before it") {
  Ill a{with_types(1)};
  a.cluster.plan = [](const Task&) { return JobPlan{10s, JobEnding::kNotStarted, "no answer"}; };
  a.put("1", "program");
  a.cluster.run_for(110s);  // 10 s each, and 1, 2, 4, 8, 16 and 32 s between them
  CHECK(a.cluster.started.size() == 6);
}

TEST_CASE("a job from before a pause says nothing about the tasks after it") {
  Ill a{with_types(4)};
  a.cluster.exclusive = false;
  a.cluster.plan = [](const Task& task) {
    if (task.key == "tasks/1") return JobPlan{2s, JobEnding::kDone, {}};
    if (task.key == "tasks/2") return JobPlan{2500ms, JobEnding::kNotStarted, "no process"};
    return JobPlan{1ms, JobEnding::kNotStarted, "no process"};
  };
  a.put("1", "program");
  a.put("2", "program");
  a.put("3", "program");
  a.cluster.run_for(3900ms);  // tried at 0, 1 and 3 s, whatever 1 and 2 did meanwhile
  const auto starts = std::count(a.cluster.started.begin(), a.cluster.started.end(), "tasks/3") +
                      std::count(a.cluster.started.begin(), a.cluster.started.end(), "tasks/2");
  CHECK(starts == 4);
}

TEST_CASE("a hardly taken attempt counts if it is always the same task's") {
  QueueOptions options = with_types(2);
  options.types["program"].max_attempts = 1;
  const auto refuse = [](JobEnding ending, JobTaken taken) {
    JobPlan plan{1ms, ending, "refused"};
    plan.taken = taken;
    return plan;
  };
  SUBCASE("all are refused for 8 s: no attempt is counted") {
    for (const JobTaken taken : {JobTaken::kHardly, JobTaken::kNo}) {
      if (taken == JobTaken::kNo) options.types["program"].delivery = Delivery::kAtMostOnce;
      Ill a{options};
      a.cluster.exclusive = false;
      bool away = true;
      a.cluster.plan = [&](const Task&) {
        return away ? refuse(JobEnding::kPermanent, taken) : JobPlan{1ms, JobEnding::kDone, {}};
      };
      for (int i = 0; i < 20; ++i) a.put(std::to_string(i), "program");
      a.cluster.run_for(8s);
      CHECK(a.cluster.store.dead.empty());
      CHECK(a.daemon.queue->waiting() == 20);
      away = false;
      REQUIRE(a.cluster.run_until([&] { return a.idle(); }, 20s));
      CHECK(a.done().size() == 20);
    }
  }
  SUBCASE("one is refused whenever it comes, and others are not") {
    Ill a{options};
    a.cluster.exclusive = false;
    a.cluster.plan = [&](const Task& task) {
      return task.key == "tasks/5" ? refuse(JobEnding::kRetry, JobTaken::kHardly)
                                   : JobPlan{1ms, JobEnding::kDone, {}};
    };
    for (int i = 0; i < 20; ++i) a.put(std::to_string(i), "program");
    REQUIRE(a.cluster.run_until([&] { return a.idle(); }, 2min));
    CHECK(a.done().size() == 19);
    CHECK(a.cluster.store.dead.contains("dead/5"));
    CHECK(std::count(a.cluster.started.begin(), a.cluster.started.end(), "tasks/5") == 5);
  }
  SUBCASE("at most once means that it may have been taken") {
    options.types["program"].delivery = Delivery::kAtMostOnce;
    Ill a{options};
    a.cluster.plan = [&](const Task&) { return refuse(JobEnding::kRetry, JobTaken::kHardly); };
    a.put("1", "program");
    a.cluster.run_for(1s);
    CHECK(a.cluster.store.dead.contains("dead/1"));
  }
}

TEST_CASE("a job that its time-out stops before it was started counts no attempt") {
  Ill a{options_with([](QueueOptions& o) { o.types["program"].timeout = 2s; }, with_types(1))};
  a.cluster.plan = [](const Task&) { return JobPlan{2001ms, JobEnding::kNotStarted, "unsent"}; };
  a.put("1", "program");
  a.cluster.run_for(2500ms);
  CHECK(a.cluster.store.task("tasks/1")->stamp.attempt == 0);
  CHECK(a.cluster.store.task("tasks/1")->stamp.error == "not started: timed out after 2s; unsent");
}

TEST_CASE("why: the host cannot start it") {
  for (const std::uint32_t concurrency : {1U, 4U}) {
    CAPTURE(concurrency);
    Ill a{with_types(concurrency)};
    a.cluster.exclusive = false;
    a.put("1", "program");
    a.cluster.run_for(500ms);
    const auto why = a.why("1");
    REQUIRE(why.size() == 1);
    CHECK(why[0].kind == Reason::Kind::kCannotStart);
    CHECK(why[0].text == "no process");
    REQUIRE(why[0].until);
    CHECK(*why[0].until > a.cluster.wall());
    CHECK(*why[0].until < a.cluster.wall() + 1s);
  }
}

}  // namespace
}  // namespace lictor::core::test
