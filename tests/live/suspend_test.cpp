// A host that sleeps: the daemon, its warden and its jobs all stand still, and wake up together.

#include <signal.h>

#include <algorithm>
#include <sstream>

#include <doctest/doctest.h>

#include "process.h"
#include "world.h"

namespace lictor::live {
namespace {

// The process, its children, and theirs.
std::vector<pid_t> family_of(pid_t pid) {
  std::vector<pid_t> family{pid};
  for (std::size_t i = 0; i < family.size(); ++i) {
    const std::string id = std::to_string(family[i]);
    std::istringstream children{read_text("/proc/" + id + "/task/" + id + "/children")};
    for (pid_t child = 0; children >> child;) family.push_back(child);
  }
  return family;
}

TEST_SUITE_BEGIN("live");

TEST_CASE("what a host began before it slept is ended when it wakes up, and finishes nothing") {
  World world;
  const auto sleeper = world.leading_daemon("a", {}, "none");
  const auto second = world.standby_daemon("b", {}, "none");
  world.submit("1", 1000, {{"sleep_first", 300'000}, {"sleep", 100}});
  world.submit("2", 1001, {{"sleep", 100}});
  REQUIRE(eventually([&] { return world.journal.run("1").has_value(); }));
  const Run first = *world.journal.run("1");

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

TEST_SUITE_END();

}  // namespace
}  // namespace lictor::live
