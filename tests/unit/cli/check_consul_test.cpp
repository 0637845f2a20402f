#include <deque>
#include <string>
#include <utility>

#include <doctest/doctest.h>

#include "cli/check.h"
#include "harness.h"

namespace lictor::cli {
namespace {

using test::contains;
using test::FakeConsul;
using test::reply;

constexpr const char* kNoSuchKey =
    R"({"Results":null,"Errors":[{"OpIndex":0,"What":"key \"t/~:@\" doesn't exist"}]})";

std::string names_text(std::deque<http::Response> replies) {
  FakeConsul consul{std::move(replies)};
  Store store{consul};
  Report report;
  check_names(store, "t/", report);
  CHECK(consul.all_asked());
  CHECK(consul.asked.front().target == "/v1/kv/t/~%3A%40?consistent");
  return report.page().text(false);
}

TEST_CASE("a name of unusual characters is asked for, by path and then by transaction") {
  CHECK(contains(names_text({reply(404, "", 9)}), "ok    names  Consul takes every name"));
  const std::string refused = names_text(
      {reply(500, "invalid key name, keys should respect the format"), reply(409, kNoSuchKey)});
  CHECK(contains(refused, "ok    names  /v1/kv refuses some names"));
  CHECK(contains(refused, "500 invalid key name"));
  CHECK(contains(names_text({reply(400, "no"), reply(400, "neither")}),
                 "FAIL  names  a read of t/~:@ is answered by 400 no, and a transaction fails: "));
  const std::string elects = R"(500 rpc error making call: No cluster leader)";
  CHECK(contains(names_text({reply(500, elects), reply(500, elects)}),
                 "FAIL  consul  Consul answers no reads now: "));
  CHECK(contains(names_text({reply(404, "<html>nginx</html>")}), "without X-Consul-Index"));
  CHECK(names_text({reply(403, "Permission denied")}).empty());  // check_queue() reports it
}

TEST_CASE("a version with a known fault is named with what it does") {
  const auto says = [](const char* version, bool is_server, const char* part) {
    std::string text;
    for (const Fault& fault : version_faults(version, is_server)) text += fault.what + fault.remedy;
    return contains(text, part);
  };
  CHECK(says("1.7.9", false, "1.8 or newer"));
  CHECK(says("1.12.1", false, "after 7s"));
  CHECK_FALSE(says("1.12.1", true, "after 7s"));
  CHECK(says("1.11.9", false, "after 7s"));
  CHECK(says("1.11.2", true, "twice"));
  CHECK(says("1.12.2+ent", true, "twice"));
  CHECK(says("1.15.0", true, "100 times"));
  for (const char* good : {"1.8.0", "1.8.7", "1.10.12", "1.11.1", "1.11.7", "1.11.10", "1.12.3",
                           "1.15.3", "1.16.1", "1.22.0-dev", "2.1.0", "", "v?"}) {
    CAPTURE(std::string{good});
    CHECK(version_faults(good, false).empty());
  }
}

std::string agent_text(const CheckOptions& options, const std::string& address,
                       const Store::Agent& agent) {
  Report report;
  check_agent(options, address, agent, report);
  return report.page().text(false);
}

TEST_CASE("an agent that leaves its cluster when it stops is told, with what to set") {
  CheckOptions options;
  Store::Agent agent{"host-a", "1.16.1"};
  agent.leaves_on_term = true;
  CHECK(agent_text(options, "http://127.0.0.1:8500", agent).empty());  // no daemon's
  options.serves = true;
  const std::string text = agent_text(options, "http://127.0.0.1:8500", agent);
  CHECK(contains(text, "warn  agent  when the Consul agent host-a is stopped or restarted"));
  CHECK(contains(text, R"(set "leave_on_terminate": false in)"));
  CHECK_FALSE(contains(text, "skip_leave"));
  agent.leaves_on_interrupt = true;
  CHECK(contains(agent_text(options, "http://127.0.0.1:8500", agent),
                 R"("leave_on_terminate": false and "skip_leave_on_interrupt": true)"));
}

TEST_CASE("what a daemon of a host without a Consul agent has to set is told") {
  CheckOptions options;
  options.serves = true;
  options.registers = true;
  options.queues.push_back({"q", wire::Layout::under("lictor/", "q"), {}, {"serfHealth"}, {}});
  Store::Agent agent{"server-1", "1.16.1"};
  agent.is_server = true;
  for (const char* local : {"http://127.0.0.1:8500", "127.0.0.2:8500", "https://localhost:8501",
                            "http://[::1]:8500", "unix:///run/consul.sock"}) {
    CHECK_MESSAGE(agent_text(options, local, agent).empty(), local);
  }
  const std::string address = "http://consul-server:8500";
  const std::string text = agent_text(options, address, agent);
  CHECK(contains(text, "warn  agent  http://consul-server:8500 is a Consul server (server-1)"));
  CHECK(contains(text, R"(set "session_checks": [] in each queue, "register": false)"));
  options.queues[0].session_checks.clear();
  options.registers = false;
  CHECK(contains(agent_text(options, address, agent), "ok    agent  "));
  agent.is_server = false;
  CHECK(agent_text(options, address, agent).empty());
}

TEST_CASE("how an agent stops is read from what it says of itself") {
  FakeConsul consul{{reply(200, R"({"Config":{"NodeName":"n","Version":"1.16.1","Server":false},)"
                                R"("DebugConfig":{"LeaveOnTerm":true,"SkipLeaveOnInt":false}})"),
                     reply(200, R"({"Config":{"NodeName":"n","Version":"1.8.7","Server":true},)"
                                R"("DebugConfig":{"LeaveOnTerm":false,"SkipLeaveOnInt":true}})"),
                     reply(200, R"({"Config":{"NodeName":"n"},"DebugConfig":null})")}};
  Store store{consul};
  const auto client = store.agent().value();
  CHECK_FALSE(client.is_server);
  CHECK(client.leaves_on_term);
  CHECK(client.leaves_on_interrupt);
  for (const bool is_server : {true, false}) {
    const auto other = store.agent().value();
    CHECK(other.is_server == is_server);
    CHECK_FALSE(other.leaves_on_term);
    CHECK_FALSE(other.leaves_on_interrupt);
  }
}

}  // namespace
}  // namespace lictor::cli
