// The token is changed while daemons run.
//
// Consul 1.8's behaviour in these tests: a session belongs to its node and to no token. Made with
// one, it is renewed, and its lock used, with any other that has the rights; it outlives the token
// that made it. A deleted token is refused from the next request on (403 "ACL not found"), but a
// blocking query that it has opened goes on to its end. A service in the agent's hands keeps the
// token that it was registered with, until it is registered again.

#include "guarded_consul.h"
#include "world.h"

namespace lictor::live {
namespace {

constexpr int kTasks = 60;

// Two daemons that read one token file, and a list of tasks.
struct Site {
  GuardedConsul consul;
  World world{consul.agent, "lictor/"};
  const std::string policy =
      consul.make_policy("daemon", policy_text("daemon", consul.agent.node()));
  GuardedConsul::Token token = consul.make_token(policy);
  const std::string token_file = world.folder.file("token");
  std::unique_ptr<LictorDaemon> first;
  std::unique_ptr<LictorDaemon> second;
  std::string session;  // that holds the lock

  Site() {
    write_secret(token_file, token.secret);
    first = start("a");
    REQUIRE(eventually([&] { return leader() == first->node(); }));
    second = start("b");
    REQUIRE(eventually([&] { return !consul.kv.sessions(second->session_name()).empty(); }));
    session = lock().session;
    for (int i = 0; i < kTasks; ++i) {
      consul.kv.put_json(world.task_key(std::to_string(100 + i)),
                         json{{"taskType", "Record"}, {"taskPara", {{"sleep", 100}}}});
    }
    REQUIRE(eventually([&] { return world.journal.ended() >= 5; }));
  }

  std::unique_ptr<LictorDaemon> start(const std::string& node) {
    // A lease that outlasts the 5 s between two tries with a token that Consul does not know.
    DaemonSettings settings = world.settings(node, {{"lock_delay", "30s"}});
    settings.token_file = token_file;
    settings.registers = true;
    return std::make_unique<LictorDaemon>(settings);
  }
  KvEntry lock() { return consul.kv.get(world.leader_key()).value_or(KvEntry{}); }
  std::string leader() {
    const KvEntry entry = lock();
    const json value = json::parse(entry.value, nullptr, false);
    return !entry.session.empty() && value.is_object() ? value.value("node", "") : "";
  }
  // Everything is run once, in order, by the first leader, under the same session.
  void check_all_done_once() {
    REQUIRE(eventually([&] { return consul.kv.list(world.root + "default/tasks/").empty(); }));
    std::vector<std::string> expected;
    for (int i = 0; i < kTasks; ++i) expected.push_back(std::to_string(100 + i));
    CHECK(world.journal.order() == expected);
    CHECK(world.journal.ended() == kTasks);
    CHECK(world.journal.overlaps() == std::vector<std::string>{});
    CHECK(consul.kv.list(world.root + "default/dead/").empty());
    CHECK(leader() == first->node());
    CHECK(lock().session == session);
    CHECK_FALSE(first->logged("the lock is lost"));
  }
};

TEST_CASE("tokens are replaced again and again while tasks run, and leader and session stay") {
  Site site;
  for (int i = 0; i < 3; ++i) {
    const GuardedConsul::Token old = site.token;
    site.token = site.consul.make_token(site.policy);
    write_secret(site.token_file, site.token.secret);
    site.consul.remove(old);  // at once, which is sooner than an operator should
    const std::size_t ended = site.world.journal.ended();
    REQUIRE(eventually([&] { return site.world.journal.ended() > ended + 5; }));
  }
  site.check_all_done_once();
}

TEST_CASE("a token that is deleted before its successor exists costs a pause, and no leadership") {
  Site site;
  site.consul.remove(site.token);
  REQUIRE(eventually([&] { return site.first->logged("ACL not found"); }));
  site.token = site.consul.make_token(site.policy);
  write_secret(site.token_file, site.token.secret);
  site.check_all_done_once();
  // The members' entries and the catalog follow.
  CHECK(eventually([&] {
    return site.consul.kv.has("lictor/default/members/" + site.second->node()) &&
           contains(site.consul.kv.request("GET", "/v1/catalog/service/lictor").body,
                    "lictor-" + site.second->node());
  }));
  // The other daemon has the new token, too: it takes over, and works.
  CHECK(site.first->stop() == 0);
  site.consul.kv.put_json(site.world.task_key("last"), json{{"taskType", "Record"}});
  site.world.begun("last");
  CHECK(site.world.journal.run("last")->host == site.second->node());
}

}  // namespace
}  // namespace lictor::live
