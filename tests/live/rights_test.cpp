// A Consul with ACLs: the policies in consul/ grant what is needed, and no more.

#include <filesystem>
#include <string>

#include <doctest/doctest.h>

#include "world.h"

namespace lictor::live {
namespace {

using nlohmann::json;

// Makes a policy of consul/policy-<name>.hcl and a token that has it; returns its secret.
std::string make_token(Kv& operator_kv, const std::string& name, const std::string& node) {
  std::string rules = read_text(LICTOR_CONSUL_FOLDER "/policy-" + name + ".hcl");
  for (std::size_t at = 0; (at = rules.find("\"NODE\"", at)) != std::string::npos;) {
    rules.replace(at, 6, '"' + node + '"');
  }
  const HttpAnswer policy =
      operator_kv.request("PUT", "/v1/acl/policy", json{{"Name", name}, {"Rules", rules}}.dump());
  REQUIRE_MESSAGE(policy.status == 200, policy.body);
  const HttpAnswer token = operator_kv.request(
      "PUT", "/v1/acl/token", json{{"Policies", json::array({json{{"Name", name}}})}}.dump());
  REQUIRE_MESSAGE(token.status == 200, token.body);
  return token.json().at("SecretID");
}

void write_secret(const std::string& path, const std::string& secret) {
  write_text(path, "");
  std::filesystem::permissions(
      path, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  write_text(path, secret + "\n");
}

// A Consul that denies by default, and the token of its operator.
struct GuardedConsul {
  ConsulAgent agent{{{"acl", {{"enabled", true}, {"default_policy", "deny"}}}}};
  std::string operator_token = [this] {
    Kv kv{agent.address()};
    HttpAnswer answer;
    REQUIRE(eventually([&] {
      answer = kv.request("PUT", "/v1/acl/bootstrap");
      return answer.status == 200;
    }));
    return answer.json().at("SecretID").get<std::string>();
  }();
};

TEST_SUITE_BEGIN("live");

TEST_CASE("a daemon and a producer with the tokens of consul/ can do their work, and no more") {
  GuardedConsul guarded;
  ConsulAgent& consul = guarded.agent;
  Kv operator_kv{consul.address(), guarded.operator_token};
  const std::string daemon_token = make_token(operator_kv, "daemon", consul.node());
  const std::string producer_token = make_token(operator_kv, "producer", consul.node());

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

TEST_CASE("a daemon without the right to claim runs nothing, says so, and goes on when it has it") {
  GuardedConsul guarded;
  ConsulAgent& consul = guarded.agent;
  Kv operator_kv{consul.address(), guarded.operator_token};
  World world{consul, "lictor/"};
  const std::string token_file = world.folder.file("token");
  write_secret(token_file, make_token(operator_kv, "reader", consul.node()));
  DaemonSettings settings = world.settings("a");
  settings.token_file = token_file;
  LictorDaemon daemon{settings};
  operator_kv.put_json("lictor/default/tasks/1", json{{"taskType", "Record"}});
  CHECK(throughout(2s, [&] { return world.journal.runs().empty(); }));
  CHECK(daemon.runs());
  CHECK(daemon.logged("403"));

  write_secret(token_file, make_token(operator_kv, "daemon", consul.node()));
  REQUIRE(eventually([&] { return operator_kv.list("lictor/default/tasks/").empty(); }));
  CHECK(world.journal.order() == std::vector<std::string>{"1"});
}

TEST_SUITE_END();

}  // namespace
}  // namespace lictor::live
