// Consul is restored from a snapshot: the lock, its session and its lock-delay
// are as if they had never been.

#include <doctest/doctest.h>

#include "world.h"

namespace lictor::live {
namespace {

using nlohmann::json;

// A daemon whose jobs ignore TERM, and so live until kill_grace is over.
std::unique_ptr<LictorDaemon> stubborn_daemon(World& world, const std::string& node) {
  DaemonSettings settings = world.settings(node);
  json command{"/bin/sh", "-c", R"(trap '' TERM; exec "$@")", "sh"};
  for (const json& word : settings.queue["executors"]["*"]["exec"]) command.push_back(word);
  settings.queue["executors"]["*"]["exec"] = command;
  settings.queue["kill_grace"] = "2s";
  return std::make_unique<LictorDaemon>(settings);
}

TEST_SUITE_BEGIN("live");

TEST_CASE(
    "a daemon that starts after a restore waits for the jobs of the "
    "leader before") {
  ConsulAgent agent;
  World world{agent};
  world.submit("1", 1000, {{"sleep_first", 60'000}, {"sleep", 100}});
  const HttpAnswer snapshot = world.kv.request("GET", "/v1/snapshot");
  REQUIRE(snapshot.status == 200);
  const auto leader = stubborn_daemon(world, "a");
  REQUIRE(eventually([&] { return world.journal.tasks() == 1; }));
  const auto other = stubborn_daemon(world, "b");
  REQUIRE(eventually([&] { return world.stands_by(*other); }));
  REQUIRE(world.leads(*leader));

  REQUIRE(world.kv.request("PUT", "/v1/snapshot", snapshot.body).status == 200);
  other->kill();
  other->start();
  REQUIRE(eventually([&] { return world.all_done(); }));
  CHECK(world.journal.runs_of("1").size() == 2);  // Consul does not know of the first
  CHECK(world.journal.overlaps() == std::vector<std::string>{});
}

TEST_SUITE_END();

}  // namespace
}  // namespace lictor::live
