// A leader that is cut off from Consul and does not know it.

#include "tcp_proxy.h"
#include "world.h"

namespace lictor::live {

TEST_CASE("a leader that is cut off ends its job before another takes over, and follows then") {
  World world;
  TcpProxy first_network{world.port()};
  TcpProxy second_network{world.port()};
  DaemonSettings settings = world.settings("a");
  settings.consul = {first_network.address()};
  LictorDaemon first{settings};
  REQUIRE(eventually([&] { return world.leads(first); }));
  settings = world.settings("b");
  settings.consul = {second_network.address()};
  LictorDaemon second{settings};
  REQUIRE(eventually([&] { return world.stands_by(second); }));

  world.submit("1", 1000, {{"sleep_first", 300'000}, {"sleep", 100}, {"child", "yes"}});
  for (int i = 2; i <= 6; ++i) world.submit(std::to_string(i), 1000 + i, {{"sleep", 50}});
  world.begun_with_child("1");
  const std::int64_t cut_ns = monotonic_ns();
  first_network.cut();

  REQUIRE(eventually([&] { return world.all_done(); }));
  const std::vector<Run> runs = world.journal.runs_of("1");
  REQUIRE(runs.size() == 2);
  CHECK(runs[0].host == first.node());
  CHECK(runs[1].host == second.node());
  CHECK_FALSE(is_alive(runs[0].pid));
  CHECK_FALSE(is_alive(runs[0].child));
  const double lasted = seconds_between(cut_ns, runs[0].last_ns);
  MESSAGE("the job lasted " << lasted << " s, the next leader's began after "
                            << seconds_between(cut_ns, runs[1].begin_ns) << " s");
  CHECK(lasted < 12.0);  // the lock-delay
  CHECK(world.journal.overlaps() == std::vector<std::string>{});
  CHECK(world.journal.falling_tokens() == std::vector<std::string>{});

  first_network.heal();
  REQUIRE(eventually([&] { return world.stands_by(first); }));
  CHECK(throughout(1s, [&] { return world.leads(second); }));
  world.submit_done("7", 1007);
  CHECK(world.journal.order() == std::vector<std::string>{"1", "1", "2", "3", "4", "5", "6", "7"});
  CHECK(world.journal.run("7")->host == second.node());
  CHECK(world.dead() == 0);

  CHECK(second.stop() == 0);
  REQUIRE(eventually([&] { return world.leads(first); }));
}

}  // namespace lictor::live
