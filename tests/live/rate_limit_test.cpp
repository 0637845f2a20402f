// rate_limit is the queue's: it holds whoever leads.

#include <algorithm>
#include <utility>

#include "guarded_consul.h"
#include "world.h"

namespace lictor::live {
namespace {

// The shortest time between the begin of two jobs, in seconds.
double shortest_gap(const std::vector<Run>& runs) {
  double shortest = 1e9;
  for (std::size_t i = 1; i < runs.size(); ++i) {
    shortest = std::min(shortest, seconds_between(runs[i - 1].begin_ns, runs[i].begin_ns));
  }
  return shortest;
}

TEST_CASE("a rate_limit holds over a daemon's restarts, by TERM and by KILL") {
  World world;
  const auto daemon =
      world.daemon("a", {{"rate_limit", {{"tasks", 1}, {"per", "4s"}, {"burst", 1}}}});
  for (int i = 0; i < 20; ++i) world.submit(std::to_string(i), 1000 + i);
  std::string session;
  for (int round = 0; world.journal.ended() < 4; ++round) {
    REQUIRE(round < 30);
    REQUIRE(eventually([&] {
      const std::string now = world.leader_session();
      return !now.empty() && std::exchange(session, now) != now;
    }));
    static_cast<void>(throughout(700ms, [&] { return world.leads(*daemon); }));
    if (round % 3 == 2) {
      daemon->kill();
    } else {
      REQUIRE(daemon->stop() == 0);
    }
    daemon->start();
  }
  const std::vector<Run> runs = world.journal.runs();
  CHECK(shortest_gap(runs) > 3.9);
  CHECK(seconds_between(runs.front().begin_ns, runs.back().begin_ns) < 40.0);
  CHECK(world.kv.get_json(world.root + "default/rate").contains("fullAt"));
}

TEST_CASE("without the right to its key a rate_limit counts in each leader, and check says so") {
  GuardedConsul guarded;
  World world{guarded.agent, "lictor/"};
  std::string rules = policy_text("daemon", guarded.agent.node());
  const std::string policy = guarded.make_policy("daemon", rules);
  DaemonSettings settings = world.settings("a", {{"rate_limit", {{"tasks", 20}, {"per", "1s"}}}});
  settings.token_file = world.folder.file("token");
  write_secret(settings.token_file, guarded.make_token(policy).secret);
  LictorDaemon daemon{settings};
  Kv& kv = guarded.kv;
  const auto submit = [&](const std::string& id) {
    kv.put_json("lictor/default/tasks/" + id, json{{"taskType", "Record"}});
  };
  submit("1");
  submit("2");
  REQUIRE(eventually([&] { return world.journal.ended() == 2; }));
  CHECK(daemon.logged("rate_limit counts in each leader alone"));
  const auto check = [&] { return lictor(daemon, {"check"}); };
  CHECK(contains(check().out, R"(key "lictor/default/rate" { policy = "write" })"));
  // The policy has the rule as a comment.
  const std::string comment = R"(# key "lictor/default/rate")";
  const std::size_t at = rules.find(comment);
  REQUIRE(at != std::string::npos);
  rules.erase(at, 2);
  guarded.change_policy(policy, "daemon", rules);
  REQUIRE(daemon.stop() == 0);
  daemon.start();
  submit("3");
  REQUIRE(eventually([&] { return world.journal.ended() == 3; }));
  CHECK(kv.has("lictor/default/rate"));
  ends(check(), 0);
}

TEST_CASE("hosts that share a queue in partitions share its rate_limit") {
  World world;
  const json queue{{"partitions", 4}, {"rate_limit", {{"tasks", 10}, {"per", "5s"}, {"burst", 2}}}};
  const auto first = world.daemon("a", queue, "none");
  const auto second = world.daemon("b", queue, "none");
  REQUIRE(eventually([&] { return world.kv.list(world.root + "default/leader/").size() == 4; }));
  for (int i = 0; i < 200; ++i) world.submit(std::to_string(i), 1000 + i);
  REQUIRE(eventually([&] { return world.journal.runs().size() >= 25; }));
  const std::vector<Run> runs = world.journal.runs();
  // Any 12 in a row: 2 at once, and 10 in 5 s.
  for (std::size_t i = 12; i < runs.size(); ++i) {
    CHECK(seconds_between(runs[i - 12].begin_ns, runs[i].begin_ns) > 4.5);
  }
  CHECK(seconds_between(runs.front().begin_ns, runs[24].begin_ns) < 20.0);
}

}  // namespace
}  // namespace lictor::live
