#include "cli/check.h"

#include "base/clock.h"
#include "base/time_text.h"
#include "client/schedules.h"
#include "cluster/member.h"
#include "harness.h"
#include "model_consul.h"

namespace lictor::cli::test {
namespace {

using nlohmann::json;

constexpr const char* kAllDenied =
    R"({"Results":null,"Errors":[{"OpIndex":0,"What":"Permission denied"},)"
    R"({"OpIndex":2,"What":"Permission denied"},{"OpIndex":3,"What":"Permission denied"},)"
    R"({"OpIndex":4,"What":"Permission denied"},{"OpIndex":5,"What":"Permission denied"},)"
    R"({"OpIndex":6,"What":"Permission denied"},{"OpIndex":7,"What":"Permission denied"},)"
    R"({"OpIndex":8,"What":"Permission denied"}]})";

CheckOptions::Queue queue() {
  return {"q", wire::Layout::under("lictor/", "q"), {}, {"serfHealth"}};
}

// The output of check for the queue. `serves`: for a daemon with this configuration.
std::string checked(net::Transport& consul, bool serves = false,
                    const CheckOptions::Queue& known = queue(), const std::string& node = "node") {
  Store store{consul};
  Report report;
  check_queue(store, known, node, serves, report);
  return report.page().text(false);
}

// The configuration of a daemon with executors for these types.
CheckOptions::Queue queue_of(const std::vector<std::string>& types) {
  CheckOptions::Queue known = queue();
  for (const std::string& type : types) known.options.types[type] = {};
  return known;
}

TEST_CASE("the first failure decides the exit code, warnings do not") {
  Report report;
  report.ok("a", "fine");
  report.warn("b", "so so", "do this");
  CHECK_FALSE(report.first_failure());
  report.fail("c", "bad", "do that", ErrorCode::kPermissionDenied);
  report.fail("d", "worse", "", ErrorCode::kUnavailable);
  CHECK(report.first_failure() == ErrorCode::kPermissionDenied);
  CHECK(report.page().text(false) ==
        "ok    a  fine\n"
        "warn  b  so so\n"
        "         -> do this\n"
        "FAIL  c  bad\n"
        "         -> do that\n"
        "FAIL  d  worse\n");
  CHECK(contains(report.json(), R"("ok": false)"));
}

TEST_CASE("a daemon takes 32 connections at most, and check says what follows for many queues") {
  CHECK(connections_text(1, true) == "the daemon takes at most 20 connections to one Consul agent");
  CHECK(connections_text(4, false) ==
        "the daemon takes at most 30 connections to one Consul agent");
  CHECK(
      connections_text(100, true) ==
      "the daemon takes at most 32 connections to one Consul agent: its 400 blocking queries take "
      "turns on 16, so it sees a new task within about 2s and other changes within about 6s");
}

// A Consul that allows no read and no write.
struct Denying : ModelConsul {
  Denying() {
    refuse = [](const net::Request& request) -> std::optional<http::Response> {
      return request.target.starts_with("/v1/txn") ? reply(409, kAllDenied)
                                                   : reply(403, "Permission denied");
    };
  }
};

TEST_CASE("a token without rights is reported, and little else is asked") {
  Denying consul;
  Store store{consul};
  Report report;
  check_queue(store, queue(), "node", false, report);
  CHECK(report.first_failure() == ErrorCode::kPermissionDenied);
  CHECK(contains(report.page().text(false), "reads nothing; writes nothing"));
  CHECK(consul.asked() <= 12);  // each key, the rights to write, locks, members, dead letters
}

TEST_CASE("the right to sessions is named, too, where the daemon's token lacks all others") {
  Denying consul;
  const std::string text = checked(consul, true, queue(), "");
  CHECK(contains(text, R"(the daemon needs: session "NODE" { policy = "write" })"));
  CHECK(contains(text, R"(agent "NODE" { policy = "read" })"));
}

TEST_CASE("leaders are read from the locks if the members may not be listed") {
  ModelConsul consul;
  consul.refuse = [](const net::Request& request) -> std::optional<http::Response> {
    if (!request.target.starts_with("/v1/kv/lictor/q/members/")) return std::nullopt;
    return reply(403, "Permission denied");
  };
  consul.put("lictor/q/leader", R"({"node":"a"})", consul.join("http://127.0.0.1:1"));
  const std::string text = checked(consul);
  CHECK(contains(text, "ok    q: leader   a leads"));
  CHECK_FALSE(contains(text, "nobody leads"));
}

TEST_CASE("a silent leader is reported before its session ends") {
  ModelConsul consul;
  // Nobody listens on port 1.
  consul.put("lictor/q/leader", R"({"node":"a"})", consul.join("http://127.0.0.1:1"));
  CHECK(contains(checked(consul), "a leads, but its daemon does not answer: "));
}

TEST_CASE("check shows the daemons' findings, and by their executors the types that nobody runs") {
  const json told = json::parse(
      R"({"node": "a", "queues": [{
          "name": "q", "leader": "b", "status": {}, "types": ["Mail"],
          "findings": [{"kind": "overdue", "what": "late", "remedy": "raise"},
                       {"kind": "no_executor", "what": "told by check", "remedy": "x"}]}]})");
  const FakeAdminApi api{[&](const httpd::Request& request) {
    return json_answer(request.target.starts_with("/v1/queues") ? told.dump() : "ok");
  }};
  ModelConsul consul;
  consul.put("lictor/q/leader", R"({"node":"a"})", consul.join(api.url()));
  consul.put("lictor/q/tasks/1", R"({"taskType":"Odd"})");
  consul.put("lictor/q/tasks/2", R"({"taskType":"Mail"})");
  consul.put("lictor/q/tasks/5",
             R"({"taskType":"Mail","taskAttempt":1,"taskError":"exit status 7"})");
  for (const char* id : {"lictor/q/dead/3", "lictor/q/dead/4"}) {
    consul.put(id, R"({"record":{"taskType":"Mail"},"reason":"failed","error":"exit status 1"})");
  }
  const std::string text = checked(consul);
  CHECK(missing_in(text, {"q: daemons", "late\n", "-> raise\n"}) == "");
  CHECK_FALSE(contains(text, "told by check"));
  CHECK(contains(text, R"(1 task of a type without an executor on b: "Odd" (1))"));
  CHECK(contains(text, "2 dead letters: 2 of Mail: exit status 1"));
  CHECK(contains(text, "1 task failed and will be tried again: 1 of Mail: exit status 7; "));
  // The leader's executors count, not those of the file given to the check.
  const std::string with_file = checked(consul, true, queue_of({"Odd"}));
  CHECK(contains(with_file, R"(without an executor on b: "Odd" (1))"));
  CHECK(contains(with_file, R"(b lacks what this configuration has: "Odd")"));
  CHECK_FALSE(contains(text, "lacks what"));
  CHECK_FALSE(contains(checked(consul, true, queue_of({"Mail"})), "lacks what"));
}

