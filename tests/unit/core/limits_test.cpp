// The limits that a configuration sets, and why a job that was stopped was stopped.

#include "alone.h"

namespace lictor::core::test {
namespace {

// Ends the job as `exit` says, except for the id.
void exits(Alone& a, const std::string& key, JobExited exit) {
  const Job* job = a.cluster.job(key);
  REQUIRE(job != nullptr);
  exit.attempt = job->id;
  a.daemon.jobs.erase(exit.attempt);
  a.cluster.tell(a.daemon, std::move(exit));
}

// Types "slow", which `limit` of may run, and all others.
QueueOptions limited(std::uint32_t limit) {
  QueueOptions options = options_of("a");
  options.concurrency = 4;
  options.types["slow"] = *options.any_type;
  options.types["slow"].concurrency = limit;
  return options;
}

void reload(Alone& a, const QueueOptions& options) { a.cluster.reload(a.daemon, options, 100ms); }

// The time allowed to the job that starts next.
Duration time_allowed(Alone& a) {
  REQUIRE(a.cluster.run_until([&] { return a.cluster.running() == 1; }, 1s));
  const StartJob start = all<StartJob>(a.daemon).back();
  REQUIRE(start.deadline);
  return *start.deadline - a.cluster.now;
}

TEST_CASE("a record's settings are bounded by the configuration") {
  QueueOptions options = options_of("a");
  options.any_type->max_attempts_limit = 2;
  options.any_type->timeout_limit = 10s;
  Alone a{options};
  a.cluster.put("1", [](Task& task) {
    task.max_attempts = 100;
    task.timeout = 1h;
  });
  CHECK(time_allowed(a) == 10s);
  a.cluster.end_job(a.daemon, "tasks/1", JobEnding::kRetry, "no luck");
  REQUIRE(a.cluster.run_until([&] { return a.cluster.started.size() == 2; }, 5s));
  a.end_and_run("tasks/1", 1s, JobEnding::kRetry);
  CHECK(a.dead("dead/1").reason == "failed");

  a.cluster.put("2");  // asks for nothing
  CHECK(time_allowed(a) == 10s);
  a.end_and_run("tasks/2", 1s);
  a.cluster.put("3", [&](Task& t) { t.timeout = 2s; });
  CHECK(time_allowed(a) == 2s);
}

TEST_CASE("a called service cannot ask for less than the backoff, nor for more than a day") {
  Alone a;
  a.cluster.put_and_run("1", 100ms);
  JobExited exit{{}, JobEnding::kRetry, "503", {}};
  exit.retry_after = 1ms;
  exits(a, "tasks/1", exit);
  a.cluster.run_for(900ms);
  CHECK(a.cluster.started.size() == 1);
  REQUIRE(a.cluster.run_until([&] { return a.cluster.started.size() == 2; }, 1s));
  exit.retry_after = 48h;
  exits(a, "tasks/1", exit);
  a.cluster.run_for(24h - 1s);
  CHECK(a.cluster.started.size() == 2);
  CHECK(a.cluster.run_until([&] { return a.cluster.started.size() == 3; }, 2s));
}

TEST_CASE("a record cannot ask for less than the configured wait") {
  for (const Backoff& impatient :
       {Backoff{Duration::zero(), Duration::zero(), 1, 0}, Backoff{1ms, 1h, 1, 1}}) {
    Alone a{options_with([](QueueOptions& o) { o.any_type->backoff = {1s, 5min, 2, 0.2}; })};
    a.all_end_after(1ms, JobEnding::kRetry);
    a.cluster.put_and_run("1", 10s, [&](Task& task) {
      task.max_attempts = 1000;
      task.backoff = impatient;
    });
    CHECK(a.cluster.started.size() >= 9);
    CHECK(a.cluster.started.size() <= 13);
  }
}

TEST_CASE("a backoff of days is one of days, by the type's setting and by the record's") {
  for (const bool by_record : {false, true}) {
    const Backoff days{48h, 48h, 1.0, 0};
    QueueOptions options = options_of("a");
    if (!by_record) options.any_type->backoff = days;
    Alone a{options};
    Task& task = a.cluster.make("1");
    if (by_record) task.backoff = days;
    a.cluster.store.put(task);
    a.cluster.run_for(1s);
    a.end_and_run("tasks/1", 47h, JobEnding::kRetry);
    CHECK(a.cluster.started.size() == 1);
    CHECK(a.cluster.run_until([&] { return a.cluster.started.size() == 2; }, 2h));
  }
}

TEST_CASE("a reload takes over every limit and policy, and no setting that the lease is built on") {
  QueueOptions next = options_of("b");
  next.concurrency = 11;
  next.prefetch = 12;
  next.prefetch_horizon = 25ms;
  next.preload = 13s;
  next.max_unacked = 14;
  next.max_losses = 15;
  next.rate_limit = Rate{16s, 17};
  next.history = HistoryLimits{18, 19h};
  next.serialize_retries = false;
  next.drain_timeout = 20s;
  next.types["T"].max_attempts = 21;
  next.any_type->max_attempts = 22;
  next.session_ttl = next.lock_delay = next.kill_grace = next.margin = 23s;
  next.renew_interval = next.request_timeout = 24s;
  QueueOptions options = options_of("a");
  options.take_limits(next);
  const auto limits = [](const QueueOptions& o) {
    return std::tie(o.concurrency, o.prefetch, o.prefetch_horizon, o.preload, o.max_unacked,
                    o.max_losses, o.rate_limit, o.history, o.serialize_retries, o.drain_timeout,
                    o.types, o.any_type);
  };
  CHECK((limits(options) == limits(next)));
  CHECK(options.node == "a");
  CHECK(options.lease_span() == QueueOptions{}.lease_span());
  CHECK(options.session_ttl == QueueOptions{}.session_ttl);
  CHECK(options.renew_interval == QueueOptions{}.renew_interval);
  CHECK(options.request_timeout == QueueOptions{}.request_timeout);
  CHECK(options_of("a").runs_all_of(next));
  next.any_type.reset();
  CHECK_FALSE(next.runs_all_of(options));
}

TEST_CASE("a type at its concurrency waits in order, and the others pass") {
  Alone a{limited(2)};
  a.cluster.exclusive = false;
  for (const char* id : {"1", "2", "3", "4"}) a.put(id, "slow");
  a.put("5", "other");
  a.cluster.run_for(1s);
  CHECK(a.cluster.started == Keys{"tasks/1", "tasks/2", "tasks/5"});
  CHECK(a.daemon.queue->state_text("tasks/3") == "limited");
  CHECK(a.cluster.store.task("tasks/3")->stamp == Stamp{});  // nothing is claimed ahead
  CHECK(count(a.daemon, Fact::Kind::kGivenBack) == 0);

  const auto why = a.why("4");
  REQUIRE(why.size() == 2);
  CHECK(why[0].kind == Reason::Kind::kTypeSlots);
  CHECK(why[0].text == "slow");
  CHECK(why[0].count == 2);
  CHECK(why[0].key == "tasks/1");
  CHECK(why[1].kind == Reason::Kind::kOrder);
  CHECK(why[1].count == 1);
  CHECK(why[1].key == "tasks/3");
  // A task that is due earlier is written late.
  a.cluster.put_and_run("0", 100ms, [&](Task& task) {
    task.type = "slow";
    task.task_time = a.cluster.wall() - 1h;
  });
  a.end_and_run("tasks/2", 100ms);
  CHECK(a.cluster.started.back() == "tasks/0");
  a.end_and_run("tasks/1", 100ms, JobEnding::kRetry);
  CHECK(a.cluster.started.back() == "tasks/3");
  a.cluster.store.remove("tasks/4");
  a.all_end_after(1ms);
  for (const char* key : {"tasks/0", "tasks/3", "tasks/5"}) a.cluster.end_job(a.daemon, key);
  CHECK(a.cluster.run_until([&] { return a.idle(); }, 10s));
}

TEST_CASE("the concurrency of \"*\" counts all types that it runs together") {
  Alone a{options_with([](QueueOptions& o) { o.any_type->concurrency = 1; }, limited(4))};
  a.cluster.exclusive = false;
  a.put("1", "one");
  a.put("2", "another");
  a.put("3", "slow");
  a.cluster.run_for(1s);
  CHECK(a.cluster.started == Keys{"tasks/1", "tasks/3"});
}

TEST_CASE("a reload raises, lowers and lifts the concurrency of a type") {
  Alone a{limited(1)};
  a.cluster.exclusive = false;
  for (const char* id : {"1", "2", "3", "4"}) a.put(id, "slow");
  a.cluster.run_for(100ms);
  CHECK(a.cluster.running() == 1);
  reload(a, limited(3));
  CHECK(a.cluster.running() == 3);
  reload(a, limited(1));
  a.cluster.end_job(a.daemon, "tasks/1");
  a.end_and_run("tasks/2", 100ms);
  CHECK(a.cluster.running() == 1);
  reload(a, limited(0));
  CHECK(a.cluster.running() == 2);
}

TEST_CASE("with concurrency 1 that of a type changes nothing: the order is strict") {
  QueueOptions options = limited(1);
  options.concurrency = 1;
  options.prefetch = 4;
  Alone a{options};
  a.all_end_after(10ms);
  for (const char* id : {"1", "2"}) a.put(id, "slow");
  a.put("3", "other");
  a.put("4", "slow");
  CHECK(a.cluster.run_until([&] { return a.idle(); }, 10s));
  CHECK(a.cluster.started == Keys{"tasks/1", "tasks/2", "tasks/3", "tasks/4"});
}

TEST_CASE("a rate limit that a reload sets, changes or lifts is kept from then on") {
  Alone a;
  a.all_end_after(1ms);
  reload(a, options_with([](QueueOptions& o) { o.rate_limit = Rate{10s, 1}; }));
  for (const char* id : {"1", "2", "3", "4", "5", "6"}) a.cluster.put(id);
  a.cluster.run_for(15s);
  CHECK(a.cluster.started.size() == 2);
  reload(a, options_of("a"));
  a.cluster.run_for(1s);
  CHECK(a.cluster.started.size() == 6);
}

TEST_CASE("with too many ends that are not written, nothing more is claimed or started") {
  for (const std::uint32_t prefetch : {0U, 2U}) {
    QueueOptions options = options_of("a");
    options.max_unacked = 2;
    options.prefetch = prefetch;
    Alone a{options};
    for (const char* id : {"1", "2", "3", "4", "5"}) a.cluster.put(id);
    a.cluster.run_for(100ms);
    for (const char* key : {"tasks/1", "tasks/2"}) {
      a.cluster.store.no_right.insert(key);
      a.end_and_run(key, 100ms);
    }
    CHECK(a.cluster.started == Keys{"tasks/1", "tasks/2"});
    // The task claimed ahead had room when it was claimed.
    CHECK(a.cluster.store.task("tasks/3")->stamp.taken == (prefetch != 0));
    CHECK_FALSE(a.cluster.store.task("tasks/5")->stamp.taken);
    CHECK(a.why("5").back().kind == Reason::Kind::kUnacked);
    a.cluster.store.no_right.clear();
    CHECK(a.cluster.run_until([&] { return a.cluster.started.size() == 3; }, 10s));
  }
}

TEST_CASE("without the right to write tasks, a claim is tried now and then") {
  Alone a;
  for (int i = 0; i < 500; ++i) a.cluster.store.no_right.insert("tasks/" + std::to_string(i));
  for (int i = 0; i < 500; ++i) a.cluster.put(std::to_string(i));
  a.cluster.run_for(1min);
  CHECK(all<Commit>(a.daemon).size() < 60);
  a.cluster.store.no_right.clear();
  CHECK(a.cluster.run_until([&] { return a.cluster.started.size() == 1; }, 15s));
}

TEST_CASE("a leader to which Consul refuses everything asks less than at rest") {
  for (const bool leads : {true, false}) {
    Cluster cluster;
    bool refuses = !leads;
    cluster.spoil({.refused = true}, [&](const Daemon&, const Effect&) { return refuses; });
    Daemon& a = cluster.add(options_of("a"));
    cluster.run_for(1s);
    refuses = true;
    cluster.run_for(1min);
    const std::size_t before = a.log.size();
    cluster.run_for(1min);
    CHECK(a.log.size() - before < 130);
  }
}

TEST_CASE("other tasks' refusals do not put off a refused finish") {
  Alone a{options_with([](QueueOptions& o) { o.concurrency = 3; })};
  a.cluster.put_and_run("3", 100ms);
  a.cluster.store.no_right = {"tasks/1", "tasks/2", "tasks/3"};
  a.cluster.put_and_run("1", 2500ms);
  a.cluster.put("2");
  a.end_and_run("tasks/3", 1s);
  a.cluster.store.no_right.erase("tasks/3");
  a.cluster.run_for(10s);
  CHECK_FALSE(a.cluster.store.has("tasks/3"));
}

TEST_CASE("a task that was begun in time does not expire while it is claimed ahead again") {
  Alone a{options_with([](QueueOptions& o) { o.prefetch = 1; })};
  a.cluster.put_and_run("1", 100ms, [&](Task& task) { task.expire_at = a.cluster.wall() + 5s; });
  a.cluster.end_job(a.daemon, "tasks/1", JobEnding::kRetry, "no luck");
  a.cluster.put_and_run("0", 4s);
  REQUIRE(a.cluster.started == Keys{"tasks/1", "tasks/0"});
  REQUIRE(a.cluster.store.task("tasks/1")->stamp.taken);
  a.cluster.run_for(5s);
  a.end_and_run("tasks/0", 1s);
  CHECK(a.cluster.started.back() == "tasks/1");
  CHECK(a.cluster.store.dead.empty());
}

TEST_CASE("a task that was begun in time and stopped by lictor does not expire") {
  Alone a{options_with([](QueueOptions& o) { o.drain_timeout = 100ms; })};
  a.cluster.put_and_run("1", 1s, [&](Task& task) { task.expire_at = a.cluster.wall() + 5s; });
  a.cluster.tell(a.daemon, StopRequested{});
  REQUIRE(a.cluster.run_until([&] { return a.daemon.stopped; }, 20s));
  CHECK(a.cluster.store.task("tasks/1")->stamp.attempt == 0);
  a.cluster.plan = [&, until = a.cluster.now + 30s](const Task&) {  // also if it cannot start now
    const bool starts = a.cluster.now >= until;
    return starts ? JobPlan{} : JobPlan{1ms, JobEnding::kNotStarted, "no process"};
  };
  a.cluster.restart_after(a.daemon, 1s);
  a.cluster.run_for(1min);
  CHECK(a.cluster.running() == 1);
  CHECK(a.cluster.store.dead.empty());

  Alone b;  // by the end of a term, which leaves its claim
  b.cluster.put_and_run("1", 1s, [&](Task& task) { task.expire_at = b.cluster.wall() + 5s; });
  b.cluster.kill_session();
  b.cluster.run_for(2min);
  CHECK(b.cluster.running() == 1);
}

TEST_CASE("a job that timed out has failed, also when the drain would have stopped it") {
  Alone a{options_with([](QueueOptions& o) { o.drain_timeout = 100ms; })};
  a.cluster.stopping = [](Duration grace) { return grace; };
  a.cluster.put_and_run("1", 1500ms, [&](Task& task) { task.timeout = 1s; });
  a.cluster.tell(a.daemon, StopRequested{});
  CHECK(a.cluster.run_until([&] { return a.daemon.stopped; }, 20s));
  const Stamp& stamp = a.cluster.store.task("tasks/1")->stamp;
  CHECK(stamp.attempt == 1);
  CHECK(stamp.error == "timed out after 1s; stopped");
}

TEST_CASE("a job that ends well although it was asked to stop has ended well") {
  Alone a;
  a.cluster.stopping = [](Duration grace) { return grace; };
  a.cluster.plan = [](const Task&) { return JobPlan{2s, JobEnding::kDone, {}}; };
  a.cluster.put_and_run("1", 5s, [&](Task& task) { task.timeout = 1s; });
  CHECK(a.idle());
  CHECK(a.cluster.store.dead.empty());
  CHECK(a.cluster.store.finished.size() == 1);
  CHECK(count(a.daemon, Fact::Kind::kDoneLate) == 1);
  a.cluster.put_and_run("2", 5s);
  CHECK(count(a.daemon, Fact::Kind::kDone) == 2);
  CHECK(count(a.daemon, Fact::Kind::kDoneLate) == 1);
}

TEST_CASE("a job that goes on after kill_grace is reported, once, and one that ends is not") {
  const QueueOptions options = options_of("a");
  Alone a{options};
  Duration takes = options.kill_grace;
  a.cluster.stopping = [&](Duration) { return takes; };
  const auto run = [&](const std::string& name) {
    a.cluster.put_and_run(name, 1s + options.kill_grace + 3s, [](Task& task) {
      task.timeout = 1s;
      task.max_attempts = 1;
    });
  };
  run("1");
  CHECK(count(a.daemon, Fact::Kind::kGoesOn) == 0);
  takes = 60s;
  run("2");
  REQUIRE(count(a.daemon, Fact::Kind::kGoesOn) == 1);
  CHECK(all<Fact>(a.daemon).back().text == "timed out");
  a.cluster.run_for(60s);
  CHECK(count(a.daemon, Fact::Kind::kGoesOn) == 1);
  a.cluster.put_and_run("3", 1s);
  a.cluster.remove_and_run("tasks/3", 10s);
  CHECK(count(a.daemon, Fact::Kind::kGoesOn) == 2);
}

TEST_CASE("a job whose warden died counts a lost owner, up to max_losses") {
  Alone a{options_with([](QueueOptions& o) { o.max_losses = 2; })};
  a.cluster.put_and_run("1", 100ms);
  exits(a, "tasks/1", {{}, JobEnding::kStopped, "its lease ran out", {}});
  REQUIRE(a.cluster.run_until([&] { return a.cluster.started.size() == 2; }, 1s));
  CHECK(a.cluster.store.task("tasks/1")->stamp.lost == 0);
  CHECK(a.cluster.store.task("tasks/1")->stamp.attempt == 1);
  exits(a, "tasks/1", {{}, JobEnding::kLost, "the warden died", {}});
  REQUIRE(a.cluster.run_until([&] { return a.cluster.started.size() == 3; }, 1s));
  CHECK(a.cluster.store.task("tasks/1")->stamp.lost == 1);
  CHECK(a.cluster.store.task("tasks/1")->stamp.attempt == 2);
  exits(a, "tasks/1", {{}, JobEnding::kLost, "the warden died", {}});
  a.cluster.run_for(1s);
  CHECK(a.cluster.started.size() == 3);
  CHECK(a.dead("dead/1").reason == "owner lost");
  CHECK(a.dead("dead/1").error == "the warden died while it was running");
  CHECK(a.dead("dead/1").stamp.lost == 2);

  Alone once{options_with([](QueueOptions& o) { o.any_type->delivery = Delivery::kAtMostOnce; })};
  once.cluster.put_and_run("1", 100ms);
  exits(once, "tasks/1", {{}, JobEnding::kLost, "the warden died", {}});
  once.cluster.run_for(1s);
  CHECK(once.dead("dead/1").stamp.lost == 1);
}

TEST_CASE("a dead letter holds the end of the output, unless a transaction could not hold both") {
  Alone a{options_with([](QueueOptions& o) { o.max_transaction_bytes = 18'000; })};
  for (const std::size_t bytes : {1'000U, 6'000U}) {
    const std::string id = std::to_string(bytes);
    a.cluster.put_and_run(id, 100ms, with_record(std::string(8'196, '.')));
    exits(a, "tasks/" + id, {{}, JobEnding::kPermanent, "no luck", std::string(bytes, 'x')});
    a.cluster.run_for(100ms);
  }
  CHECK(a.dead("dead/1000").output_tail.size() == 1'000);
  CHECK(a.dead("dead/6000").output_tail.empty());
}

// Consul before 1.14 takes 64 operations, which only a refusal shows.
TEST_CASE("a job's writes go without the history entry that leaves no room for them") {
  Alone a{options_with([](QueueOptions& o) { o.history = HistoryLimits{}; })};
  a.cluster.store.most_operations = 64;
  for (const std::size_t i : {1U, 2U}) {  // then it is known
    a.cluster.put_and_run("1", 100ms);
    JobExited exit;
    for (int j = 0; j < 61; ++j)
      exit.writes.push_back({"app/" + std::to_string(j), "x", false, {}});
    exits(a, "tasks/1", exit);
    a.cluster.run_for(1s);
    CHECK(a.idle());
    CHECK(a.cluster.started.size() == i);
    CHECK(a.cluster.store.keys("app/").size() == 61);
    CHECK(a.cluster.store.keys("done/").empty());
    CHECK(count(a.daemon, Fact::Kind::kResultLeftOut) == i);
  }
}

TEST_CASE("a task with a thousand dead letters costs a refusal each time") {
  Alone a;
  std::size_t refused = 0;
  a.cluster.on_served = [&](const Daemon&, const Effect&, const Event& reply) {
    const auto* committed = std::get_if<Committed>(&reply);
    if (committed != nullptr && committed->outcome == Outcome::kRejected) ++refused;
  };
  a.cluster.store.write("dead/1", "{}");
  for (int i = 2; i <= 1'000; ++i) a.cluster.store.write("dead/1~" + std::to_string(i), "{}");
  a.cluster.plan = [](const Task&) { return JobPlan{1ms, JobEnding::kPermanent, "no luck"}; };
  for (int i = 0; i < 5; ++i) {
    CAPTURE(i);
    a.cluster.put("1");
    REQUIRE(a.cluster.run_until([&] { return !a.cluster.store.has("tasks/1"); }, 5s));
  }
  CHECK(a.cluster.store.keys("dead/").size() == 1'005);
  CHECK(refused == 5);
}

}  // namespace
}  // namespace lictor::core::test
