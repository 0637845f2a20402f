#include "core/leadership/lock_release.h"

#include <doctest/doctest.h>

#include "alone.h"

namespace lictor::core {
namespace {

template <class E>
E asked(const LockRelease& steps) {
  const Effect effect = steps.ask(RequestId{9});
  const auto* one = std::get_if<E>(&effect);
  REQUIRE(one != nullptr);
  return *one;
}

LeaderRead held_by(const std::string& session, std::uint64_t index) {
  LeaderRead read;
  read.ok = read.found = true;
  read.session = session;
  read.modify_index = index;
  return read;
}

TEST_CASE("a lock that is known to be held is released at its index, then the session ends") {
  LockRelease steps{"s", 77};
  const auto release = asked<ReleaseLock>(steps);
  CHECK(release.request == RequestId{9});
  CHECK(release.session == "s");
  CHECK(release.index == 77);
  CHECK_FALSE(steps.lock_is_free());
  CHECK(steps.on(UnlockReplied{{}, Outcome::kApplied}));
  CHECK(steps.lock_is_free());
  CHECK(steps.gave_back());
  CHECK(asked<DestroySession>(steps).session == "s");
  CHECK_FALSE(steps.on(SessionDestroyed{{}, Outcome::kUnknown}));
  CHECK_FALSE(steps.on(SessionDestroyed{{}, Outcome::kRejected}));  // nor if it was not sent
  CHECK_FALSE(steps.done());
  CHECK(asked<DestroySession>(steps).session == "s");
  CHECK(steps.on(SessionDestroyed{{}, Outcome::kApplied}));
  CHECK(steps.done());
}

TEST_CASE("an unlock that is refused or lost is followed by a read, which decides") {
  for (const Outcome outcome : {Outcome::kRejected, Outcome::kUnknown}) {
    LockRelease steps{"s", 77};
    CHECK_FALSE(steps.on(UnlockReplied{{}, outcome}));
    CHECK_FALSE(steps.lock_is_free());
    CHECK(asked<ReadLeader>(steps).consistent);
    CHECK_FALSE(steps.on(LeaderRead{}));  // no answer
    CHECK(asked<ReadLeader>(steps).consistent);
    SUBCASE("ours, written to meanwhile") {
      CHECK(steps.on(held_by("s", 80)));
      CHECK(asked<ReleaseLock>(steps).index == 80);
    }
    SUBCASE("another's") {
      CHECK(steps.on(held_by("t", 80)));
      CHECK(steps.lock_is_free());
      CHECK_FALSE(steps.gave_back());
      CHECK(asked<DestroySession>(steps).session == "s");
    }
  }
}

TEST_CASE("a session that is not known to hold the lock is asked about before it is destroyed") {
  LockRelease steps{"s", 0};
  CHECK(asked<ReadLeader>(steps).index == 0);
  CHECK(steps.on(held_by("s", 5)));
  CHECK(asked<ReleaseLock>(steps).index == 5);
}

TEST_CASE("the warden of a dead leader lets the next one lead when the last job is dead") {
  test::Two two;
  two.cluster.warden = [](const test::Daemon&) { return test::Warden{100, {}}; };
  two.cluster.stopping = [](Duration) { return 400ms; };
  two.cluster.put("1");
  REQUIRE(two.cluster.run_until([&] { return two.cluster.running() == 1; }, 1s));
  SUBCASE("killed") { two.cluster.crash(two.a); }
  SUBCASE("killed since it hangs") {
    two.cluster.hang_timeout = 3s;
    two.cluster.pause(two.a, 1h);
    two.cluster.run_for(3s);
  }
  CHECK(two.a.jobs.size() == 1);
  const Duration until = two.until_leader(*two.b);
  CHECK(until >= 390ms);
  CHECK(until <= 500ms);
  CHECK(two.cluster.store.sessions() == 1);
}

TEST_CASE("a restarted daemon takes up its session only if its warden did not end it") {
  for (std::size_t requests = 0; requests <= 3; ++requests) {
    CAPTURE(requests);
    test::Two two;
    two.cluster.warden = [&](const test::Daemon&) { return test::Warden{requests, {}}; };
    two.cut_off = two.b;
    const std::string session = two.cluster.store.leader_session();
    two.cluster.crash(two.a);
    two.cluster.restart_after(two.a, 100ms);
    CHECK(two.until_leader(two.a) < 500ms);
    CHECK((two.cluster.store.leader_session() == session) == (requests < 2));
  }
}

}  // namespace
}  // namespace lictor::core