TEST_CASE("check reads the list of members once") {
  const FakeAdminApi api{[](const httpd::Request&) { return json_answer(R"({"queues":[]})"); }};
  ModelConsul consul;
  consul.put("lictor/q/leader", R"({"node":"a"})", consul.join(api.url()));
  std::size_t read = 0;
  consul.refuse = [&](const net::Request& request) -> std::optional<http::Response> {
    if (request.target.starts_with("/v1/kv/lictor/q/members/?recurse")) ++read;
    return std::nullopt;
  };
  CHECK(contains(checked(consul), "a leads"));
  CHECK(read == 1);
}

TEST_CASE("check warns if a daemon refuses the admin token, not if none can be asked") {
  for (const int status : {401, 500}) {
    CAPTURE(status);
    const FakeAdminApi api{[&](const httpd::Request& request) {
      const bool open = !request.target.starts_with("/v1/");
      return httpd::Response{open ? 200 : status, "text/plain", "no", {}};
    }};
    ModelConsul consul;
    consul.join(api.url());
    const std::string text = checked(consul);
    CHECK(contains(text, "their findings cannot be had: a: ") == (status == 401));
    CHECK(contains(text, "no daemon could be asked for its findings") == (status == 500));
  }
}

TEST_CASE("without a leader, check names the members that are up, and switches without effect") {
  const auto seen_at = [](const std::string& seen) {
    ModelConsul consul;
    consul.put("lictor/q/members/a", json{{"node", "a"}, {"seen", seen}}.dump(), consul.session());
    consul.put("lictor/q/control", R"({"pause":true})");
    return checked(consul);
  };
  const std::string text = seen_at(format_rfc3339(wall_now()));
  CHECK(contains(text, "nobody leads this queue, so no task starts\n"));
  CHECK(contains(text, "; if nobody does, read the log of a\n"));
  CHECK(contains(text, R"("pause" is no switch; did you mean "paused"?)"));
  const std::string long_ago = seen_at("2020-01-01T00:00:00Z");
  CHECK(contains(long_ago, "nobody leads this queue, so no task starts\n"));
  CHECK(contains(long_ago, "-> start a daemon"));
}

TEST_CASE("tasks without an executor are reported by type, due or not") {
  ModelConsul consul;
  consul.put("lictor/q/tasks/1", R"({"taskType":"Odd","executeAt":"2999-01-01T00:00:00Z"})");
  consul.put("lictor/q/tasks/2", R"({"taskType":"T"})");
  CheckOptions::Queue known = queue_of({"T"});
  CHECK(contains(checked(consul, true, known),
                 R"(1 task of a type without an executor here, unless a program of your own )"
                 R"(registers it: "Odd" (1))"));
  CHECK_FALSE(
      contains(checked(consul, false, known), "without an executor"));  // no daemon's configuration
  known.options.any_type = core::TypePolicy{};
  CHECK_FALSE(contains(checked(consul, true, known), "without an executor"));
}

