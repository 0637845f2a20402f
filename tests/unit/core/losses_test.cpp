// What counts as a lost owner, how a task that may kill its host is kept apart, and that what is
// given back keeps its place.

#include <doctest/doctest.h>

#include "alone.h"
#include "two.h"

using namespace lictor;
using namespace lictor::core;
using namespace lictor::core::test;

namespace {

// Consul answers nobody for so long.
void outage(Cluster& cluster, Duration duration) {
  const auto before = cluster.fault;
  cluster.fault = [](const Daemon&, const Effect&) {
    Fault fault;
    fault.no_leader = true;
    return fault;
  };
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

// A task whose owners were lost so often already, as they left it.
void put_lost(Cluster& cluster, const std::string& id, std::uint32_t lost) {
  Task& task = cluster.make(id);
  task.stamp.taken = true;
  task.stamp.attempt = lost + 1;
  task.stamp.lost = lost;
  cluster.store.put(task);
}

}  // namespace

TEST_SUITE_BEGIN("core");

TEST_CASE("an outage of Consul that outlives the lease is no lost owner, however often it comes") {
  Alone alone{short_lease()};
  alone.cluster.put("1");
  alone.cluster.run_for(1s);
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

TEST_CASE("what a daemon stopped itself and takes up in its next term counts no lost owner") {
  Alone alone;
  alone.cluster.put("1");
  alone.cluster.run_for(1s);
  for (int i = 0; i < 4; ++i) {
    alone.cluster.kill_session();
    alone.cluster.run_for(1min);
    REQUIRE(alone.cluster.job("tasks/1") != nullptr);
  }
  CHECK(count(alone.daemon, Fact::Kind::kLeaseLost) == 4);
  CHECK(count(alone.daemon, Fact::Kind::kLost) == 0);
  CHECK(alone.cluster.store.task("tasks/1")->stamp.lost == 0);
  CHECK(alone.cluster.store.task("tasks/1")->stamp.attempt == 1);
}

TEST_CASE("a daemon that lives and has given up its claims is no lost owner for another leader") {
  Two two;
  two.cluster.put("1");
  two.cluster.run_for(1s);
  for (int i = 0; i < 2; ++i) {
    Daemon& leader = i == 0 ? two.a : *two.b;
    Daemon& other = i == 0 ? *two.b : two.a;
    two.cluster.kill_session();
    two.cluster.run_for(5s);  // its entry says so
    two.cut_off = &leader;
    two.until_leader(other);
    two.cut_off = nullptr;
    two.cluster.run_for(5s);
    REQUIRE(two.cluster.job("tasks/1") != nullptr);
    CHECK(count(other, Fact::Kind::kLost) == 0);
    CHECK(two.cluster.store.task("tasks/1")->stamp.lost == 0);
    CHECK(two.cluster.store.task("tasks/1")->stamp.attempt == 1);
  }
}

TEST_CASE("a claim that was made after those that its daemon has given up counts a lost owner") {
  Two two;
  two.cluster.kill_session();
  two.cluster.run_for(5s);
  REQUIRE(two.cluster.run_until([&] { return two.cluster.leader() != nullptr; }, 5min));
  two.cluster.put("1");
  two.cluster.run_for(1s);
  Daemon& leader = *two.cluster.leader();
  Daemon& other = &leader == &two.a ? *two.b : two.a;
  two.cut_off = &leader;
  two.until_leader(other);
  two.cluster.run_for(5s);
  CHECK(two.cluster.store.task("tasks/1")->stamp.lost == 1);
}

TEST_CASE("a leader that may not read the members counts every owner, and does not stand still") {
  Two two;
  two.cluster.put("1");
  two.cluster.run_for(1s);
  two.cluster.given_up_refused = true;
  two.cluster.kill_session();
  two.cluster.run_for(5s);
  two.cut_off = &two.a;
  two.until_leader(*two.b);
  two.cluster.run_for(5s);
  CHECK(two.cluster.job("tasks/1") != nullptr);
  CHECK(two.cluster.store.task("tasks/1")->stamp.lost == 1);
}

TEST_CASE(
    "a leader that gets no answer about the members claims nothing, says so, and asks again") {
  Cluster cluster;
  Fault silent;
  silent.lose_reply = true;
  cluster.spoil<ReadOwners>(silent);
  Daemon& a = cluster.add(options_of("a"));
  cluster.put("1");
  cluster.run_for(20s);
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
  alone.cluster.put("1");
  alone.cluster.run_for(1s);
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

TEST_CASE("tasks that lost their owners too often end side by side") {
  Alone alone;
  alone.cluster.store.control(true, {});
  alone.cluster.run_for(1s);
  for (const char* id : {"1", "2", "3"}) put_lost(alone.cluster, id, 2);
  alone.cluster.store.control(false, {});
  REQUIRE(alone.cluster.run_until([&] { return alone.idle(); }, 2min));
  for (const char* id : {"1", "2", "3"}) {
    CHECK(alone.dead(std::string{"dead/"} + id).reason == "owner lost");
  }
}

TEST_CASE("a task that may run at most once ends with the lease") {
  QueueOptions options = short_lease();
  options.any_type->delivery = Delivery::kAtMostOnce;
  Alone alone{options};
  alone.cluster.put("1");
  alone.cluster.run_for(1s);
  outage(alone.cluster, 12s);
  alone.cluster.run_for(10s);
  CHECK(alone.idle());
  CHECK(alone.dead("dead/1").reason == "owner lost");
}

TEST_CASE("a task on its last chance starts alone, and others follow when it has run for a while") {
  QueueOptions options = options_of("a");
  options.concurrency = 4;
  Alone alone{options};
  alone.cluster.exclusive = false;
  alone.cluster.store.control(true, {});
  alone.cluster.run_for(1s);
  put_lost(alone.cluster, "1", 1);
  put_lost(alone.cluster, "2", 1);
  alone.cluster.put("3");
  alone.cluster.store.control(false, {});
  alone.cluster.run_for(9s);
  CHECK(alone.cluster.started == Keys{"tasks/1"});
  alone.cluster.run_for(2s);
  CHECK(alone.cluster.started == Keys{"tasks/1", "tasks/2"});
  alone.cluster.run_for(10s);
  CHECK(alone.cluster.started == Keys{"tasks/1", "tasks/2", "tasks/3"});
  CHECK(alone.cluster.running() == 3);
}

TEST_CASE("a task on its last chance waits for what has just begun, and not for long jobs") {
  QueueOptions options = options_of("a");
  options.concurrency = 4;
  Alone alone{options};
  alone.cluster.exclusive = false;
  alone.cluster.put("1");
  alone.cluster.run_for(5s);
  put_lost(alone.cluster, "2", 1);
  alone.cluster.run_for(4s);
  CHECK(alone.cluster.started == Keys{"tasks/1"});
  alone.cluster.run_for(2s);
  CHECK(alone.cluster.started == Keys{"tasks/1", "tasks/2"});
  alone.cluster.end_job(alone.daemon, "tasks/2");
  alone.cluster.put("3");
  alone.cluster.run_for(1s);
  CHECK(alone.cluster.started.size() == 3);
}

TEST_CASE("with concurrency 1 what an outage gave back comes before what waits behind it") {
  for (const std::uint32_t prefetch : {0U, 3U}) {
    QueueOptions options = short_lease();
    options.prefetch = prefetch;
    Alone alone{options};
    for (const char* id : {"1", "2", "3", "4"}) {
      alone.cluster.put(id);
      alone.cluster.run_for(10ms);
    }
    alone.cluster.run_for(1s);
    REQUIRE(alone.cluster.started == Keys{"tasks/1"});
    outage(alone.cluster, 12s);
    alone.all_end_after(1s);
    REQUIRE(alone.cluster.run_until([&] { return alone.idle(); }, 1min));
    CHECK(alone.cluster.started == Keys{"tasks/1", "tasks/1", "tasks/2", "tasks/3", "tasks/4"});
  }
}

TEST_CASE("what an outage gave back comes before what waits behind it, also if it was rewritten") {
  for (const std::uint32_t concurrency : {1U, 4U}) {
    for (const bool rewritten : {false, true}) {
      QueueOptions options = short_lease();
      options.concurrency = concurrency;
      Alone alone{options};
      for (const char* id : {"1", "2", "3"}) {
        alone.cluster.put(id, [](Task& task) { task.serial_key = "s"; });
        alone.cluster.run_for(10ms);
      }
      alone.cluster.run_for(1s);
      REQUIRE(alone.cluster.started == Keys{"tasks/1"});
      if (rewritten) alone.cluster.store.touch("tasks/1", "a record with a remark");
      outage(alone.cluster, 12s);
      alone.all_end_after(1s);
      REQUIRE(alone.cluster.run_until([&] { return alone.idle(); }, 1min));
      CHECK(alone.cluster.started == Keys{"tasks/1", "tasks/1", "tasks/2", "tasks/3"});
      CHECK(alone.cluster.store.finished.front() ==
            (rewritten ? "a record with a remark" : "record 1"));
    }
  }
}

TEST_CASE("a claim whose answer comes after the job before it was given back is given back, too") {
  QueueOptions options = short_lease();
  options.prefetch = 1;
  Alone alone{options};
  alone.cluster.put("1");
  alone.cluster.run_for(1s);
  // The claim of "2" lands, and nobody hears of it before the outage is over.
  alone.cluster.spoil({.lose_reply = true}, [](const Daemon&, const Effect& effect) {
    return claims(effect, "tasks/2");
  });
  alone.cluster.put("2");
  alone.cluster.run_for(100ms);
  alone.cluster.heal();
  outage(alone.cluster, 12s);
  alone.all_end_after(1s);
  REQUIRE(alone.cluster.run_until([&] { return alone.idle(); }, 1min));
  CHECK(alone.cluster.started == Keys{"tasks/1", "tasks/1", "tasks/2"});
}

TEST_SUITE_END();
