// Leadership: who leads, how long it may be trusted, and how it is given up.

#include <doctest/doctest.h>

#include "alone.h"

namespace lictor::core::test {

TEST_CASE("one leads, the other waits without polling; both renew at the interval that is set") {
  Two two;
  const std::size_t before = two.b->log.size();
  two.cluster.run_for(10min);
  CHECK(two.cluster.leader() == &two.a);
  CHECK(all<AcquireLock>(*two.b).empty());
  CHECK(two.b->log.size() - before < 10 * 60 / 5 + 10 * 3);  // renewals, and a watch a minute
  for (const Daemon* daemon : {&two.a, two.b}) {
    CHECK(all<RenewSession>(*daemon).size() >= 110);
    CHECK(all<RenewSession>(*daemon).size() <= 130);
  }
}

TEST_CASE("a lease that is proved again goes on, and its stopped task is run again") {
  Two two;
  two.cluster.put_and_run("1", 1s);
  two.cluster.spoil({.lose_reply = true}, [&](const Daemon& daemon, const Effect& e) {
    return &daemon == &two.a && !std::holds_alternative<RenewSession>(e);
  });
  two.cluster.run_for(25s);
  CHECK(two.cluster.leader() == nullptr);
  two.cluster.heal();
  two.cluster.run_for(5s);
  CHECK(two.cluster.leader() == &two.a);
  CHECK(count(two.a, Fact::Kind::kLeaseRegained) == 1);
  CHECK(two.cluster.started == Keys{"tasks/1", "tasks/1"});
  CHECK(two.cluster.store.task("tasks/1")->stamp.lost == 0);
}

TEST_CASE("the lock is lost with its session, seen by the watch, and barred for the lock-delay") {
  Two two;
  two.cluster.put_and_run("1", 1s);
  const Instant killed = two.cluster.now;
  two.cluster.kill_session();
  two.cluster.run_for(100ms);
  CHECK(count(two.a, Fact::Kind::kLeaseLost) == 1);
  CHECK(count(two.a, Fact::Kind::kUnwritten) == 1);
  CHECK(two.cluster.running() == 0);
  CHECK(two.cluster.run_until([&] { return two.cluster.leader() != nullptr; }, 60s));
  CHECK(two.cluster.now - killed >= 30s);
  CHECK(two.cluster.now - killed < 30s + 200ms);  // polled, for nothing tells its end
  CHECK(count(*two.b, Fact::Kind::kLockDelay) == 1);
}

TEST_CASE("the lock is lost: a fenced write or a refused renewal shows it if the watch does not") {
  Two two;
  two.cluster.spoil({.lose_request = true}, [&](const Daemon& daemon, const Effect& effect) {
    return &daemon == &two.a && watches_leader(effect);
  });
  two.cluster.put("1");
  two.cluster.run_for(61s);  // the watch that was open has ended
  two.cluster.kill_session();
  two.cluster.run_for(5ms);
  CHECK(count(two.a, Fact::Kind::kLeaseLost) == 0);
  SUBCASE("a write") {
    two.cluster.end_job(two.a, "tasks/1");
    two.cluster.run_for(5ms);
    CHECK(count(two.a, Fact::Kind::kDone) == 0);
    CHECK(two.cluster.store.has("tasks/1"));
  }
  SUBCASE("a renewal") { two.cluster.run_for(5s + 100ms); }
  CHECK(count(two.a, Fact::Kind::kLeaseLost) == 1);
  CHECK(count(two.a, Fact::Kind::kUnwritten) == 1);
}

TEST_CASE("a renewal that is refused wrongly costs nothing") {
  Two two;
  two.cluster.put_and_run("1", 1s);
  // A server that lags behind refuses a session that lives.
  bool lie = true;
  two.cluster.on_effect = [&](const Daemon& daemon, const Effect& e) {
    const auto* renew = std::get_if<RenewSession>(&e);
    if (&daemon == &two.a && renew && std::exchange(lie, false)) {
      two.cluster.tell(two.a, SessionRenewed{renew->request, SessionRenewed::Answer::kGone, {}});
    }
  };
  two.cluster.run_for(60s);
  CHECK_FALSE(lie);
  CHECK(two.cluster.leader() == &two.a);
  CHECK(two.cluster.running() == 1);
}

TEST_CASE("the session is lost while waiting: a new one is made, and a late answer spares it") {
  Two two;
  // The refusal of b's renewal is on its way while b learns of it by the lock.
  two.cluster.spoil({.back = 2500ms}, [&](const Daemon& daemon, const Effect& e) {
    return &daemon == two.b && std::holds_alternative<RenewSession>(e);
  });
  two.cluster.run_for(4s);
  two.cluster.store.destroy(two.cluster.now, two.b->remembered.value());
  REQUIRE(two.cluster.run_until(
      [&] { return std::holds_alternative<RenewSession>(two.b->log.back().effect); }, 10s));
  two.cluster.run_for(100ms);
  two.cluster.tell(two.a, StopRequested{});
  two.cluster.run_for(20s);
  CHECK(two.cluster.leader() == two.b);
  CHECK(count(*two.b, Fact::Kind::kSessionLost) == 1);
  CHECK(count(*two.b, Fact::Kind::kSessionCreated) == 2);
}

TEST_CASE("a session that is gone while waiting is replaced by the next renewal") {
  Two two;
  two.cluster.store.destroy(two.cluster.now, two.b->remembered.value());
  const std::string lost = two.b->remembered.value();
  two.cluster.run_for(6s);
  CHECK(two.b->remembered.value_or(lost) != lost);
  two.cluster.tell(two.a, StopRequested{});
  CHECK(two.until_leader(*two.b) < 1s);
}

TEST_CASE("after a snapshot from before the leader's time a restarted daemon waits, too") {
  Two two;
  two.cluster.put_and_run("1", 1s);
  REQUIRE(two.cluster.running() == 1);
  two.cluster.crash(*two.b);
  dev::KvRecord released = *two.cluster.store.find("leader");
  released.session.clear();
  released.value.replace(released.value.find("since"), 5, "released");
  --released.modify_index;
  two.cluster.store.restore(released);
  two.cluster.restart_after(*two.b, 10ms);
  const Instant from = two.cluster.now;
  // The leader finds out by its next proof. Its job has kill_grace then.
  REQUIRE(two.cluster.run_until([&] { return two.cluster.leader() == nullptr; }, 10s));
  REQUIRE(two.cluster.run_until([&] { return two.cluster.leader() != nullptr; }, 2min));
  CHECK(two.cluster.now - from >= 29s);
  CHECK(two.cluster.running() <= 1);
  // Locks released from now on are free at once.
  two.cluster.run_for(1min);
  Daemon& leader = *two.cluster.leader();
  Daemon& other = &leader == &two.a ? *two.b : two.a;
  two.cluster.end_job(leader, "tasks/1");
  two.cluster.run_for(1s);
  two.cluster.tell(leader, StopRequested{});
  CHECK(two.until_leader(other) < 1s);
}

TEST_CASE("a member to which a snapshot gives the lock back waits for the jobs of a later leader") {
  for (const auto wait : {1s, 20s, 40s, 55s}) {  // the watch of `a` sees it at its next poll
    CAPTURE(wait.count());
    Two two;
    const dev::KvRecord held = *two.cluster.store.find("leader");
    two.cluster.store.control(false, "now");
    REQUIRE(two.cluster.run_until([&] { return two.cluster.leader() == two.b; }, 20s));
    two.cluster.put_and_run("1", wait);
    two.cluster.store.restore(held);
    const Instant from = two.cluster.now;
    REQUIRE(two.cluster.run_until([&] { return two.cluster.leader() != two.b; }, 10s));
    const auto waits = [&] { return count(two.a, Fact::Kind::kLockDelay) != 0; };
    REQUIRE(two.cluster.run_until(waits, 1min));
    two.cluster.store.overwrite_leader_key();  // its index is now above that of the later leader
    REQUIRE(two.cluster.run_until([&] { return two.cluster.leader() == &two.a; }, 2min));
    CHECK(two.cluster.now - from >= 29s);
    CHECK(two.cluster.running() <= 1);
  }
}

// Consul bars nothing here: each daemon that has seen a leader counts the lock-delay itself.
TEST_CASE("another client deletes the leader key: the leader notices, and one leads again") {
  Two two;
  two.cluster.run_for(1s);
  two.cluster.store.remove_leader_key();
  two.cluster.run_for(5ms);
  CHECK(count(two.a, Fact::Kind::kLeaseLost) == 1);
  two.cluster.run_for(two.a.options.lock_delay - 1s);
  CHECK(two.cluster.leader() == nullptr);
  two.cluster.run_for(2s);
  REQUIRE(two.cluster.leader() != nullptr);
  two.cluster.put_and_run("1", 1s);
  CHECK(two.cluster.running() == 1);
  const std::size_t before = two.a.log.size() + two.b->log.size();
  two.cluster.run_for(10s);
  CHECK(two.a.log.size() + two.b->log.size() - before < 40);
}

TEST_CASE("a client that writes to the leader key all the time is answered at a measured pace") {
  Two two;
  const std::size_t before = all<AcquireLock>(two.a).size();
  for (int i = 0; i < 1000; ++i) {
    two.cluster.store.overwrite_leader_key();
    two.cluster.run_for(10ms);
  }
  CHECK(all<AcquireLock>(two.a).size() - before > 15);
  CHECK(all<AcquireLock>(two.a).size() - before <= 21);
  CHECK(count(two.a, Fact::Kind::kLeaderRestored) == 1);  // the log is not to fill with it
  two.cluster.run_for(1s);
  CHECK(two.cluster.store.serve(two.cluster.now, ReadLeader{{}, true, 0}).holder == "a");
  CHECK(two.cluster.leader() == &two.a);
}

TEST_CASE("a leader key that a snapshot gives a stranger's value is restored") {
  Two two;
  dev::KvRecord held = *two.cluster.store.find("leader");
  two.cluster.store.overwrite_leader_key();
  two.cluster.run_for(5s);
  held.value = "nonsense";
  two.cluster.store.restore(held);
  two.cluster.run_for(15s);
  CHECK(two.cluster.store.serve(two.cluster.now, ReadLeader{{}, true, 0}).holder == "a");
}

TEST_CASE("a leader key that was freed and taken meanwhile is not restored") {
  Two two;
  two.cluster.run_for(1s);
  two.cluster.spoil({.out = 2s}, [&](const Daemon& daemon, const Effect& e) {
    const auto* lock = std::get_if<AcquireLock>(&e);
    return &daemon == &two.a && lock != nullptr && lock->held_at != 0;
  });
  two.cluster.store.overwrite_leader_key();
  two.cluster.run_for(1s);
  two.cluster.store.remove_leader_key();
  two.cluster.run_for(5s);
  CHECK(count(two.a, Fact::Kind::kLeaseLost) == 1);
  CHECK(count(two.a, Fact::Kind::kLeaderRestored) == 0);
}

TEST_CASE("a lock that may not be acquired is asked for now and then") {
  Cluster cluster;
  cluster.store.no_right.insert("leader");
  Daemon& a = cluster.add(options_of("a"));
  cluster.run_for(1min);
  CHECK(all<AcquireLock>(a).size() <= 13);
  CHECK(count(a, Fact::Kind::kDenied) >= 1);
  cluster.store.no_right.clear();
  cluster.run_for(6s);
  CHECK(cluster.leader() == &a);
}

TEST_CASE("a lock that may not be released is asked for now and then") {
  Two two;
  bool denied = true;
  const auto releases = [&](const Daemon& daemon, const Effect& e) {
    return denied && &daemon == &two.a && std::holds_alternative<ReleaseLock>(e);
  };
  two.cluster.spoil({.lose_request = true, .lose_reply = true}, releases);
  two.cluster.on_effect = [&](const Daemon& daemon, const Effect& e) {
    if (!releases(daemon, e)) return;
    two.cluster.tell(two.a, UnlockReplied{std::get<ReleaseLock>(e).request, Outcome::kRejected});
  };
  two.cluster.store.control(false, "now");
  two.cluster.run_for(10s);
  CHECK(all<ReleaseLock>(two.a).size() >= 5);
  CHECK(all<ReleaseLock>(two.a).size() <= 25);
  denied = false;
  CHECK(two.until_leader(*two.b) < 3s);
}

TEST_CASE("an acquisition that is over a limit, or whose reply was lost, is asked for again") {
  for (const Fault& fault : {Fault{.lose_reply = true}, Fault{.tampering = {Tamper::kTooMany}}}) {
    Cluster cluster;
    int lost = 0;
    cluster.spoil(fault, [&](const Daemon&, const Effect& e) {
      return std::holds_alternative<AcquireLock>(e) && lost++ == 0;
    });
    Daemon& a = cluster.add(options_of("a"));
    cluster.run_for(5s);
    CHECK(cluster.leader() == &a);
  }
}

TEST_CASE("no lock is asked for before the jobs of a lost one are over; no write outlives it") {
  Two two{options_with([](QueueOptions& o) { o.kill_grace = 20s; })};
  two.cluster.crash(*two.b);
  two.cluster.stopping = [](Duration grace) { return grace; };
  two.cluster.put_and_run("1", 1s);
  two.cluster.kill_session();
  two.cluster.run_for(12s);  // a renewal found that the session is gone
  CHECK(two.cluster.running() == 1);
  CHECK(count(two.a, Fact::Kind::kSessionCreated) == 1);
  two.until_leader(two.a);
  two.cluster.run_for(1s);
  // A finish waits for an answer of Consul when the lock is lost: the next term runs the task again.
  two.cluster.spoil<Commit>({.refused = true});
  two.cluster.end_job(two.a, "tasks/1");
  two.cluster.run_for(100ms);
  two.cluster.kill_session();
  two.cluster.run_for(1s);
  CHECK(two.a.queue->stats().writes == 0);
}

TEST_CASE("while the lease is in doubt nothing spins, whatever falls due") {
  Two two;
  two.cluster.put_and_run("1", 1s, [&](Task& task) {
    task.execute_at = two.cluster.wall() + 26s;
    task.expire_at = two.cluster.wall() + 27s;
  });
  two.cut_off = &two.a;
  two.cluster.run_for(30s);
  CHECK(two.cluster.started.empty());
}

}  // namespace lictor::core::test
