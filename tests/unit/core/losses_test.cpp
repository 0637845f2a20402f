// Lost owners, tasks kept apart because they may kill their host, and the place of tasks given
// back; lost requests, lost replies, rogue writers.

#include "alone.h"

namespace lictor::core::test {
namespace {

// Consul answers nobody for so long.
void outage(Cluster& cluster, Duration duration) {
  const auto before = cluster.fault;
  cluster.fault = [](const Daemon&, const Effect&) { return Fault{.no_leader = true}; };
  cluster.run_for(duration);
  cluster.fault = before;
}

// The lease is over long before the session is.
QueueOptions short_lease() {
  QueueOptions options = options_of("a");
  options.lock_delay = 15s;
  options.session_ttl = 60s;
  return options;
}

TEST_CASE("a leader that may not read the members counts every owner, and does not stand still") {
  Two two;
  two.cluster.put_and_run("1", 1s);
  two.cluster.given_up_refused = true;
  two.cluster.kill_session();
  two.cluster.run_for(5s);
  two.cut_off = &two.a;
  two.until_leader(*two.b);
  two.cluster.run_for(5s);
  CHECK(two.cluster.job("tasks/1") != nullptr);
  CHECK(two.cluster.store.task("tasks/1")->stamp.lost == 1);
}

TEST_CASE("a leader that may not read the members does not count itself when it leads again") {
  Cluster cluster;
  cluster.add(options_of("a"));
  cluster.put_and_run("1", 1s);
  cluster.given_up_refused = true;
  cluster.kill_session();
  CHECK(cluster.run_until([&] { return cluster.started.size() == 2; }, 2min));
  CHECK(cluster.store.task("tasks/1")->stamp.lost == 0);
}

TEST_CASE("without news of the members a leader claims nothing, says so, and asks again") {
  Cluster cluster;
  cluster.spoil<ReadOwners>({.lose_reply = true});
  Daemon& a = cluster.add(options_of("a"));
  cluster.put_and_run("1", 20s);
  CHECK(cluster.started.empty());
  CHECK(all<ReadOwners>(a).size() > 2);
  CHECK(all<ReadOwners>(a).size() < 10);
  CHECK(count(a, Fact::Kind::kStoreTrouble) == 1);
  CHECK(a.queue->why(cluster.now, "tasks/1").front().kind == Reason::Kind::kReading);
  cluster.heal();
  cluster.run_for(5s);
  CHECK(cluster.started == Keys{"tasks/1"});
}

TEST_CASE("a daemon that died is a lost owner, also if it comes back on its host") {
  Alone alone;
  alone.cluster.put_and_run("1", 1s);
  for (std::uint32_t i = 1; i <= 2; ++i) {
    alone.cluster.crash(alone.daemon);
    alone.cluster.restart_after(alone.daemon, 1s);
    REQUIRE(alone.cluster.run_until([&] { return alone.cluster.started.size() == i + 1; }, 2min));
    CHECK(alone.cluster.store.task("tasks/1")->stamp.lost == i);
  }
  alone.cluster.crash(alone.daemon);
  alone.cluster.restart_after(alone.daemon, 1s);
  REQUIRE(alone.cluster.run_until([&] { return alone.idle(); }, 2min));
  CHECK(alone.dead("dead/1").reason == "owner lost");
}

TEST_CASE("a claim of ours in a record that counts no attempt goes on as the first") {
  Alone alone;
  alone.cluster.pause_and_run(true, 1s);
  alone.cluster.put("1", [&](Task& task) {  // as a client may write it
    task.stamp.taken = true;
    task.stamp.claim = Claim{"a", "session", claim_nonce(alone.daemon.queue_identity(), 1), {}};
  });
  alone.cluster.pause_and_run(false, 1s);
  alone.end_and_run("tasks/1", 100ms, JobEnding::kNotStarted);
  CHECK(alone.cluster.store.task("tasks/1")->stamp.attempt == 0);
}

TEST_CASE("tasks that lost their owners too often end side by side, and use up no rate") {
  Alone alone{options_with([](QueueOptions& o) { o.rate_limit = Rate{1h, 1}; })};
  alone.cluster.pause_and_run(true, 1s);
  for (const char* id : {"1", "2", "3"}) put_lost(alone.cluster, id, 2);
  alone.cluster.store.control(false, {});
  REQUIRE(alone.cluster.run_until([&] { return alone.idle(); }, 2min));
  for (const char* id : {"1", "2", "3"}) {
    CHECK(alone.dead(std::string{"dead/"} + id).reason == "owner lost");
    CHECK(alone.dead(std::string{"dead/"} + id).stamp.lost == 3);
  }
  CHECK(count(alone.daemon, Fact::Kind::kLost) == 3);
}

TEST_CASE("a task that may run at most once ends with the lease") {
  Alone alone{options_with([](QueueOptions& o) { o.any_type->delivery = Delivery::kAtMostOnce; },
                           short_lease())};
  alone.cluster.put_and_run("1", 1s);
  outage(alone.cluster, 12s);
  alone.cluster.run_for(10s);
  CHECK(alone.idle());
  CHECK(alone.dead("dead/1").reason == "owner lost");
}

TEST_CASE("a task on its last chance starts alone, and others follow when it has run for a while") {
  Alone alone{options_with([](QueueOptions& o) { o.concurrency = 4; })};
  alone.cluster.exclusive = false;
  alone.cluster.pause_and_run(true, 1s);
  put_lost(alone.cluster, "1", 1);
  put_lost(alone.cluster, "2", 1);
  alone.cluster.put("3");
  alone.cluster.pause_and_run(false, 9s);
  CHECK(alone.cluster.started == Keys{"tasks/1"});
  alone.cluster.run_for(2s);
  CHECK(alone.cluster.started == Keys{"tasks/1", "tasks/2"});
  alone.cluster.run_for(10s);
  CHECK(alone.cluster.started == Keys{"tasks/1", "tasks/2", "tasks/3"});
  CHECK(alone.cluster.running() == 3);
}

TEST_CASE("a task on its last chance waits for jobs that have just begun, not for long ones") {
  Alone alone{options_with([](QueueOptions& o) { o.concurrency = 4; })};
  alone.cluster.exclusive = false;
  alone.cluster.put_and_run("1", 5s);
  put_lost(alone.cluster, "2", 1);
  alone.cluster.run_for(4s);
  CHECK(alone.cluster.started == Keys{"tasks/1"});
  CHECK(alone.why("2").front().kind == Reason::Kind::kLastChance);
  alone.cluster.run_for(2s);
  CHECK(alone.cluster.started == Keys{"tasks/1", "tasks/2"});
  alone.cluster.end_job(alone.daemon, "tasks/2");
  alone.cluster.put_and_run("3", 1s);
  put_lost(alone.cluster, "4", 0);  // not its last chance
  alone.cluster.run_for(1s);
  CHECK(alone.cluster.started.size() == 4);
}

TEST_CASE("a claim whose answer comes after the job before it was given back is given back, too") {
  Alone alone{options_with([](QueueOptions& o) { o.prefetch = 1; }, short_lease())};
  alone.cluster.put_and_run("1", 1s);
  // The claim of "2" lands, and nobody hears of it before the outage is over.
  alone.cluster.spoil({.lose_reply = true}, [](const Daemon&, const Effect& effect) {
    return claims(effect, "tasks/2");
  });
  alone.cluster.put_and_run("2", 100ms);
  alone.cluster.heal();
  outage(alone.cluster, 12s);
  alone.all_end_after(1s);
  REQUIRE(alone.cluster.run_until([&] { return alone.idle(); }, 1min));
  CHECK(alone.cluster.started == Keys{"tasks/1", "tasks/1", "tasks/2"});
}

TEST_CASE("a task written again while its unreadable forerunner is being buried runs") {
  Alone a;
  a.cluster.fault = [](const Daemon&, const Effect& e) {
    Fault f;
    if (std::holds_alternative<Commit>(e)) f.out = 200ms;
    if (std::holds_alternative<FetchTasks>(e)) f.back = 300ms;
    return f;
  };
  a.cluster.store.write("tasks/1", "{");
  a.cluster.run_for(50ms);
  a.cluster.remove_and_run("tasks/1", 200ms);  // refused; the reading that shows why is on its way
  a.cluster.put_and_run("1", 2s);
  CHECK(a.cluster.started == Keys{"tasks/1"});
  CHECK(a.cluster.store.dead.empty());
}

TEST_CASE("a task that took the name of an unreadable one waits for those listed with it") {
  Alone a;
  a.once(Fault{.lose_request = true},
         [](const Effect& e) { return std::holds_alternative<Commit>(e); });
  a.cluster.store.write("tasks/2", "{");
  a.cluster.run_for(a.daemon.options.request_timeout - 200ms);
  a.cluster.store.remove("tasks/2");
  a.once(Fault{.back = 1500ms},
         [](const Effect& e) { return std::holds_alternative<FetchTasks>(e); });
  a.cluster.put("1");
  a.cluster.put("2");
  // The look at the burial's outcome finds it; the one before it is read slowly.
  a.cluster.run_for(2s);
  CHECK(a.cluster.started == Keys{"tasks/1"});
  a.end_and_run("tasks/1", 1s);
  CHECK(a.cluster.started == Keys{"tasks/1", "tasks/2"});
  CHECK(a.cluster.store.dead.empty());
}

TEST_CASE("a claim refused after one of the same bytes was sent, and lands, costs no owner") {
  Alone a;
  a.once(Fault{.out = 4500ms}, [](const Effect& e) { return claims(e, "tasks/1"); });
  a.cluster.put_and_run("1", 1s);
  a.cluster.store.no_right.insert("tasks/1");
  a.cluster.run_for(3200ms);
  CHECK(a.daemon.queue->stats().refused == 1);
  a.cluster.store.no_right.clear();
  a.cluster.run_for(10s);
  CHECK(a.cluster.started == Keys{"tasks/1"});
  CHECK(a.cluster.store.task("tasks/1")->stamp.attempt == 1);
  CHECK(a.cluster.store.task("tasks/1")->stamp.lost == 0);
}

TEST_CASE("during an outage the queue tries now and then, and catches up afterwards") {
  Alone a;
  a.cluster.plan = [](const Task&) { return JobPlan{1ms, JobEnding::kDone, {}}; };
  a.cluster.spoil({.refused = true}, [](const Daemon&, const Effect&) { return true; });
  a.cluster.put("1");
  const std::size_t before = a.daemon.log.size();
  a.cluster.run_for(60s);
  CHECK(a.daemon.log.size() - before < 600);
  CHECK(count(a.daemon, Fact::Kind::kStoreTrouble) < 8);
  a.cluster.heal();
  a.cluster.run_for(60s);
  CHECK(a.cluster.started == Keys{"tasks/1"});
}

TEST_CASE("writes that fail while reads succeed are not tried in a tight loop") {
  Alone a;
  a.cluster.spoil<Commit>({.refused = true});
  a.cluster.put_and_run("1", 10s);
  CHECK(all<Commit>(a.daemon).size() < 40);
}

TEST_CASE("replies that nobody waits for change nothing") {
  Alone a;
  a.cluster.put_and_run("1", 100ms);
  const std::size_t before = a.daemon.log.size();
  const RequestId none{1'000'000};
  a.cluster.tell(a.daemon, Committed{none, Outcome::kRejected, 0, {}, {}});
  a.cluster.tell(a.daemon, LeaderRead{none, true, true, "another", "b", false, {}, 99, 99, {}});
  a.cluster.tell(a.daemon, SessionRenewed{none, SessionRenewed::Answer::kGone, {}});
  a.cluster.tell(a.daemon, TasksListed{none, true, false, true, {}, {}, 999, {}});
  a.cluster.tell(a.daemon, TasksFetched{none, true, {}, {"tasks/1"}, {}, {}, 0});
  a.cluster.tell(a.daemon, JobExited{AttemptId{77}, JobEnding::kDone, {}, {}});
  a.cluster.tell(a.daemon, UnlockReplied{none, Outcome::kApplied});
  a.cluster.tell(a.daemon, TasksChecked{.request = none, .ok = true, .changed = {"tasks/1"}});
  a.cluster.tell(a.daemon, OwnersRead{.request = none, .error = "late"});
  a.cluster.tell(a.daemon, RateRead{.request = none, .error = "late"});
  a.cluster.run_for(1ms);
  CHECK(a.daemon.log.size() == before);
  CHECK(a.cluster.running() == 1);
}

TEST_CASE("the same seed and the same events give the same effects") {
  const auto run = [] {
    std::string text;
    Cluster cluster{7};
    cluster.on_effect = [&](const Daemon& daemon, const Effect& effect) {
      text += daemon.name + ' ' + effect_text(effect) + '\n';
    };
    Random random{9};
    cluster.fault = [&](const Daemon&, const Effect&) {
      return Fault{.lose_reply = random.fraction() < 0.1,
                   .out = Duration{static_cast<Duration::rep>(1e7 * random.fraction())}};
    };
    cluster.plan = [](const Task&) { return JobPlan{5ms, JobEnding::kRetry, "no luck"}; };
    QueueOptions options = options_of("a");
    options.any_type->backoff.jitter = 0.5;
    cluster.add(options);
    options.node = "b";
    cluster.add(options);
    for (int i = 0; i < 20; ++i) cluster.put(std::to_string(i));
    cluster.run_for(60s);
    return text;
  };
  const std::string once = run();
  CHECK(once.size() > 10'000);
  CHECK(once == run());
}

TEST_CASE("what only a wrong clock made due waits again once the clock is set right") {
  for (const std::uint32_t prefetch : {0U, 2U}) {
    Alone a{options_with([&](QueueOptions& o) { o.prefetch = prefetch; })};
    a.all_end_after(10s);
    const WallTime at = a.cluster.wall() + 2h;
    for (int i = 0; i < 5; ++i) {
      a.cluster.put(std::to_string(i), [&](Task& task) { task.execute_at = at; });
    }
    a.cluster.step_clock(a.daemon, 3h);
    a.cluster.run_for(5s);
    a.cluster.step_clock(a.daemon, -3h);
    a.cluster.run_for(5min);
    CHECK(a.cluster.started.size() == 1);
    a.cluster.run_for(2h);
    CHECK(a.cluster.started.size() == 5);
  }
}

TEST_CASE("an owner counts as lost once, however often the next claim is refused") {
  Alone a;
  a.cluster.put_and_run("1", 1s);
  a.cluster.crash(a.daemon);
  a.cluster.store.no_right.insert("tasks/1");
  a.cluster.restart_after(a.daemon, 10ms);
  a.cluster.run_for(1min);
  a.cluster.store.no_right.clear();
  a.cluster.run_for(10s);
  CHECK(a.cluster.running() == 1);
  CHECK(count(a.daemon, Fact::Kind::kLost) == 1);
}

TEST_CASE("a retry stamped by a clock days ahead is due when the clock is set right") {
  constexpr auto kAhead = std::chrono::hours{72};
  Alone a;
  a.all_end_after(10ms, JobEnding::kRetry);
  a.cluster.step_clock(a.daemon, kAhead);
  a.cluster.put_and_run("1", 500ms);
  REQUIRE(a.cluster.started.size() == 1);
  REQUIRE(*a.cluster.store.task("tasks/1")->stamp.retry_at > a.cluster.wall() + kAhead);

  SUBCASE("under the same leader") { a.cluster.step_clock(a.daemon, -kAhead); }
  SUBCASE("under the next") {
    a.cluster.crash(a.daemon);
    a.cluster.step_clock(a.daemon, -kAhead);
    a.cluster.restart_after(a.daemon, 10ms);
  }
  CHECK(a.cluster.run_until([&] { return a.cluster.started.size() > 1; }, 2min));
}

TEST_CASE("a record changed beside a claim does not come back with an old listing") {
  Alone a;
  a.cluster.put_and_run("1", 100ms);
  REQUIRE(a.cluster.job("tasks/1") != nullptr);
  a.cluster.spoil<ListTasks>({.back = 3s});
  a.cluster.store.touch("tasks/1", "record 1+1");  // wakes the listing; the next one is slow
  a.cluster.run_for(500ms);
  a.cluster.store.touch("tasks/1", "record 1+2");
  a.cluster.run_for(500ms);
  a.end_and_run("tasks/1", 10s);
  CHECK(a.idle());
  CHECK(count(a.daemon, Fact::Kind::kDone) == 1);
  CHECK(count(a.daemon, Fact::Kind::kLost) == 0);
  CHECK(a.cluster.started.size() == 1);
}

TEST_CASE("after two failed watches, names are read by a quorum: Consul may answer from long ago") {
  Alone a;
  int left = 2;
  a.cluster.spoil({.refused = true}, [&](const Daemon&, const Effect& effect) {
    return std::holds_alternative<ListTasks>(effect) && left-- > 0;
  });
  a.all_end_after(1ms);
  a.cluster.put_and_run("1", 100ms);
  const std::size_t before = all<ListTasks>(a.daemon).size();
  a.cluster.put("2");
  CHECK(a.cluster.run_until([&] { return a.idle(); }, 5s));
  a.cluster.put("3");
  CHECK(a.cluster.run_until([&] { return a.idle(); }, 5s));
  auto lists = all<ListTasks>(a.daemon);
  lists.erase(lists.begin(), lists.begin() + static_cast<std::ptrdiff_t>(before));
  REQUIRE(lists.size() >= 3);
  CHECK(lists[0].index != 0);  // once more
  CHECK(lists[1].index == 0);
  CHECK(lists.back().index != 0);
}

TEST_CASE("an outage of Consul that outlives the lease is no lost owner, however often it comes") {
  Alone alone{short_lease()};
  alone.cluster.put_and_run("1", 1s);
  for (int i = 0; i < 5; ++i) {
    outage(alone.cluster, 12s);
    alone.cluster.run_for(20s);
    REQUIRE(alone.cluster.job("tasks/1") != nullptr);
  }
  CHECK(count(alone.daemon, Fact::Kind::kLeaseExpired) == 5);
  CHECK(alone.cluster.started.size() == 6);
  const Stamp& stamp = alone.cluster.store.task("tasks/1")->stamp;
  CHECK(stamp.lost == 0);
  CHECK(stamp.attempt == 1);
}

TEST_CASE("tasks given back in an outage come before those behind them, also if rewritten") {
  struct Row {
    std::uint32_t concurrency, prefetch;
    const char* serial_key;
    bool rewritten;
  };
  for (const Row& row : {Row{1, 0, "s", false},
                         {1, 0, "s", true},
                         {4, 0, "s", false},
                         {4, 0, "s", true},
                         {1, 0, "", false},
                         {1, 3, "", false}}) {
    QueueOptions options = short_lease();
    options.concurrency = row.concurrency;
    options.prefetch = row.prefetch;
    Alone alone{options};
    for (const char* id : {"1", "2", "3", "4"}) {
      alone.put(id, "Any", row.serial_key);
      alone.cluster.run_for(10ms);
    }
    alone.cluster.run_for(1s);
    REQUIRE(alone.cluster.started == Keys{"tasks/1"});
    if (row.rewritten) alone.cluster.store.touch("tasks/1", "a record with a remark");
    outage(alone.cluster, 12s);
    alone.all_end_after(1s);
    REQUIRE(alone.cluster.run_until([&] { return alone.idle(); }, 1min));
    CHECK(alone.cluster.started == Keys{"tasks/1", "tasks/1", "tasks/2", "tasks/3", "tasks/4"});
    CHECK(alone.cluster.store.finished.front() ==
          (row.rewritten ? "a record with a remark" : "record 1"));
  }
}

}  // namespace
}  // namespace lictor::core::test
