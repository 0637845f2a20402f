// Leadership passes on in order, and the leader key in the hands of others.

#include <algorithm>
#include <csignal>
#include <thread>

#include <doctest/doctest.h>

#include "world.h"

namespace lictor::live {
namespace {

TEST_SUITE_BEGIN("live");

TEST_CASE("on TERM the job ends by itself and the next leader starts at once") {
  World world;
  auto first = world.leading_daemon("a");
  const auto second = world.standby_daemon("b");
  world.submit("1", 1000, {{"sleep", 4000}});
  world.submit("2", 1001);
  world.submit("3", 1002);
  REQUIRE(eventually([&] { return world.journal.run("1").has_value(); }));

  first->terminate();
  first->terminate();  // as timeout(1) does: one wish, not two
  CHECK(first->wait() == 0);
  REQUIRE(eventually([&] { return world.all_done(); }));
  CHECK(world.journal.order() == std::vector<std::string>{"1", "2", "3"});
  CHECK(world.journal.ended() == 3);
  CHECK(world.journal.run("1")->host == first->node());
  CHECK(world.journal.run("2")->host == second->node());
  const double gap =
      seconds_between(world.journal.run("1")->last_ns, world.journal.run("2")->begin_ns);
  MESSAGE("from the end of the last job to the begin of the next leader's first: " << gap << " s");
  CHECK(gap < 5.0);
  CHECK_FALSE(second->logged(kWaitsForLockDelay));
  CHECK(world.kv.sessions(first->session_name()).empty());
  CHECK(world.journal.overlaps() == std::vector<std::string>{});
}

TEST_CASE("a job that does not end in time is stopped on TERM and given back, not failed") {
  World world;
  auto first = world.leading_daemon("a", {{"drain_timeout", "1s"}, {"max_attempts", 1}});
  const auto second = world.standby_daemon("b", {{"max_attempts", 1}});
  world.submit("1", 1000, {{"sleep", 300'000}});
  REQUIRE(eventually([&] { return world.journal.run("1").has_value(); }));
  CHECK(first->stop() == 0);
  REQUIRE(eventually([&] { return world.journal.runs().size() == 2; }));
  const std::vector<Run> runs = world.journal.runs();
  CHECK_FALSE(runs[0].ended);
  CHECK_FALSE(is_alive(runs[0].pid));
  CHECK(runs[1].host == second->node());
  CHECK(runs[1].attempt == 1);  // as if it had never been begun
  CHECK_FALSE(world.kv.get_json(world.task_key("1")).contains("taskLost"));
  CHECK(world.dead() == 0);
  CHECK(world.journal.overlaps() == std::vector<std::string>{});
  CHECK_FALSE(second->logged(kWaitsForLockDelay));
}

TEST_CASE("a second TERM, a second later, stops the daemon and its jobs at once") {
  World world;
  auto daemon = world.leading_daemon("a");
  world.submit("1", 1000, {{"sleep", 300'000}});
  REQUIRE(eventually([&] { return world.journal.run("1").has_value(); }));
  daemon->terminate();
  REQUIRE(eventually([&] { return daemon->logged("stopping: running jobs may finish"); }));
  std::this_thread::sleep_for(std::chrono::milliseconds{1'100});  // what is measured
  daemon->terminate();
  CHECK(daemon->wait() == 128 + SIGTERM);
  CHECK(daemon->logged("stopping at once"));
  CHECK(eventually([&] { return !is_alive(world.journal.run("1")->pid); }));
}

TEST_CASE("while another client of Consul holds the leader key, nothing is run") {
  World world;
  const std::string session = world.kv.create_session("stranger", "3s");
  REQUIRE(world.kv.acquire(world.leader_key(), session, "a stranger"));
  world.submit("1", 1000);
  const auto daemon = world.daemon("a");
  REQUIRE(eventually([&] { return !world.kv.sessions(daemon->session_name()).empty(); }));
  CHECK(throughout(2s, [&] { return world.journal.runs().empty(); }));
  CHECK(world.leader_session() == session);
  CHECK(world.kv.get(world.leader_key())->value == "a stranger");

  SUBCASE("released, it is taken at once") {
    const std::int64_t released_ns = monotonic_ns();
    REQUIRE(world.kv.release(world.leader_key(), session));
    REQUIRE(eventually([&] { return world.all_done(); }));
    const double gap = seconds_between(released_ns, world.journal.run("1")->begin_ns);
    MESSAGE("from the release to the first job: " << gap << " s");
    CHECK(gap < 5.0);
    CHECK_FALSE(daemon->logged(kWaitsForLockDelay));
  }
  SUBCASE("its session gone, it is taken after the lock-delay of that session") {
    const std::int64_t destroyed_ns = monotonic_ns();
    world.kv.destroy_session(session);
    REQUIRE(eventually([&] { return world.all_done(); }));
    const double gap = seconds_between(destroyed_ns, world.journal.run("1")->begin_ns);
    MESSAGE("from the end of the session to the first job: " << gap << " s");
    CHECK(gap >= 3.0);
    CHECK(daemon->logged(kWaitsForLockDelay));
  }
  CHECK(world.leads(*daemon));
  CHECK(world.journal.runs().size() == 1);
}

TEST_CASE("a stranger who overwrites the leader key takes nothing away") {
  World world;
  const auto daemon = world.daemon("a");
  world.submit("1", 1000, {{"sleep", 3000}});
  world.submit("2", 1001);
  REQUIRE(eventually([&] { return world.journal.run("1").has_value(); }));
  const std::string session = world.leader_session();
  const std::string before = world.kv.get(world.leader_key())->value;
  world.kv.put(world.leader_key(), "not yours");
  REQUIRE(eventually([&] { return world.kv.get(world.leader_key())->value == before; }));
  REQUIRE(eventually([&] { return world.all_done(); }));
  CHECK(world.journal.order() == std::vector<std::string>{"1", "2"});
  CHECK(world.journal.ended() == 2);
  CHECK(world.leader_session() == session);
}

TEST_CASE("a leader whose key is deleted stops its job at once and runs the task again as leader") {
  World world;
  const auto daemon = world.daemon("a");
  world.submit("1", 1000, {{"sleep_first", 300'000}, {"child", "yes"}});
  world.submit("2", 1001);
  world.begun_with_child("1");
  world.kv.remove(world.leader_key());
  REQUIRE(eventually([&] { return world.all_done(); }));
  CHECK(world.journal.order() == std::vector<std::string>{"1", "1", "2"});
  CHECK(world.journal.runs().at(1).attempt == 1);  // it did not fail
  CHECK(world.journal.overlaps() == std::vector<std::string>{});
  CHECK(world.leads(*daemon));
}

// Which of them it is, and whether the first job was over when the second began, nobody can
// promise: the policies in consul/ keep this key from everybody else.
TEST_CASE("when the leader key is deleted, one of two daemons leads and nothing is lost") {
  World world;
  auto first = world.leading_daemon("a", {}, "none");
  auto second = world.standby_daemon("b", {}, "none");
  world.submit("1", 1000, {{"sleep_first", 300'000}});
  for (int i = 2; i <= 10; ++i) world.submit(std::to_string(i), 1000 + i, {{"sleep", 20}});
  REQUIRE(eventually([&] { return world.journal.run("1").has_value(); }));
  const Run orphan = *world.journal.run("1");
  world.kv.remove(world.leader_key());
  REQUIRE(eventually([&] { return world.all_done(); }));
  CHECK_FALSE(is_alive(orphan.pid));
  CHECK(world.dead() == 0);
  CHECK(world.journal.order() ==
        std::vector<std::string>{"1", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10"});
  CHECK((world.leads(*first) || world.leads(*second)));
  CHECK(first->runs());
  CHECK(second->runs());
}

TEST_SUITE_END();

}  // namespace
}  // namespace lictor::live
