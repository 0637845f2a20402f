// How long Consul, and waiting daemons, leave a lock alone whose holder is gone.

#include "world.h"

namespace lictor::live {
namespace {

TEST_CASE("Consul bars a lock for 60 s at most, whatever its session asked for") {
  World world;
  const std::string key = world.root + "lock";
  const std::string holder = world.kv.create_session("holder", "120s");
  const std::string other = world.kv.create_session("other", "0s");
  REQUIRE(world.kv.acquire(key, holder, "held"));
  const std::int64_t freed_ns = monotonic_ns();
  world.kv.destroy_session(holder);
  CHECK_FALSE(world.kv.acquire(key, other, "taken"));
  REQUIRE(eventually([&] { return world.kv.acquire(key, other, "taken"); }));
  const double barred = seconds_between(freed_ns, monotonic_ns());
  MESSAGE("barred for " << barred << " s");
  CHECK(barred > 59.0);
  CHECK(barred < 70.0);
}

TEST_CASE("daemons wait out the holder's lock-delay if Consul no longer knows it") {
  World world;
  const auto session = world.kv.create_session("lost", "0s");  // as after a restored snapshot
  REQUIRE(world.kv.acquire(world.leader_key(), session, R"({"node":"lost","lock_delay":"8s"})"));
  world.submit("1", 1000);
  std::unique_ptr<LictorDaemon> daemon;
  std::int64_t seen_ns = 0;
  SUBCASE("by a daemon that saw the lock held") {
    daemon = world.daemon("a");
    REQUIRE(eventually([&] { return world.stands_by(*daemon); }));
    seen_ns = monotonic_ns();
    world.kv.destroy_session(session);
  }
  SUBCASE("by a daemon that comes when the lock is free") {
    world.kv.destroy_session(session);
    seen_ns = monotonic_ns();
    daemon = world.daemon("a");
  }
  REQUIRE(eventually([&] { return world.all_done(); }));
  const double gap = seconds_between(seen_ns, world.journal.run("1")->begin_ns);
  MESSAGE("the first job began after " << gap << " s");
  CHECK(gap >= 8.0);
  CHECK(daemon->logged(kWaitsForLockDelay));
}

// A daemon whose jobs ignore TERM, and so live until kill_grace is over.
std::unique_ptr<LictorDaemon> stubborn_daemon(World& world, const std::string& node) {
  DaemonSettings settings = world.settings(node);
  json command{"/bin/sh", "-c", R"(trap '' TERM; exec "$@")", "sh"};
  for (const json& word : settings.queue["executors"]["*"]["exec"]) command.push_back(word);
  settings.queue["executors"]["*"]["exec"] = command;
  settings.queue["kill_grace"] = "2s";
  return std::make_unique<LictorDaemon>(settings);
}

TEST_CASE("a daemon that starts after a restore waits for the jobs of the leader before") {
  ConsulAgent agent;
  World world{agent};
  world.submit("1", 1000, {{"sleep_first", 60'000}, {"sleep", 100}});
  const HttpAnswer snapshot = world.kv.request("GET", "/v1/snapshot");
  REQUIRE(snapshot.status == 200);
  const auto leader = stubborn_daemon(world, "a");
  REQUIRE(eventually([&] { return world.journal.tasks() == 1; }));
  const auto other = stubborn_daemon(world, "b");
  // It can only wait for a leader that it has seen.
  REQUIRE(eventually([&] { return other->logged("another member leads"); }));
  REQUIRE(world.leads(*leader));

  REQUIRE(world.kv.request("PUT", "/v1/snapshot", snapshot.body).status == 200);
  other->kill();
  other->start();
  REQUIRE(eventually([&] { return world.all_done(); }));
  CHECK(world.journal.runs_of("1").size() == 2);  // Consul does not know of the first
  CHECK(world.journal.overlaps() == std::vector<std::string>{});
}

}  // namespace
}  // namespace lictor::live
