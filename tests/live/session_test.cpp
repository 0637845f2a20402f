// A session that ends under a leader who lives.

#include <doctest/doctest.h>

#include "process.h"
#include "world.h"

namespace lictor::live {
namespace {

TEST_SUITE_BEGIN("live");

TEST_CASE(
    "a leader whose session is destroyed stops its job at once and leads after the lock-delay") {
  World world;
  const auto daemon = world.daemon("a");
  world.submit("1", 1000, {{"sleep_first", 300'000}, {"child", "yes"}});
  world.submit("2", 1001);
  const Run first = world.begun_with_child("1");
  const std::string session = world.leader_session();

  const std::int64_t destroyed_ns = monotonic_ns();
  world.kv.destroy_session(session);
  REQUIRE(eventually([&] { return !is_alive(first.pid) && !is_alive(first.child); }));
  const double lasted = seconds_between(destroyed_ns, monotonic_ns());
  MESSAGE("the job was gone after " << lasted << " s");
  // Long before its lease is over, which is 10 s: told by the watch of the leader key.
  CHECK(lasted < 6.0);

  REQUIRE(eventually([&] { return world.all_done(); }));
  const std::vector<Run> runs = world.journal.runs();
  REQUIRE(runs.size() == 3);
  const double gap = seconds_between(destroyed_ns, runs[1].begin_ns);
  MESSAGE("it began again after " << gap << " s");
  CHECK(gap >= 11.9);
  CHECK(runs[1].task == "1");
  CHECK(runs[1].attempt == 1);  // it did not fail
  CHECK(runs[2].task == "2");
  CHECK(world.leader_session() != session);
  CHECK(world.leads(*daemon));
  CHECK(world.dead() == 0);
  CHECK(world.journal.overlaps() == std::vector<std::string>{});
}

TEST_SUITE_END();

}  // namespace
}  // namespace lictor::live
