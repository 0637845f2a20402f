// How leadership is given up: on request, and when the daemon stops.

#include <doctest/doctest.h>

#include "two.h"

using namespace lictor;
using namespace lictor::core;
using namespace lictor::core::test;

TEST_SUITE_BEGIN("core");

TEST_CASE("a requested step-down lets running jobs finish, and the other leads at once") {
  QueueOptions options = options_of("a");
  options.prefetch = 2;
  Two two{options};
  for (const char* id : {"1", "2", "3"}) two.cluster.put(id);
  two.cluster.run_for(1s);
  two.cluster.store.control(false, "please");
  two.cluster.run_for(5s);
  CHECK(two.cluster.running() == 1);
  CHECK(count(two.a, Fact::Kind::kSteppingDown) == 1);
  CHECK(count(two.a, Fact::Kind::kSteppedDown) == 0);
  CHECK_FALSE(two.cluster.store.task("tasks/2")->stamp.taken);  // given back
  CHECK(two.cluster.store.task("tasks/2")->stamp.attempt == 0);
  two.cluster.end_job(two.a, "tasks/1");
  CHECK(two.until_leader(*two.b) < 100ms);
  two.cluster.run_for(100ms);
  CHECK(two.cluster.started == Keys{"tasks/1", "tasks/2"});
  CHECK(count(two.a, Fact::Kind::kSteppedDown) == 1);

  // What was asked of the first leader was not asked of the second.
  two.cluster.run_for(1min);
  CHECK(two.cluster.leader() == two.b);
}

TEST_CASE("a step-down with nobody else there is made up after the standoff") {
  Cluster cluster;
  Daemon& a = cluster.add(options_of("a"));
  cluster.run_for(2s);
  cluster.store.control(false, "please");
  cluster.run_for(9s);
  CHECK(cluster.leader() == nullptr);
  cluster.run_for(2s);
  CHECK(cluster.leader() == &a);
}

TEST_CASE("a release that lands late does not free the lock that was acquired since") {
  Cluster cluster;
  int releases = 0;
  cluster.spoil({.out = 40s}, [&](const Daemon&, const Effect& e) {
    return std::holds_alternative<ReleaseLock>(e) && releases++ == 0;
  });
  Daemon& a = cluster.add(options_of("a"));
  cluster.run_for(2s);
  cluster.store.control(false, "please");
  cluster.run_for(30s);
  REQUIRE(cluster.leader() == &a);
  CHECK(releases == 2);
  cluster.run_for(30s);
  CHECK(cluster.store.leader_session() == "s1");
  CHECK(count(a, Fact::Kind::kLeaseLost) == 0);
}

TEST_CASE("an orderly stop gives back, finishes, releases, destroys, and the next leads at once") {
  QueueOptions options = options_of("a");
  options.prefetch = 1;
  Two two{options};
  two.cluster.put("1");
  two.cluster.put("2");
  two.cluster.run_for(1s);
  two.cluster.tell(two.a, StopRequested{});
  two.cluster.run_for(5s);
  CHECK(two.cluster.running() == 1);
  two.cluster.end_job(two.a, "tasks/1");
  CHECK(two.until_leader(*two.b) < 100ms);
  CHECK(two.a.stopped);
  CHECK_FALSE(two.a.remembered.has_value());
  CHECK_FALSE(two.cluster.store.session_lives("s1"));
  Keys order;
  for (const auto& [at, effect] : two.a.log) {
    if (std::holds_alternative<ReleaseLock>(effect)) order.emplace_back("release");
    if (std::holds_alternative<DestroySession>(effect)) order.emplace_back("destroy");
    if (std::holds_alternative<Stopped>(effect)) order.emplace_back("stopped");
  }
  CHECK(order == Keys{"release", "destroy", "stopped"});
  two.cluster.run_for(1s);
  CHECK(two.cluster.started == Keys{"tasks/1", "tasks/2"});
}

TEST_CASE("a job that outlasts the drain is stopped, and its task given back as if never begun") {
  Two two;
  two.cluster.put("1");
  two.cluster.run_for(1s);
  two.cluster.tell(two.a, StopRequested{});
  two.cluster.run_for(29s);
  CHECK(two.cluster.running() == 1);
  two.until_leader(*two.b);
  CHECK(two.a.stopped);
  two.cluster.run_for(1s);
  CHECK(two.cluster.store.task("tasks/1")->stamp.attempt == 1);
  CHECK(two.cluster.store.task("tasks/1")->stamp.lost == 0);
  CHECK(two.cluster.running() == 1);
}

TEST_CASE("a job that will not end: the lock is left to its TTL, and nothing is begun any more") {
  QueueOptions options = options_of("a");
  options.concurrency = 2;
  Two two{options};
  two.cluster.stopping = [](Duration) { return Duration{1h}; };
  two.cluster.put("1");
  two.cluster.run_for(1s);
  two.cluster.tell(two.a, StopRequested{});
  two.cluster.run_for(10s);
  two.cluster.put("2");
  CHECK(two.cluster.run_until([&] { return two.a.stopped; }, 60s));
  CHECK(all<ReleaseLock>(two.a).empty());
  CHECK(two.cluster.store.leader_session() == "s1");
  CHECK_FALSE(two.cluster.store.task("tasks/2")->stamp.taken);
}

TEST_CASE("a stop during an outage ends, and leaves the session to its TTL") {
  for (const bool leads : {true, false}) {
    Two two;
    Daemon& daemon = leads ? two.a : *two.b;
    two.cut_off = &daemon;
    two.cluster.tell(daemon, StopRequested{});
    CHECK(two.cluster.run_until([&] { return daemon.stopped; }, 10s));
  }
}

TEST_CASE("a stop before anything was reached ends") {
  for (const Duration after : {0ms, 1ms, 2ms, 3ms, 4ms, 5ms, 6ms, 7ms}) {
    Cluster cluster;
    Daemon& a = cluster.add(options_of("a"));
    cluster.run_for(after);
    cluster.tell(a, StopRequested{});
    CHECK(cluster.run_until([&] { return a.stopped; }, 10s));
    cluster.run_for(1min);
    CHECK(all<Stopped>(a).size() == 1);
    CHECK(cluster.store.leader_session().empty());
    CHECK(cluster.violations().empty());
  }
}

TEST_CASE("a stop while the lock was lost waits for the jobs") {
  Two two;
  two.cluster.stopping = [](Duration grace) { return grace; };
  two.cluster.put("1");
  two.cluster.run_for(1s);
  two.cluster.kill_session();
  two.cluster.run_for(100ms);
  two.cluster.tell(two.a, StopRequested{});
  two.cluster.run_for(3500ms);
  CHECK(two.cluster.running() == 1);
  CHECK_FALSE(two.a.stopped);
  two.cluster.run_for(5s);
  CHECK(two.a.stopped);
}

TEST_SUITE_END();
