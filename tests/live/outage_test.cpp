// A long job, and a Consul that is away for a while.

#include "tcp_proxy.h"
#include "world.h"

namespace lictor::live {

TEST_CASE("a job outlives three TTLs, a freeze and a restart of Consul, and runs once") {
  ConsulAgent consul;
  World world{consul};
  // Longer than a restart takes on the slowest of machines; the session's TTL is as short as can
  // be.
  const auto daemon = world.daemon("a", {{"session_ttl", "10s"}, {"lock_delay", "40s"}});
  world.submit("long", 1000, {{"sleep", 35'000}});
  world.submit("next", 1001);
  const Run run = world.begun("long");
  const std::string session = world.leader_session();

  std::this_thread::sleep_for(4s);
  consul.pause();
  std::this_thread::sleep_for(3s);
  consul.resume();
  std::this_thread::sleep_for(4s);
  consul.stop();
  consul.start();
  REQUIRE(eventually([&] { return world.kv.request("GET", "/v1/status/leader").body.size() > 2; }));
  CHECK(world.journal.runs().size() == 1);
  CHECK_FALSE(world.journal.run("long")->ended);

  REQUIRE(eventually([&] { return world.all_done(); }));
  const std::vector<Run> runs = world.journal.runs();
  REQUIRE(runs.size() == 2);
  CHECK(runs[0].token == run.token);
  CHECK(runs[0].ended);
  CHECK(seconds_between(runs[0].begin_ns, runs[0].last_ns) >= 35.0);
  CHECK(runs[1].task == "next");
  CHECK(world.leader_session() == session);
  CHECK(world.kv.sessions(daemon->session_name()).size() == 1);
  CHECK(world.dead() == 0);
}

// A server that has just started answers plain reads, also those of transactions, from the part of
// its log replayed so far: then there is no key "partitions".
TEST_CASE("a restart of Consul within the lease changes nothing in a queue with partitions") {
  ConsulAgent consul;
  World world{consul};
  for (int i = 0; i < 5000; ++i) world.kv.put("more/" + std::to_string(i), "to replay");
  const json queue{{"partitions", 4}, {"lock_delay", "60s"}, {"concurrency", 8}};
  const auto first = world.daemon("a", queue, "none");
  const auto second = world.daemon("b", queue, "none");
  const auto all_led = [&] { return !shares_of(world.kv, world.leader_key(), 4).empty(); };
  REQUIRE(eventually(all_led));
  world.submit_begun("long", 1000, {{"sleep", 600'000}});
  for (int i = 0; i < 3; ++i) {
    consul.stop();
    consul.start();
    REQUIRE(eventually(all_led));
    // A daemon that misread the number would stop its jobs within drain_timeout.
    world.submit("later" + std::to_string(i), 1001);
    CHECK(eventually([&] { return world.journal.run("later" + std::to_string(i)).has_value(); }));
  }
  for (const auto* daemon : {first.get(), second.get()}) {
    CHECK_FALSE(daemon->logged("the number of partitions is gone"));
    CHECK_FALSE(daemon->logged("the number of partitions has changed"));
  }
  CHECK(world.journal.runs_of("long").size() == 1);
  CHECK(is_alive(world.journal.run("long")->pid));
}

// A refused connection tells the daemon that nothing was written; silence leaves it in doubt.
TEST_CASE("tasks given back while Consul is silent keep their place before later ones") {
  World world;
  TcpProxy network{world.port()};
  DaemonSettings settings =
      world.settings("a", {{"session_ttl", "60s"}, {"lock_delay", "15s"}, {"kill_grace", "1s"}});
  settings.consul = {network.address()};
  LictorDaemon daemon{settings};
  world.submit("first", 1000, {{"sleep", 600'000}});
  world.submit("second", 1001, {{"sleep", 600'000}});
  world.begun("first");
  network.cut();
  REQUIRE(eventually([&] { return daemon.logged("given back to the queue"); }));
  REQUIRE(eventually([&] { return daemon.logged("error=\"transaction: "); }));
  network.heal();
  REQUIRE(eventually([&] { return world.journal.runs().size() == 2; }));
  CHECK(world.journal.runs()[1].task == "first");
  CHECK(eventually([&] { return daemon.logged("Consul answers again"); }));
}

TEST_CASE("after an outage of Consul, a living daemon has lost no task, whoever leads") {
  ConsulAgent consul;
  World world{consul};
  const json queue{{"session_ttl", "10s"}, {"lock_delay", "30s"}, {"kill_grace", "1s"}};
  const auto first = world.leading_daemon("a", queue);
  const auto second = world.standby_daemon("b", queue);
  world.submit_begun("long", 1000, {{"sleep", 600'000}});
  const std::string session = world.leader_session();

  consul.pause();
  REQUIRE(eventually([&] { return first->logged("the lease ran out"); }));
  CHECK(eventually([&] { return !is_alive(world.journal.run("long")->pid); }));
  consul.resume();
  world.kv.destroy_session(session);  // as Consul does when its TTL is over
  const std::string entry = world.member_key(*first);
  REQUIRE(eventually([&] {
    const auto member = world.kv.get(entry);
    return member && contains(member->value, "\"given_up\"");
  }));
  first->freeze();  // so that the other one leads
  REQUIRE(eventually([&] { return world.journal.runs_of("long").size() == 2; }));
  CHECK(world.journal.runs_of("long")[1].host == second->node());
  const json record = world.kv.get_json(world.task_key("long"));
  CHECK(record.value("taskLost", 0) == 0);
  CHECK(record.value("taskAttempt", 0) == 1);
  CHECK_FALSE(second->logged("its owner is lost"));
  first->thaw();
  CHECK(eventually([&] { return world.stands_by(*first); }));
}

}  // namespace lictor::live
