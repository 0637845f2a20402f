// A Consul with ACLs: the policies in consul/ grant what is needed, and no more.

#include <string>

#include <doctest/doctest.h>

#include "guarded_consul.h"
#include "world.h"

namespace lictor::live {
namespace {

using nlohmann::json;

TEST_SUITE_BEGIN("live");

TEST_CASE("a daemon and a producer with the tokens of consul/ can do their work, and no more") {
  GuardedConsul guarded;
  ConsulAgent& consul = guarded.agent;
  Kv& operator_kv = guarded.kv;
  const std::string daemon_token = guarded.make_token_of("daemon");
  const std::string producer_token = guarded.make_token_of("producer");

  World world{consul, "lictor/"};
  const std::string token_file = world.folder.file("token");
  write_secret(token_file, daemon_token);
  DaemonSettings settings = world.settings("a");
  settings.token_file = token_file;
  settings.registers = true;
  LictorDaemon daemon{settings};

  Kv producer{consul.address(), producer_token};
  producer.put_json("lictor/default/tasks/good", json{{"taskType", "Record"}});
  producer.put("lictor/default/tasks/bad", "bad");
  REQUIRE(eventually([&] { return operator_kv.list("lictor/default/tasks/").empty(); }));
  CHECK(world.journal.order() == std::vector<std::string>{"good"});
  CHECK(operator_kv.get_json("lictor/default/dead/bad").value("raw", "") == "bad");
  CHECK(eventually([&] {
    return operator_kv.request("GET", "/v1/agent/services").body.find("\"lictor\"") !=
           std::string::npos;
  }));
  CHECK(eventually([&] { return operator_kv.has("lictor/default/members/" + daemon.node()); }));
  INFO(daemon.log());
  CHECK_FALSE(daemon.logged("Consul refused"));

  // The producer may not touch the lock, nor the dead letters.
  CHECK(producer.request("DELETE", "/v1/kv/lictor/default/leader").status == 403);
  CHECK(producer.request("GET", "/v1/kv/lictor/default/dead/bad").status == 403);

  const std::int64_t stopped_ns = monotonic_ns();
  CHECK(daemon.stop() == 0);
  CHECK(seconds_between(stopped_ns, monotonic_ns()) < 20.0);  // nothing is left to wait for
  CHECK(operator_kv.sessions(daemon.session_name()).empty());
}

TEST_CASE("the lock of a daemon that was killed is given back with the token of its file") {
  GuardedConsul guarded;
  World world{guarded.agent, "lictor/"};
  const std::string token_file = world.folder.file("token");
  const GuardedConsul::Token first =
      guarded.make_token(guarded.make_policy("first", policy_text("daemon", guarded.agent.node())));
  write_secret(token_file, first.secret);
  DaemonSettings settings = world.settings("a");
  settings.token_file = token_file;
  LictorDaemon daemon{settings};
  const auto holder = [&] {
    const auto entry = guarded.kv.get(world.leader_key());
    return entry ? entry->session : "";
  };
  REQUIRE(eventually([&] { return !holder().empty(); }));
  // It is read when it is needed, not when the warden was forked.
  const std::string second = guarded.make_token_of("daemon");
  write_secret(token_file, second);
  guarded.remove(first);
  daemon.kill();
  CHECK(eventually([&] { return guarded.kv.sessions(daemon.session_name()).empty(); }));
  CHECK(holder().empty());
  // The warden's child says so when Consul has answered.
  CHECK(eventually([&] { return daemon.logged("gave back the lock of default"); }));
  CHECK_FALSE(daemon.logged(first.secret));
  CHECK_FALSE(daemon.logged(second));
}

TEST_CASE("a daemon without the right to claim runs nothing, says so, and goes on when it has it") {
  GuardedConsul guarded;
  ConsulAgent& consul = guarded.agent;
  Kv& operator_kv = guarded.kv;
  World world{consul, "lictor/"};
  const std::string token_file = world.folder.file("token");
  write_secret(token_file, guarded.make_token_of("reader"));
  DaemonSettings settings = world.settings("a");
  settings.token_file = token_file;
  LictorDaemon daemon{settings};
  operator_kv.put_json("lictor/default/tasks/1", json{{"taskType", "Record"}});
  REQUIRE(eventually([&] { return daemon.logged("403"); }));
  CHECK(throughout(2s, [&] { return world.journal.runs().empty(); }));
  CHECK(daemon.runs());

  write_secret(token_file, guarded.make_token_of("daemon"));
  REQUIRE(eventually([&] { return operator_kv.list("lictor/default/tasks/").empty(); }));
  CHECK(world.journal.order() == std::vector<std::string>{"1"});
}

TEST_CASE("a daemon that may not write the number of partitions leads on, and says what to grant") {
  GuardedConsul guarded;
  World world{guarded.agent, "lictor/"};
  DaemonSettings settings = world.settings("a");
  settings.token_file = world.folder.file("token");
  write_secret(settings.token_file, guarded.make_token_of("daemon"));
  LictorDaemon daemon{settings};
  const auto session = [&] {
    const auto entry = guarded.kv.get("lictor/default/leader");
    return entry ? entry->session : "";
  };
  REQUIRE(eventually([&] { return !session().empty(); }));
  const std::string before = session();
  daemon.reload({{"partitions", 8}});
  const std::string refused = "this daemon may not change the number of partitions";
  REQUIRE(eventually([&] { return daemon.logged(refused); }));
  INFO(daemon.log());
  CHECK(daemon.logged(R"(key \"lictor/default/partitions\" { policy = \"write\" })"));
  guarded.kv.put_json("lictor/default/tasks/1", json{{"taskType", "Record"}});
  CHECK(eventually([&] { return guarded.kv.list("lictor/default/tasks/").empty(); }));
  CHECK(session() == before);
  // So it does from its start on.
  CHECK(daemon.stop() == 0);
  daemon.start();
  guarded.kv.put_json("lictor/default/tasks/2", json{{"taskType", "Record"}});
  CHECK(eventually([&] { return guarded.kv.list("lictor/default/tasks/").empty(); }));
}

TEST_SUITE_END();

}  // namespace
}  // namespace lictor::live
