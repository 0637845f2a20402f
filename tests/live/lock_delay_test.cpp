// How long a lock is left alone whose holder is gone: by Consul, and by who wants it.

#include <doctest/doctest.h>

#include "world.h"

namespace lictor::live {
namespace {

TEST_SUITE_BEGIN("live");

TEST_CASE("Consul bars a lock for 60 s at most, whatever its session asked for") {
  World world;
  const std::string key = world.root + "lock";
  const std::string holder = world.kv.create_session("holder", "120s");
  const std::string other = world.kv.create_session("other", "0s");
  REQUIRE(world.kv.acquire(key, holder, "held"));
  const std::int64_t freed_ns = monotonic_ns();
  world.kv.destroy_session(holder);
  CHECK_FALSE(world.kv.acquire(key, other, "taken"));
  REQUIRE(eventually([&] { return world.kv.acquire(key, other, "taken"); }));
  const double barred = seconds_between(freed_ns, monotonic_ns());
  MESSAGE("barred for " << barred << " s");
  CHECK(barred > 59.0);
  CHECK(barred < 70.0);
}

TEST_CASE("a lock whose lock-delay Consul does not know is left alone for its holder's") {
  World world;
  const std::string session =
      world.kv.create_session("lost", "0s");  // as after a restored snapshot
  REQUIRE(world.kv.acquire(world.leader_key(), session, R"({"node":"lost","lock_delay":"8s"})"));
  world.submit("1", 1000);
  std::unique_ptr<LictorDaemon> daemon;
  std::int64_t seen_ns = 0;
  SUBCASE("by who saw it held") {
    daemon = world.daemon("a");
    REQUIRE(eventually([&] { return world.stands_by(*daemon); }));
    seen_ns = monotonic_ns();
    world.kv.destroy_session(session);
  }
  SUBCASE("by who comes when it is free") {
    world.kv.destroy_session(session);
    seen_ns = monotonic_ns();
    daemon = world.daemon("a");
  }
  REQUIRE(eventually([&] { return world.all_done(); }));
  const double gap = seconds_between(seen_ns, world.journal.run("1")->begin_ns);
  MESSAGE("the first job began after " << gap << " s");
  CHECK(gap >= 8.0);
  CHECK(daemon->logged(kWaitsForLockDelay));
}

TEST_SUITE_END();

}  // namespace
}  // namespace lictor::live
