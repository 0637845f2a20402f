// Leadership passes on in order, and the leader key in the hands of others.

#include <csignal>
#include <thread>

#include "world.h"

namespace lictor::live {

TEST_CASE("on TERM the job ends by itself and the next leader starts at once") {
  World world;
  auto first = world.leading_daemon("a");
  const auto second = world.standby_daemon("b");
  world.submit("1", 1000, {{"sleep", 4000}});
  world.submit("2", 1001);
  world.submit("3", 1002);
  world.begun("1");

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
  world.submit_begun("1", 1000, {{"sleep", 300'000}});
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
  world.submit_begun("1", 1000, {{"sleep", 300'000}});
  daemon->terminate();
  REQUIRE(eventually([&] { return daemon->logged("stopping: running jobs may finish"); }));
  std::this_thread::sleep_for(std::chrono::milliseconds{1'100});  // what is measured
  daemon->terminate();
  CHECK(daemon->wait() == 128 + SIGTERM);
  CHECK(daemon->logged("stopping at once"));
  CHECK(eventually([&] { return !is_alive(world.journal.run("1")->pid); }));
}

TEST_CASE("another client that overwrites the leader key takes nothing away") {
  World world;
  const auto daemon = world.daemon("a");
  world.submit("1", 1000, {{"sleep", 3000}});
  world.submit("2", 1001);
  world.begun("1");
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

}  // namespace lictor::live
