#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "cluster/admin_client.h"
#include "harness.h"
#include "model_consul.h"

namespace lictor::cli::test {
namespace {

using nlohmann::json;

constexpr const char* kValue =
    R"({"node":"a","host":"host-a","pid":12,"admin":["http://127.0.0.1:8642"],"version":"1.0",)"
    R"("since":"2026-11-21T02:32:30.949Z","seen":"2026-11-21T02:35:00Z"})";

cluster::Member with_admin(std::vector<std::string> admin) {
  return {"a", "host-a", "12", "1.0", std::move(admin), {}, false};
}

}  // namespace

TEST_CASE("members marks the leader") {
  ModelConsul consul;
  const std::string session = consul.session();
  consul.put("lictor/q/members/a", kValue, session);
  consul.put("lictor/q/leader", R"({"node":"a"})", session);
  Stage stage{consul, true};
  CHECK(stage.run("members") == 0);
  const json document = json::parse(stage.out());
  CHECK(document["partitions"] == 1);
  CHECK(document["free"] == json::array());
  const json told = document["members"];
  REQUIRE(told.size() == 1);
  CHECK(told[0] == json{{"node", "a"},
                        {"host", "host-a"},
                        {"pid", 12},
                        {"version", "1.0"},
                        {"admin", {"http://127.0.0.1:8642"}},
                        {"since", "2026-11-21T02:32:30.949Z"},
                        {"seen", "2026-11-21T02:35:00Z"},
                        {"answers", nullptr},
                        {"leads", true},
                        {"partitions", {0}},
                        {"draining", false}});
}

TEST_CASE("a member of this host whose admin API refuses is marked, long before its session ends") {
  ModelConsul consul;
  consul.join("http://127.0.0.1:1");
  Stage document{consul, true};
  CHECK(document.run("members") == 0);
  CHECK(json::parse(document.out())["members"][0]["answers"] == false);
  Stage table{consul};
  CHECK(table.run("members") == 0);
  CHECK(contains(table.out(), "ANSWERS"));
  CHECK(contains(table.out(), " no"));
}

TEST_CASE("leader shows the start of leadership and the start of the daemon") {
  ModelConsul consul;
  const std::string session = consul.session();
  const auto shown = [&](const std::string& since, bool as_json) {
    consul.put("lictor/q/leader", R"({"node":"a","started":"2026-11-20T00:00:00Z")" + since + "}",
               session);
    Stage stage{consul, as_json};
    CHECK(stage.run("leader") == 0);
    return stage.out();
  };
  const std::string since = R"(,"since":"2026-11-21T00:00:00Z")";
  CHECK(contains(shown(since, false), "\ndaemon    started 2026-11-20T00:00:00Z ("));
  CHECK(contains(shown(since, false), "\nleads     since 2026-11-21T00:00:00Z ("));
  const json document = json::parse(shown(since, true));
  CHECK(document.at("started") == "2026-11-20T00:00:00Z");
  CHECK(document.at("since") == "2026-11-21T00:00:00Z");
  // As whoever wrote the key by hand may leave it out.
  CHECK_FALSE(contains(shown("", false), "leads     "));
}

TEST_CASE("an entry of another version is shown in part, an entry without a session is not") {
  ModelConsul consul;
  consul.put("lictor/q/members/b", kValue);
  Stage unheld{consul};
  CHECK(unheld.run("members") == 0);
  CHECK(unheld.out().empty());
  CHECK(contains(unheld.err(), "no members in queue \"q\""));
  consul.put("lictor/q/members/b", "[1]", consul.session());
  Stage odd{consul};
  CHECK(odd.run("members") == 0);
  CHECK(contains(odd.out(), "NODE"));
  CHECK(contains(odd.out(), "b"));
}

TEST_CASE("with a leader, an empty list of members is explained") {
  ModelConsul consul;
  consul.put("lictor/q/leader", R"({"node":"a"})", consul.session());
  consul.put("lictor/q/tasks/7", R"({"taskType":"T"})");
  Stage led{consul};
  CHECK(led.run("members") == 0);
  CHECK(contains(led.err(), "no members in queue \"q\" (lictor/q/members/), though a leads: "));
  CHECK_FALSE(contains(led.err(), "start one"));
  // Also to who asks its leader.
  Stage asked{consul};
  CHECK(asked.run("why 7") == 0);
  CHECK(contains(asked.err(), "the leader, a, is not among the members"));
}

TEST_CASE("a missing right is no empty list") {
  ModelConsul consul;
  consul.refuse = [](const net::Request& request) -> std::optional<http::Response> {
    if (!contains(request.target, "/members/")) return std::nullopt;
    return reply(contains(request.target, "recurse") ? 404 : 403, "Permission denied", 9);
  };
  Stage stage{consul};
  const auto code = stage.run("members");
  REQUIRE_FALSE(code);
  CHECK(code.error().code == ErrorCode::kPermissionDenied);
}

TEST_CASE(
    "an admin API on the loopback is asked only on its own host, and elsewhere the setting is "
    "named") {
  const std::vector<std::string> both{"http://127.0.0.1:1", "unix:///run/l.sock", "http://[::1]:1",
                                      "http://host-a:2"};
  CHECK(cluster::reachable_addresses(with_admin(both), "host-a").value() == both);
  CHECK(cluster::reachable_addresses(with_admin(both), "host-b").value() ==
        std::vector<std::string>{"http://host-a:2"});
  const auto why_not = [](std::vector<std::string> admin) {
    return cluster::reachable_addresses(with_admin(std::move(admin)), "host-b").error().message;
  };
  CHECK(contains(why_not({"http://127.0.0.1:1"}), "loopback only; set admin.listen"));
  CHECK(contains(why_not({}), "switched off"));
}

}  // namespace lictor::cli::test
