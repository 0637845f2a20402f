// The findings of "lictor check" about a Consul, and about proxies before it.

#include <thread>

#include "net/test_server.h"
#include "world.h"

namespace lictor::live {
namespace {

std::string check_of(const LictorDaemon& daemon) { return lictor(daemon, {"check"}).out; }

TEST_CASE("check says that no daemon runs on this host, and that nobody else could take over") {
  World world;
  DaemonSettings settings = world.settings("a");
  settings.admin = {"127.0.0.1:" + std::to_string(free_port())};
  LictorDaemon daemon{settings};
  REQUIRE(eventually([&] { return world.leads(daemon); }));
  const std::string well = check_of(daemon);
  INFO(well);
  CHECK(contains(well, "is ready"));
  CHECK(contains(well, "no second member"));
  const auto second = world.standby_daemon("b");
  daemon.kill();
  REQUIRE(eventually([&] { return world.leads(*second); }));
  const std::string said = check_of(daemon);
  INFO(said);
  CHECK(contains(said, "warn  daemon"));
  CHECK(contains(said, "nobody answers at http://" + settings.admin.front()));
}

TEST_CASE("check says that Consul answers too slowly for a daemon") {
  using net::test::Connection;
  using net::test::Received;
  net::test::TestServer slow{[](const Received& request, Connection& connection) {
    if (request.target != "/v1/status/leader") return connection.reply(404, "");
    std::this_thread::sleep_for(1100ms);
    connection.reply(200, R"("127.0.0.1:8300")");
  }};
  const std::string said = run({LICTOR_COMMAND, "--consul", slow.address(), "check"}).out;
  INFO(said);
  CHECK(contains(said, "warn  consul"));
  CHECK(contains(said, "; it took "));
}

TEST_CASE("check warns that a restart of a client agent ends leadership") {
  const int serf = free_port();
  ConsulAgent server{{{"ports", {{"serf_lan", serf}}}}};
  json client{{"node_name", server.node() + "-client"},
              {"server", false},
              {"bootstrap_expect", nullptr},
              {"leave_on_terminate", nullptr},
              {"retry_join", {"127.0.0.1:" + std::to_string(serf)}},
              {"retry_interval", "1s"}};
  SUBCASE("as it does by default") {
    ConsulAgent agent{client};
    World world{agent};
    const auto daemon = world.daemon("a");
    const std::string said = check_of(*daemon);
    INFO(said);
    CHECK(contains(said, R"("leave_on_terminate": false and "skip_leave_on_interrupt": true)"));
  }
  SUBCASE("but not if it is set to stay") {
    client["leave_on_terminate"] = false;
    client["skip_leave_on_interrupt"] = true;
    ConsulAgent agent{client};
    World world{agent};
    const auto daemon = world.leading_daemon("a");
    CHECK_FALSE(contains(check_of(*daemon), "leave_on_terminate"));
    // The session does outlive a restart.
    const std::string session = world.leader_session();
    agent.stop();
    agent.start();
    world.submit_done("1", 1000);
    CHECK(world.leader_session() == session);
  }
}

}  // namespace
}  // namespace lictor::live
