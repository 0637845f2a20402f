#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "base/host_name.h"
#include "cluster/admin_client.h"
#include "harness.h"

namespace lictor::cli::test {
namespace {

using nlohmann::json;

// The answer to a listing of the members: one, held by a session.
std::string listed(const std::string& node, const std::string& value,
                   const std::string& session = "s1") {
  return entry("lictor/q/members/" + node, value, 7, session);
}

// The answer to a look at the number of partitions.
http::Response undivided() { return reply(404, "", 9); }

constexpr const char* kValue =
    R"({"node":"a","host":"host-a","pid":12,"admin":["http://127.0.0.1:8642"],"version":"1.0",)"
    R"("since":"2026-11-21T02:32:30.949Z","seen":"2026-11-21T02:35:00Z"})";

cluster::Member with_admin(std::vector<std::string> admin) {
  return {"a", "host-a", "12", "1.0", std::move(admin), {}, false};
}

}  // namespace

TEST_CASE("members marks the leader") {
  Scene scene{{undivided(), reply(200, entry("lictor/q/leader", R"({"node":"a"})", 7, "s2"), 9),
               reply(200, listed("a", kValue), 9), reply(404, "", 9)},
              true};
  CHECK(scene.run("members") == 0);
  const json document = json::parse(scene.out());
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
  const std::string value = R"({"node":"a","host":")" + host_name() +
                            R"(","admin":["http://127.0.0.1:1"],"seen":"2026-11-21T02:35:00Z"})";
  for (const bool as_json : {true, false}) {
    Scene scene{
        {undivided(), reply(404, "", 9), reply(200, listed("a", value), 9), reply(404, "", 9)},
        as_json};
    CHECK(scene.run("members") == 0);
    if (as_json) {
      CHECK(json::parse(scene.out())["members"][0]["answers"] == false);
    } else {
      CHECK(contains(scene.out(), "ANSWERS"));
      CHECK(contains(scene.out(), " no"));
    }
  }
}

TEST_CASE("leader reports a leader whose admin API refuses") {
  const std::string value =
      R"({"node":"a","host":")" + host_name() + R"(","admin":["http://127.0.0.1:1"]})";
  for (const bool as_json : {true, false}) {
    Scene scene{
        {undivided(), reply(200, entry("lictor/q/leader", R"({"node":"a"})", 7, "s1"), 9),
         reply(200, listed("a", value), 9), reply(404, "", 9), reply(200, listed("a", value), 9),
         reply(404, "", 9), reply(200, "[]", 9), reply(200, "[]", 9)},
        as_json};
    CHECK(scene.run("leader") == 0);
    const std::string told = as_json ? scene.err().substr(8) : scene.out();
    CHECK(told.starts_with("a leads, but its daemon does not answer: "));
    CHECK(contains(
        told,
        "no other daemon is up (\"lictor run\" starts one); the next one takes over within 1s"));
    if (as_json) {
      CHECK(json::parse(scene.out())["answers"] == false);
    } else {
      CHECK(contains(scene.out(), "answers   no"));
    }
  }
}

TEST_CASE("leader shows the start of leadership and the start of the daemon") {
  const std::string value = R"({"node":"a","started":"2026-11-20T00:00:00Z")";
  const auto told = [](const std::string& stored, bool as_json) {
    Scene scene{{undivided(), reply(200, entry("lictor/q/leader", stored, 7, "s1"), 9),
                 reply(404, "", 9), reply(404, "", 9), reply(200, "[]", 9)},
                as_json};
    CHECK(scene.run("leader") == 0);
    return scene.out();
  };
  const std::string now = value + R"(,"since":"2026-11-21T00:00:00Z"})";
  CHECK(contains(told(now, false), "\ndaemon    started 2026-11-20T00:00:00Z ("));
  CHECK(contains(told(now, false), "\nleads     since 2026-11-21T00:00:00Z ("));
  const json document = json::parse(told(now, true));
  CHECK(document.at("started") == "2026-11-20T00:00:00Z");
  CHECK(document.at("since") == "2026-11-21T00:00:00Z");
  // As whoever wrote the key by hand may leave it out.
  CHECK_FALSE(contains(told(value + "}", false), "leads     "));
}

TEST_CASE("an entry of another version is shown in part, an entry without a session is not") {
  Scene odd{{undivided(), reply(404, "", 9), reply(200, listed("b", "[1]"), 9), reply(404, "", 9)}};
  CHECK(odd.run("members") == 0);
  CHECK(contains(odd.out(), "NODE"));
  CHECK(contains(odd.out(), "b"));
  Scene unheld{
      {undivided(), reply(404, "", 9), reply(200, listed("c", kValue, ""), 9), reply(404, "", 9)}};
  CHECK(unheld.run("members") == 0);
  CHECK(unheld.out().empty());
  CHECK(contains(unheld.err(), "no members in queue \"q\""));
}

TEST_CASE("with a leader, an empty list of members is explained") {
  const auto leader = reply(200, entry("lictor/q/leader", R"({"node":"a"})", 7, "s1"), 9);
  Scene led{{undivided(), leader, reply(404, "", 9), reply(404, "", 9)}};
  CHECK(led.run("members") == 0);
  CHECK(contains(led.err(), "no members in queue \"q\" (lictor/q/members/), though a leads: "));
  CHECK_FALSE(contains(led.err(), "start one"));

  // Nor by who wants to ask its leader.
  std::deque<http::Response> replies(13, reply(404, "", 9));
  replies[0] = reply(200, entry("lictor/q/tasks/7", R"({"taskType":"T"})"), 9);
  // After the dead letters, the history and the number of partitions; and after the pause and that.
  replies[7] = replies[12] = leader;
  Scene asked{std::move(replies)};
  CHECK(asked.run("why 7") == 0);
  CHECK(contains(asked.err(), "the leader, a, is not among the members"));
  CHECK(asked.consul.all_asked());
}

TEST_CASE("a missing right is no empty list") {
  Scene scene{{undivided(), reply(404, "", 9), reply(404, "", 9), reply(403, "Permission denied")}};
  const auto code = scene.run("members");
  REQUIRE_FALSE(code);
  CHECK(code.error().code == ErrorCode::kPermissionDenied);
}

TEST_CASE(
    "a face on the loopback is asked only on its own host, and elsewhere the setting is named") {
  const std::vector<std::string> both{"http://127.0.0.1:1", "unix:///run/l.sock", "http://[::1]:1",
                                      "http://host-a:2"};
  CHECK(cluster::reach_of(with_admin(both), "host-a").addresses == both);
  CHECK(cluster::reach_of(with_admin(both), "host-b").addresses ==
        std::vector<std::string>{"http://host-a:2"});
  const cluster::Reach loopback = cluster::reach_of(with_admin({"http://127.0.0.1:1"}), "host-b");
  CHECK(loopback.addresses.empty());
  CHECK(contains(loopback.why_not, "loopback only"));
  CHECK(contains(loopback.why_not, "admin.listen"));
  CHECK(contains(cluster::reach_of(with_admin({}), "host-a").why_not, "switched off"));
}

}  // namespace lictor::cli::test
