// A leader that hangs: its jobs must not outlive its lease.

#include <signal.h>

#include <algorithm>

#include "world.h"

namespace lictor::live {
namespace {

// Freezes the leader while its job and that job's child run, and waits until all tasks are done: by
// then both must be dead. Returns the time of the freeze.
std::int64_t freeze_in_job(World& world, LictorDaemon& leader) {
  world.submit("1", 1000, {{"sleep_first", 300'000}, {"sleep", 100}, {"child", "yes"}});
  world.submit("2", 1001, {{"sleep", 100}});
  const Run first = world.begun_with_child("1");
  const std::int64_t frozen_ns = monotonic_ns();
  leader.freeze();
  REQUIRE(eventually([&] { return world.all_done(); }));
  CHECK_FALSE(is_alive(first.pid));
  CHECK_FALSE(is_alive(first.child));
  return frozen_ns;
}

TEST_CASE("a leader that hangs is killed, and its job is dead before the next leader's first") {
  World world;
  auto frozen = world.leading_daemon("a");
  const auto second = world.standby_daemon("b");
  const std::int64_t frozen_ns = freeze_in_job(world, *frozen);
  CHECK_FALSE(frozen->runs());
  CHECK(frozen->logged("the daemon hangs: its loop has not turned for hang_timeout"));
  CHECK(eventually([&] { return frozen->logged("gave back the lock of default"); }));
  CHECK_FALSE(second->logged("waiting for its lock-delay"));
  const std::vector<Run> runs = world.journal.runs_of("1");
  REQUIRE(runs.size() == 2);
  CHECK(runs[1].host == second->node());
  CHECK(seconds_between(frozen_ns, runs[0].last_ns) > 3.0);  // hang_timeout: 10s / 3
  MESSAGE("the next leader's first job began after " << seconds_between(frozen_ns, runs[1].begin_ns)
                                                     << " s");

  frozen->start();
  REQUIRE(eventually([&] { return world.stands_by(*frozen); }));
  CHECK(second->stop() == 0);
  REQUIRE(eventually([&] { return world.leads(*frozen); }));
  world.submit_done("3", 1002);
  CHECK(world.journal.order() == std::vector<std::string>{"1", "1", "2", "3"});
  CHECK(world.journal.overlaps() == std::vector<std::string>{});
  CHECK(world.journal.falling_tokens() == std::vector<std::string>{});
}

TEST_CASE("without hang_timeout a frozen leader's job ends with the lease, and does not go on") {
  World world;
  DaemonSettings settings = world.settings("a");
  settings.hang_timeout = "0s";
  auto frozen = std::make_unique<LictorDaemon>(settings);
  REQUIRE(eventually([&] { return world.leads(*frozen); }));
  const auto second = world.standby_daemon("b");
  const std::int64_t frozen_ns = freeze_in_job(world, *frozen);
  const std::vector<Run> runs = world.journal.runs_of("1");
  REQUIRE(runs.size() == 2);
  CHECK(runs[1].host == second->node());
  CHECK(world.journal.runs_of("2").size() == 1);
  CHECK(world.journal.overlaps() == std::vector<std::string>{});
  CHECK(world.journal.falling_tokens() == std::vector<std::string>{});
  const double lasted = seconds_between(frozen_ns, runs[0].last_ns);
  MESSAGE("the job lasted " << lasted << " s, the next leader's began after "
                            << seconds_between(frozen_ns, runs[1].begin_ns) << " s");
  CHECK(lasted < 12.0);  // the lock-delay

  // It wakes up, finds that it does not lead, and finishes nothing.
  frozen->thaw();
  REQUIRE(eventually([&] { return world.stands_by(*frozen); }));
  CHECK(throughout(1s, [&] { return world.leads(*second); }));
  world.submit_done("3", 1002);
  CHECK(world.journal.run("3")->host == second->node());
  CHECK(world.dead() == 0);
  // It can lead again.
  CHECK(second->stop() == 0);
  REQUIRE(eventually([&] { return world.leads(*frozen); }));
  world.submit_done("4", 1003);
  CHECK(world.journal.order() == std::vector<std::string>{"1", "1", "2", "3", "4"});
  CHECK(world.journal.run("4")->host == frozen->node());
  CHECK(world.journal.overlaps() == std::vector<std::string>{});
}

// The process, its children, and theirs.
std::vector<pid_t> family_of(pid_t pid) {
  std::vector<pid_t> family{pid};
  for (std::size_t i = 0; i < family.size(); ++i) {
    for (const pid_t child : children_of(family[i])) family.push_back(child);
  }
  return family;
}

TEST_CASE("a job that began before its host slept is ended at wake-up, and finishes nothing") {
  World world;
  const auto sleeper = world.leading_daemon("a", {}, "none");
  const auto second = world.standby_daemon("b", {}, "none");
  world.submit("1", 1000, {{"sleep_first", 300'000}, {"sleep", 100}});
  world.submit("2", 1001, {{"sleep", 100}});
  const Run first = world.begun("1");

  const std::vector<pid_t> family = family_of(sleeper->pid());
  CHECK(std::find(family.begin(), family.end(), first.pid) != family.end());
  for (const pid_t pid : family) kill(pid, SIGSTOP);
  REQUIRE(eventually([&] { return world.all_done(); }));
  CHECK(world.journal.run("1", 2)->host == second->node());
  // The same name again, while the old attempt still sleeps.
  world.submit("1", 1002, {{"sleep_first", 3000}, {"version", "again"}});
  REQUIRE(eventually([&] { return world.journal.runs_of("1").size() == 3; }));

  const std::int64_t woken_ns = monotonic_ns();
  for (const pid_t pid : family) kill(pid, SIGCONT);
  CHECK(eventually([&] { return !is_alive(first.pid); }));
  const double lasted = seconds_between(woken_ns, monotonic_ns());
  MESSAGE("the old job was gone " << lasted << " s after its host woke up");
  CHECK(lasted < 6.0);
  REQUIRE(eventually([&] { return world.stands_by(*sleeper); }));
  REQUIRE(eventually([&] { return world.all_done(); }));

  const std::vector<Run> runs = world.journal.runs_of("1");
  REQUIRE(runs.size() == 3);
  CHECK_FALSE(runs[0].ended);
  CHECK(runs[1].ended);
  CHECK(runs[2].ended);  // the old attempt's end did not end it
  CHECK(runs[2].version == "again");
  CHECK(runs[2].attempt == 1);
  CHECK(world.journal.falling_tokens() == std::vector<std::string>{});
  CHECK(world.dead() == 0);
  CHECK(world.leads(*second));
}

}  // namespace
}  // namespace lictor::live
