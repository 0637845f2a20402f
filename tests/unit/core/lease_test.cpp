// Locks that were freed out of order, clocks that stood still, standing back after a step-down.

#include "alone.h"
#include "core/leadership/trust.h"

namespace lictor::core::test {
namespace {

bool proves(const Effect& effect) {
  const auto* read = std::get_if<ReadLeader>(&effect);
  return read != nullptr && read->consistent;
}

// `daemon` is cut off until its session has ended, and Consul forgets its lock-delay.
void lose_lock(Two& two, Daemon& daemon) {
  two.cut_off = &daemon;
  REQUIRE(two.cluster.run_until([&] { return two.cluster.store.leader_session().empty(); }, 1min));
  two.cluster.store.forget_lock_delay();
}

TEST_CASE("the lock_delay that counts is the holder's, and 60 s if it asked for more") {
  for (const auto& [asked, waited] : {std::pair{20s, 20s}, std::pair{120s, 60s}}) {
    Two two{options_with([&](QueueOptions& o) { o.lock_delay = asked; })};
    QueueOptions others = options_of("c");
    others.lock_delay = 45s;
    Daemon& c = two.cluster.add(others);
    two.cluster.crash(*two.b);
    two.cluster.run_for(1s);
    lose_lock(two, two.a);
    const Duration gap = two.until_leader(c);
    CHECK(gap >= waited);
    CHECK(gap < waited + 100ms);
  }
}

// It has seen another holder, whose lock-delay is shorter.
TEST_CASE("a candidate that is ready before Consul's lock-delay is over asks until then") {
  Two two{options_with([](QueueOptions& o) { o.lock_delay = 45s; })};
  Daemon& c = two.cluster.add(options_of("c"));
  two.cluster.crash(*two.b);
  two.cluster.run_for(1s);
  two.cluster.kill_session();
  two.cluster.store.remove_leader_key();
  two.cut_off = &two.a;
  const Duration gap = two.until_leader(c);
  CHECK(gap >= 45s);
  CHECK(gap < 45s + 200ms);
}

TEST_CASE("a candidate that comes when the lock is free counts from then") {
  Two two;
  two.cluster.crash(*two.b);
  lose_lock(two, two.a);
  two.cluster.run_for(25s);
  Daemon& c = two.cluster.add(options_of("c"));
  CHECK(two.until_leader(c) >= 30s);
}

TEST_CASE("a write to a freed leader key begins the wait again: another may have held the lock") {
  Two two;
  lose_lock(two, two.a);
  two.cluster.run_for(20s);
  two.cluster.store.overwrite_leader_key();
  const Duration gap = two.until_leader(*two.b);
  CHECK(gap >= 30s);
  CHECK(gap < 31s);
}

TEST_CASE("a lock that was seen with the next holder needs no wait when that one releases it") {
  Two two;
  Daemon& c = two.cluster.add(options_of("c"));
  two.cluster.run_for(1s);
  lose_lock(two, two.a);
  REQUIRE(two.cluster.run_until(
      [&] { return two.cluster.leader() == two.b || two.cluster.leader() == &c; }, 1min));
  Daemon& second = *two.cluster.leader();
  Daemon& third = &second == &c ? *two.b : c;
  two.cluster.run_for(1s);
  two.cluster.tell(second, StopRequested{});
  CHECK(two.until_leader(third) < 100ms);
}

TEST_CASE("a release that is older than the holder who was seen is not the release of that one") {
  Two two;
  two.cluster.store.control(false, "please");
  REQUIRE(two.until_leader(*two.b) < 1s);
  two.cluster.run_for(1s);
  // A server that lags shows the waiting daemon a the release by a itself.
  LeaderRead old = two.cluster.store.serve(two.cluster.now, ReadLeader{{}, true, 0});
  const auto show = [&](std::uint64_t ago) {
    old.modify_index -= ago;
    old.request = all<ReadLeader>(two.a).back().request;
    two.a.waiting.erase(old.request);
    two.cluster.tell(two.a, old);
    two.cluster.run_for(1s);
    old.modify_index += ago;
  };
  const std::size_t before = all<AcquireLock>(two.a).size();
  old.session = "that of a holder before that one";
  show(2);
  old.session.clear();
  old.released = true;
  show(1);
  two.cluster.run_for(28s);
  CHECK(all<AcquireLock>(two.a).size() == before);
  two.cluster.run_for(1min);  // at an index that is not the key's any more
  CHECK(two.cluster.leader() == two.b);
}

TEST_CASE("the lock is acquired only as it was seen; after another write it is read again") {
  Two two;
  two.cluster.spoil({.out = 500ms}, [&](const Daemon& daemon, const Effect& e) {
    return &daemon == two.b && std::holds_alternative<AcquireLock>(e);
  });
  two.cluster.tell(two.a, StopRequested{});
  two.cluster.run_for(100ms);
  REQUIRE(two.cluster.store.leader_session().empty());
  two.cluster.store.overwrite_leader_key();
  two.cluster.run_for(20s);
  CHECK(two.cluster.leader() == nullptr);  // nobody knows who wrote that
  CHECK(two.until_leader(*two.b) < 12s);
}

TEST_CASE("a step of the clock costs one consistent read, and no job that runs") {
  for (const auto step : {5s, -5s, 100'000s}) {
    Alone alone{options_with([](QueueOptions& o) { o.concurrency = 2; })};
    alone.cluster.exclusive = false;
    alone.cluster.put_and_run("1", 1s);
    REQUIRE(alone.cluster.running() == 1);
    const std::size_t before = alone.daemon.log.size();
    alone.cluster.step_clock(alone.daemon, step);
    alone.cluster.put_and_run("2", 10ms);
    CHECK(alone.cluster.running() == 2);
    const auto reads = std::count_if(alone.daemon.log.begin() + static_cast<std::ptrdiff_t>(before),
                                     alone.daemon.log.end(),
                                     [](const auto& logged) { return proves(logged.effect); });
    CHECK(reads == 1);
    CHECK(all<StopJob>(alone.daemon).empty());
    CHECK(count(alone.daemon, Fact::Kind::kLeaseExpired) == 0);
  }
}

TEST_CASE("trust ends with its span, and begins again with requests sent after the clock step") {
  const QueueOptions options = options_of("a");
  const Duration span = options.lease_span();
  Trust trust{options};
  CHECK_FALSE(trust.prove(kStart, kStart));
  trust.begin(kStart);
  CHECK(trust.holds(kStart + span - 1ns));
  CHECK_FALSE(trust.holds(kStart + span));
  CHECK_FALSE(trust.runs(kStart + span));
  CHECK(trust.prove(kStart + 2s, kStart + 1s));
  CHECK_FALSE(trust.prove(kStart + 3s, kStart + 1s));
  CHECK(trust.until() == kStart + 1s + span);

  trust.clock_stepped(kStart + 5s);
  CHECK_FALSE(trust.holds(kStart + 5s));
  CHECK(trust.until() == kStart + 1s + span);
  CHECK_FALSE(trust.prove(kStart + 6s, kStart + 4s));
  CHECK(trust.until() == kStart + 1s + span);
  CHECK_FALSE(trust.expire(kStart + span));
  CHECK(trust.prove(kStart + 6s, kStart + 5s));
  CHECK(trust.holds(kStart + 6s));

  trust.clock_stepped(kStart + 7s);
  CHECK(trust.expire(kStart + 5s + span));
  CHECK_FALSE(trust.expire(kStart + 6s + span));
  CHECK(trust.state() == Trust::State::kExpired);
  CHECK_FALSE(trust.prove(kStart + 8s + span, kStart + 8s));  // it took too long
  CHECK(trust.prove(kStart + 2 * span, kStart + 2 * span - 1s));
  CHECK(trust.state() == Trust::State::kTrusted);

  trust.clock_stepped(kStart + 3 * span);
  trust.begin(kStart + 3 * span - 1s);  // asked for before the step, and answered after it
  CHECK(trust.state() == Trust::State::kUnproven);
}

TEST_CASE("a daemon that stepped down leads again at once when its successor is gone") {
  Two two;
  two.cluster.store.control(false, "please");
  CHECK(two.until_leader(*two.b) < 1s);
  two.cluster.run_for(1s);
  two.cluster.tell(*two.b, StopRequested{});
  CHECK(two.until_leader(two.a) < 1s);
}

TEST_CASE("a daemon that stepped down is not misled by an old holder, and stands back") {
  Two two;
  two.cluster.crash(*two.b);
  LeaderRead old = two.cluster.store.serve(two.cluster.now, ReadLeader{{}, true, 0});
  old.session = "another";
  old.holder = "z";
  old.modify_index -= 1;
  two.cluster.on_effect = [&](const Daemon& daemon, const Effect& e) {
    const auto* read = std::get_if<ReadLeader>(&e);
    if (&daemon != &two.a || read == nullptr || count(two.a, Fact::Kind::kSteppedDown) == 0) return;
    old.request = read->request;
    two.cluster.tell(two.a, old);
    two.cluster.on_effect = nullptr;
  };
  two.cluster.store.control(false, "please");
  two.cluster.run_for(9s);
  CHECK(two.cluster.leader() == nullptr);
  CHECK(two.until_leader(two.a) < 2s);
}

}  // namespace
}  // namespace lictor::core::test
