// A leader that hangs: its jobs must not outlive its lease.

#include <thread>

#include <doctest/doctest.h>

#include "process.h"
#include "world.h"

namespace lictor::live {
namespace {

using nlohmann::json;

TEST_SUITE_BEGIN("live");

TEST_CASE("a leader that hangs is killed, and its job is dead before the next leader's first") {
  World world;
  auto frozen = world.leading_daemon("a");
  const auto second = world.standby_daemon("b");
  world.submit("1", 1000, {{"sleep_first", 300'000}, {"sleep", 100}, {"child", "yes"}});
  world.submit("2", 1001, {{"sleep", 100}});
  const Run first = world.begun_with_child("1");

  const std::int64_t frozen_ns = monotonic_ns();
  frozen->freeze();
  REQUIRE(eventually([&] { return world.all_done(); }));
  CHECK_FALSE(is_alive(first.pid));
  CHECK_FALSE(is_alive(first.child));
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
  world.submit("3", 1002);
  REQUIRE(eventually([&] { return world.all_done(); }));
  CHECK(world.journal.order() == std::vector<std::string>{"1", "1", "2", "3"});
  CHECK(world.journal.overlaps() == std::vector<std::string>{});
  CHECK(world.journal.falling_tokens() == std::vector<std::string>{});
}

TEST_CASE(
    "without hang_timeout the end of the lease ends a frozen leader's job, and it stays over") {
  World world;
  DaemonSettings settings = world.settings("a");
  settings.hang_timeout = "0s";
  auto frozen = std::make_unique<LictorDaemon>(settings);
  REQUIRE(eventually([&] { return world.leads(*frozen); }));
  const auto second = world.standby_daemon("b");
  world.submit("1", 1000, {{"sleep_first", 300'000}, {"sleep", 100}, {"child", "yes"}});
  world.submit("2", 1001, {{"sleep", 100}});
  const Run first = world.begun_with_child("1");

  const std::int64_t frozen_ns = monotonic_ns();
  frozen->freeze();
  REQUIRE(eventually([&] { return world.all_done(); }));

  CHECK_FALSE(is_alive(first.pid));
  CHECK_FALSE(is_alive(first.child));
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
  world.submit("3", 1002);
  REQUIRE(eventually([&] { return world.all_done(); }));
  CHECK(world.journal.run("3")->host == second->node());
  CHECK(world.dead() == 0);

  // It can lead again.
  CHECK(second->stop() == 0);
  REQUIRE(eventually([&] { return world.leads(*frozen); }));
  world.submit("4", 1003);
  REQUIRE(eventually([&] { return world.all_done(); }));
  CHECK(world.journal.order() == std::vector<std::string>{"1", "1", "2", "3", "4"});
  CHECK(world.journal.run("4")->host == frozen->node());
  CHECK(world.journal.overlaps() == std::vector<std::string>{});
}

TEST_CASE("a freeze that is shorter than lease and hang_timeout harms no job") {
  World world;
  DaemonSettings settings = world.settings("a", {{"lock_delay", "30s"}});
  settings.hang_timeout = "10s";
  const auto daemon = std::make_unique<LictorDaemon>(settings);
  world.submit("1", 1000, {{"sleep", 5000}});
  world.submit("2", 1001);
  REQUIRE(eventually([&] { return world.journal.run("1").has_value(); }));
  daemon->freeze();
  std::this_thread::sleep_for(3s);
  daemon->thaw();
  REQUIRE(eventually([&] { return world.all_done(); }));
  CHECK(world.journal.order() == std::vector<std::string>{"1", "2"});
  CHECK(world.journal.ended() == 2);
  CHECK(world.dead() == 0);
}

TEST_CASE("while a frozen leader's lock is still held, the commands say when it was last seen") {
  World world;
  DaemonSettings settings = world.settings("a", {{"session_ttl", "60s"}});  // two minutes, then
  settings.hang_timeout = "0s";
  const auto daemon = std::make_unique<LictorDaemon>(settings);
  REQUIRE(eventually([&] {
    return world.leads(*daemon) && !world.kv.list(world.root + "default/members/").empty();
  }));
  const auto output_of = [&](const std::vector<std::string>& command) {
    std::vector<std::string> line{LICTOR_COMMAND, "--config", daemon->config_file()};
    line.insert(line.end(), command.begin(), command.end());
    return run(line).out;
  };
  CHECK(output_of({"check"}).find(daemon->node() + " leads, last seen ") != std::string::npos);
  const json output = json::parse(output_of({"leader", "--json"}), nullptr, false);
  CHECK(output.value("seen", "") ==
        world.kv.get_json(world.root + "default/members/" + daemon->node()).value("seen", "?"));

  daemon->freeze();
  CHECK(eventually([&] {
    return output_of({"check"}).find(daemon->node() + " leads, but was last seen ") !=
           std::string::npos;
  }));
  CHECK(world.leads(*daemon));
  CHECK(output_of({"leader"}).find("\nseen ") != std::string::npos);
  CHECK(output_of({"members"}).find("SEEN") != std::string::npos);
  daemon->thaw();
  CHECK(eventually([&] {
    return output_of({"check"}).find(daemon->node() + " leads, last seen ") != std::string::npos;
  }));
}

TEST_SUITE_END();

}  // namespace
}  // namespace lictor::live
