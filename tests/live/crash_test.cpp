// The death of a daemon.

#include "base/host_name.h"
#include "world.h"

namespace lictor::live {

TEST_CASE("when the leader is killed in the middle of a job, the other daemon runs the rest") {
  World world;
  auto first = world.leading_daemon("a");
  const auto second = world.standby_daemon("b");
  // The eighth would take for ever when it is run for the first time, with a child that ignores
  // TERM.
  for (int i = 1; i <= 25; ++i) {
    json para{{"sleep", 20}};
    if (i == 8) para = {{"sleep_first", 300'000}, {"sleep", 2000}, {"child", "yes"}};
    world.submit("t" + std::to_string(i), 1000 + i, para);
  }
  const Run orphan = world.begun_with_child("t8");
  CHECK(orphan.host == first->node());
  CHECK(world.journal.ended() == 7);
  const std::int64_t killed_ns = monotonic_ns();
  first->kill();
  // Its warden ends the job, and releases the lock after that.
  world.begun("t8", 2);
  CHECK_FALSE(is_alive(orphan.pid));
  CHECK_FALSE(is_alive(orphan.child));
  CHECK_FALSE(second->logged("waiting for its lock-delay"));
  // Both come a moment after the lock is free.
  CHECK(eventually([&] { return world.kv.sessions(first->session_name()).empty(); }));
  CHECK(eventually([&] { return first->logged("gave back the lock of default"); }));
  const json record = world.kv.get_json(world.task_key("t8"));
  CHECK(record.value("taskAttempt", 0) == 2);
  CHECK(record.value("taskLost", 0) == 1);
  CHECK(record["taskClaim"].value("node", "") == second->node());
  MESSAGE("the next leader's first job began "
          << seconds_between(killed_ns, world.journal.run("t8", 2)->begin_ns)
          << " s after the kill");

  REQUIRE(eventually([&] { return world.all_done(); }));
  CHECK(world.dead() == 0);
  std::vector<std::string> expected;
  for (int i = 1; i <= 25; ++i) {
    expected.push_back("t" + std::to_string(i));
    if (i == 8) expected.emplace_back("t8");  // again, and in its old place
  }
  CHECK(world.journal.order() == expected);
  for (const Run& run : world.journal.runs()) {
    CHECK(run.ended == (run.task != "t8" || run.attempt == 2));
  }
  CHECK(world.journal.overlaps() == std::vector<std::string>{});
  CHECK(world.journal.falling_tokens() == std::vector<std::string>{});
}

TEST_CASE("a job that is slow to end keeps its dead daemon's lock from everybody") {
  World world;
  auto first = world.leading_daemon("a", {{"kill_grace", "3s"}, {"lock_delay", "15s"}});
  const auto second = world.standby_daemon("b");
  // A child that ignores TERM.
  world.submit("1", 1000, {{"sleep_first", 300'000}, {"child", "yes"}});
  const Run orphan = world.begun_with_child("1");
  const std::string session = world.leader_session();
  first->kill();
  bool early = false;
  REQUIRE(eventually([&] {
    const bool alive = is_alive(orphan.child);  // before the lock is looked at
    const bool free = world.leader_session() != session;
    early = early || (alive && free && is_alive(orphan.child));
    return free;
  }));
  CHECK_FALSE(early);
  REQUIRE(eventually([&] { return world.all_done(); }));
  CHECK(world.journal.run("1", 2)->host == second->node());
  CHECK(world.journal.overlaps() == std::vector<std::string>{});
}

TEST_CASE("a daemon that was killed and is started again at once leads again, without lock-delay") {
  World world;
  const auto daemon = world.daemon("a");
  world.submit("1", 1000, {{"sleep_first", 300'000}, {"child", "yes"}});
  world.submit("2", 1001);
  const Run killed = world.begun_with_child("1");
  const std::string session = world.leader_session();
  CHECK_FALSE(session.empty());
  bool same = false;
  SUBCASE("its warden has released the lock and ended the session") { daemon->kill(); }
  SUBCASE("its warden died, too: the daemon takes up its session") {
    same = true;
    daemon->kill_with_warden();
  }
  daemon->start();
  world.begun("1", 2);
  CHECK_FALSE(is_alive(killed.child));
  const Run again = *world.journal.run("1", 2);
  REQUIRE(eventually([&] {
    return daemon->logged("type=Record host=" + host_name() + " pid=" + std::to_string(again.pid) +
                          '\n');
  }));
  CHECK((world.leader_session() == session) == same);
  CHECK(world.kv.sessions(daemon->session_name()).size() == 1);
  CHECK_FALSE(daemon->logged("waiting for its lock-delay"));
  REQUIRE(eventually([&] { return world.all_done(); }));
  CHECK(world.journal.order() == std::vector<std::string>{"1", "1", "2"});
  CHECK(world.journal.overlaps() == std::vector<std::string>{});
}

}  // namespace lictor::live
