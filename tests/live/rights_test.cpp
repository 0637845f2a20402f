// A Consul with ACLs: the policies in consul/ grant the needed rights, and no more.

#include <map>

#include "guarded_consul.h"
#include "world.h"

namespace lictor::live {

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
    return contains(operator_kv.request("GET", "/v1/agent/services").body, "\"lictor\"");
  }));
  CHECK(eventually([&] { return operator_kv.has("lictor/default/members/" + daemon.node()); }));
  INFO(daemon.log());
  CHECK_FALSE(daemon.logged("Consul refused"));
  // The producer may touch neither the lock nor the dead letters.
  CHECK(producer.request("DELETE", "/v1/kv/lictor/default/leader").status == 403);
  CHECK(producer.request("GET", "/v1/kv/lictor/default/dead/bad").status == 403);

  const std::int64_t stopped_ns = monotonic_ns();
  CHECK(daemon.stop() == 0);
  CHECK(seconds_between(stopped_ns, monotonic_ns()) < 20.0);  // nothing is left to wait for
  CHECK(operator_kv.sessions(daemon.session_name()).empty());
}

TEST_CASE("the lock of a daemon that was killed is released with the token of its file") {
  GuardedConsul guarded;
  World world{guarded.agent, "lictor/"};
  const std::string token_file = world.folder.file("token");
  const GuardedConsul::Token first =
      guarded.make_token(guarded.make_policy("first", policy_text("daemon", guarded.agent.node())));
  write_secret(token_file, first.secret);
  DaemonSettings settings = world.settings("a");
  settings.token_file = token_file;
  LictorDaemon daemon{settings};
  const auto holder = [&] { return guarded.kv.holder(world.leader_key()); };
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

TEST_CASE("a daemon that may not write the number of partitions leads on, and says what to grant") {
  GuardedConsul guarded;
  World world{guarded.agent, "lictor/"};
  DaemonSettings settings = world.settings("a");
  settings.token_file = world.folder.file("token");
  write_secret(settings.token_file, guarded.make_token_of("daemon"));
  LictorDaemon daemon{settings};
  const auto session = [&] { return guarded.kv.holder(world.leader_key()); };
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
  // The daemon does so from its start on.
  CHECK(daemon.stop() == 0);
  daemon.start();
  guarded.kv.put_json("lictor/default/tasks/2", json{{"taskType", "Record"}});
  CHECK(eventually([&] { return guarded.kv.list("lictor/default/tasks/").empty(); }));
}

TEST_CASE("the token is in no job, log, answer or key") {
  GuardedConsul consul;
  World world{consul.agent, "lictor/"};
  const std::string seen = world.folder.file("seen");  // the job's environment
  const std::string secret = consul.make_token_of("daemon");
  const std::string admin = "http://127.0.0.1:" + std::to_string(free_port());
  DaemonSettings settings = world.settings("a");
  settings.queue["executors"] = {
      {"*",
       {{"exec", {"/bin/sh", "-c", R"(cp /proc/$$/environ "$0.new" && mv "$0.new" "$0")", seen}}}}};
  settings.environment = {{"CONSUL_HTTP_TOKEN", secret}, {"LICTOR_LOG_LEVEL", "trace"}};
  settings.registers = true;
  settings.admin = {admin.substr(7)};
  LictorDaemon daemon{settings};
  consul.kv.put_json("lictor/default/tasks/1", json{{"taskType", "Any"}});
  consul.kv.put("lictor/default/tasks/bad", "bad");
  REQUIRE(eventually([&] {
    return !read_text(seen).empty() && consul.kv.list("lictor/default/tasks/").empty() &&
           consul.kv.has("lictor/default/members/" + daemon.node());
  }));

  CHECK_FALSE(contains(read_text(seen), "CONSUL_"));
  std::map<std::string, std::string> texts{{"log", daemon.log()}, {"job", read_text(seen)}};
  for (const KvEntry& entry : consul.kv.list("")) texts["key " + entry.key] = entry.value;
  Kv api{admin};
  for (const char* path : {"/v1/status", "/healthz", "/readyz", "/v1/tasks/1/why?queue=default",
                           "/v1/logs?queue=default&id=1"}) {
    const HttpAnswer answer = api.request("GET", path);
    CHECK(answer.status != 0);
    texts[path] = answer.body;
  }
  for (const char* command : {"check", "leader", "members", "list", "version"}) {
    const std::vector<std::string> line{LICTOR_COMMAND, "--config", daemon.config_file(), command,
                                        "--json"};
    const Output output = run(line, {{"CONSUL_HTTP_TOKEN", secret}});
    CHECK_MESSAGE(output.exit_code == 0, command << ": " << output.out);
    texts[command] = output.out;
  }
  for (const auto& [where, text] : texts) {
    CHECK_FALSE(text.empty());
    CHECK_MESSAGE(!contains(text, secret), where);
  }
}

}  // namespace lictor::live