TEST_CASE("each schedule that makes no tasks is reported with cause and remedy") {
  ModelConsul consul;
  const auto put = [&](const std::string& name, const std::string& record) {
    consul.put("lictor/q/schedules/" + name, record);
  };
  const std::string task = R"("task":{"taskType":"T"}})";
  put("good", R"({"cron":"0 0 * * *",)" + task);
  const CheckOptions::Queue known = queue_of({"T"});
  CHECK(contains(checked(consul, true, known), "1 schedule\n"));
  put("february", R"({"cron":"0 0 30 2 *",)" + task);
  put("a@b", R"({"every":"1h",)" + task);
  put("wrong/clock", R"({"every":"1h","lastTick":"2999-01-01T00:00:00Z",)" + task);
  put("odd", R"({"every":"1h","task":{"taskType":"Odd"}})");
  put("typo", R"({"every":"1h","overlp":"allow",)" + task);
  const std::string text = checked(consul, true, known);
  CHECK(contains(text, "\"february\": it makes no tasks: cron: never fires"));
  CHECK(contains(text, "-> correct lictor/q/schedules/february, or \"lictor schedule remove"));
  CHECK(contains(text, "\"a@b\": it makes no tasks: its name has \"@\""));
  CHECK(contains(text, "\"wrong/clock\": its lastTick, 2999-01-01T00:00:00Z, is ahead of this"));
  CHECK(
      contains(text, "\"typo\": \"overlp\" is no field of a schedule and has no effect; did you"));
  CHECK(contains(text, "\"odd\": its tasks have the type \"Odd\", without an executor here"));
  CHECK_FALSE(contains(text, "\"good\""));
  CHECK_FALSE(contains(checked(consul, false, known), "\"odd\""));  // no daemon's configuration
  for (int i = 0; i < 20; ++i) put("x" + std::to_string(i), "nonsense");
  CHECK(contains(checked(consul, true, known), "15 more like these"));
}

TEST_CASE("a schedule of the configuration that is not used, or not there, is reported") {
  ModelConsul consul;
  CheckOptions::Queue known = queue_of({"T"});
  const std::string record = R"({"every":"1h","task":{"taskType":"T"}})";
  for (const char* name : {"ours", "taken"}) {
    auto schedule = client::configured_schedule(known.layout, name, record);
    REQUIRE(schedule);
    known.options.schedules.emplace(name, *schedule);
  }
  CHECK(contains(checked(consul, true, known),
                 "\"ours\": the configuration has it, and Consul does not"));
  CHECK_FALSE(contains(checked(consul, false, known), "\"ours\""));  // no daemon's configuration
  consul.put("lictor/q/schedules/ours", *known.options.schedules.at("ours").record);
  consul.put("lictor/q/schedules/taken", record);
  const std::string text = checked(consul, true, known);
  CHECK_FALSE(contains(text, "\"ours\""));
  CHECK(contains(text,
                 "\"taken\": the configuration has a schedule of this name, which is not used: "
                 "another client wrote lictor/q/schedules/taken"));
  CHECK(contains(text, "-> \"lictor schedule remove taken\" lets the leader write"));
}

TEST_CASE("how long a takeover lasts follows from the settings") {
  using namespace std::chrono_literals;
  const std::string text = takeover_text({}, {"serfHealth"}, 5s);
  CHECK(contains(text, "dies, within 1s of the end of its jobs, which have 5s (kill_grace)"));
  CHECK(contains(text, "when it hangs, 5s (hang_timeout) later than that"));
  CHECK(missing_in(text, {"cut off, within 40s to 1m", ", or from 30s on if Consul notices"}) ==
        "");
  CHECK_FALSE(contains(takeover_text({}, {}, 5s), "notices"));
  CHECK(contains(takeover_text({}, {}, 0s), "as when its host is lost, since hang_timeout is 0s"));
}

std::string agent_text(const CheckOptions& options, const std::string& address,
                       const Store::Agent& agent) {
  Report report;
  check_agent(options, address, agent, report);
  return report.page().text(false);
}

TEST_CASE("a version that is too old is named") {
  const auto text = [](const char* version) {
    return agent_text({}, "http://h:8500", Store::Agent{"n", version});
  };
  CHECK(contains(text("1.7.9"), "upgrade Consul to 1.8 or newer"));
  for (const char* good : {"1.8.0", "1.16.1", "1.22.0-dev", "2.1.0", "", "v?"}) {
    CHECK_MESSAGE(text(good).empty(), good);
  }
}

TEST_CASE("an agent that leaves its cluster when it stops is reported with the setting to change") {
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

TEST_CASE("check says what to set for a daemon on a host without a Consul agent") {
  CheckOptions options{.serves = true, .registers = true};
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

TEST_CASE("an agent's own settings show how it stops") {
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

}  // namespace lictor::cli::test
