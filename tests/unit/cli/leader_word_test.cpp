// What the leader knows and Consul does not, and what is said of a leader that does not answer.

#include <atomic>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/time_text.h"
#include "harness.h"
#include "model_consul.h"
#include "unit/refusal.h"

namespace lictor::cli::test {
namespace {

using nlohmann::json;

// A queue that "a" leads, whose admin API is at `url`: task 7 was rewritten, task 8 was not.
void fill(ModelConsul& consul, const std::string& url) {
  consul.put("lictor/q/leader", R"({"node":"a"})", consul.join(url));
  consul.put("lictor/q/tasks/7", R"({"taskType":"old"})");
  consul.put("lictor/q/tasks/7", R"({"taskType":"new"})");
  consul.put("lictor/q/tasks/8", R"({"taskType":"T"})");
  consul.put("lictor/q/dead/9", R"({"reason":"failed","record":{}})");
}

json listed(ModelConsul& consul, const std::string& state) {
  Stage stage{consul, true};
  REQUIRE(stage.run(state.empty() ? "list" : "list --state " + state) == 0);
  CHECK(stage.err().empty());
  return json::parse(stage.out()).at("tasks");
}

}  // namespace

TEST_CASE("list, show and why report a task that was rewritten while it runs as running") {
  std::atomic<int> asked = 0;
  const Face face{[&](const httpd::Request& request) {
    ++asked;
    const bool runs = request.url.path == "/v1/tasks/7/why";
    return json_answer(runs ? R"([{"reason":"running","text":"it is running, attempt 1"}])"
                            : R"([{"reason":"behind","text":"it is behind task 7"}])");
  }};
  ModelConsul consul;
  fill(consul, face.url());
  const json all = listed(consul, "");
  REQUIRE(all.size() == 3);
  CHECK(all[0].at("id") == "7");
  CHECK(all[0].at("state") == "running");
  CHECK(all[0].at("node") == "a");
  CHECK(all[1].at("state") == "waiting");
  CHECK(asked == 1);  // of task 8 there is nothing to ask
  REQUIRE(listed(consul, "running").size() == 1);
  CHECK(listed(consul, "running")[0].at("id") == "7");
  REQUIRE(listed(consul, "waiting").size() == 1);
  CHECK(listed(consul, "waiting")[0].at("id") == "8");

  Stage shown{consul, true};
  REQUIRE(shown.run("show 7") == 0);
  CHECK(json::parse(shown.out()).at("tasks")[0].at("state") == "running");
  Stage asked_why{consul};
  REQUIRE(asked_why.run("why 7") == 0);
  CHECK(asked_why.out() == "task 7: it is running, attempt 1\n");
}

TEST_CASE("leader and why first say that the leader does not answer") {
  ModelConsul consul;
  fill(consul, "http://127.0.0.1:1");
  Stage asked{consul};
  REQUIRE(asked.run("leader") == 0);
  CHECK(asked.out().starts_with("a leads, but its daemon does not answer: "));
  CHECK(contains(asked.out(), "answers   no"));
  CHECK(asked.err().empty());
  Stage as_json{consul, true};
  REQUIRE(as_json.run("leader") == 0);
  CHECK(as_json.err().starts_with("lictor: a leads, but its daemon does not answer: "));
  CHECK(json::parse(as_json.out()).at("answers") == false);

  Stage waits{consul};
  REQUIRE(waits.run("why 8") == 0);
  CHECK(waits.out().starts_with("task 8: a leads, but its daemon does not answer: "));
  CHECK(contains(waits.out(), "127.0.0.1:1"));
  CHECK(contains(waits.out(), "no other daemon is up"));
  CHECK(waits.err().empty());
  Stage document{consul, true};
  REQUIRE(document.run("why 8") == 0);
  CHECK(json::parse(document.out()).at("reasons")[0].at("reason") == "leader_silent");
}

TEST_CASE("leader and why name the members that may lead next") {
  ModelConsul consul;
  fill(consul, "http://127.0.0.1:1");
  const auto add = [&](const std::string& node, WallTime seen) {
    const json member{{"node", node}, {"seen", format_rfc3339(seen)}};
    consul.put("lictor/q/members/" + node, member.dump(), consul.session());
  };
  const auto told = [&] {
    Stage stage{consul};
    REQUIRE(stage.run("leader") == 0);
    return stage.out();
  };
  consul.put("lictor/q/members/by-hand", R"({"node":"by-hand"})");
  add("silent", wall_now() - std::chrono::hours{1});
  add("b", wall_now());
  CHECK(contains(told(),
                 "cut off; b takes over within 1s of the end of its jobs if only the daemon died"));
  add("c", wall_now());
  CHECK(contains(told(), "cut off; b or c takes over within 1s"));
  Stage waits{consul};
  REQUIRE(waits.run("why 8") == 0);
  CHECK(contains(waits.out(), "b or c takes over within 1s"));
  for (const char* more : {"d", "e", "f", "g"}) add(more, wall_now());
  CHECK(contains(told(), "cut off; b, c, d, e or one of 2 more takes over within 1s"));
}

TEST_CASE("while the lock is free, leader and why name the members that may take it") {
  ModelConsul consul;
  consul.put("lictor/q/leader", R"({"node":"a","lock_delay":"30s"})");
  consul.put("lictor/q/tasks/8", R"({"taskType":"T"})");
  const auto told = [&] {
    Stage stage{consul};
    return refusal_of(stage.run("leader")).message;
  };
  CHECK(contains(told(),
                 "no daemon is up (\"lictor run\" starts one); the next one takes it when the "
                 "lock-delay has passed, within 30s"));
  for (const char* node : {"b", "c"}) {
    consul.put("lictor/q/members/" + std::string{node}, "{}", consul.session());
  }
  consul.join("http://127.0.0.1:1");
  CHECK(contains(told(), "b or c takes it when the lock-delay has passed, within 30s"));
  Stage waits{consul};
  REQUIRE(waits.run("why 8") == 0);
  CHECK(contains(waits.out(), "b or c takes it when the lock-delay has passed"));
}

TEST_CASE("where the leader key was deleted beside daemons that are up, those are named") {
  ModelConsul consul;
  consul.put("lictor/q/members/b", "{}", consul.session());
  Stage stage{consul};
  CHECK(contains(refusal_of(stage.run("leader")).message,
                 "does not exist); b takes it within the lock-delay"));
  Stage paused{consul};
  REQUIRE(paused.run("pause") == 0);
  CHECK_FALSE(contains(paused.err(), "no daemon has ever led"));
}

TEST_CASE("why of a dead letter names commands that exist and can succeed") {
  ModelConsul consul;
  consul.put("lictor/q/dead/9", R"({"reason":"failed","error":"exit status 1","attempts":3,)"
                                R"("record":{"taskType":"T"}})");
  consul.put("lictor/q/dead/bad", R"({"reason":"unreadable","error":"no JSON","raw":"{"})");
  Stage failed{consul};
  REQUIRE(failed.run("why 9") == 0);
  CHECK(contains(failed.out(), "it is a dead letter after 3 attempts: exit status 1"));
  CHECK(
      contains(failed.out(), "\"lictor retry 9\" runs it again; \"lictor dead purge 9\" deletes"));
  consul.put("lictor/q/dead/late", R"({"reason":"expired","error":"expireAt has passed",)"
                                   R"("record":{"taskType":"T","expireAt":1000}})");
  Stage expired{consul};
  REQUIRE(expired.run("why late") == 0);
  CHECK(contains(expired.out(), "\"lictor retry --drop-expiry late\" runs it again"));
  REQUIRE(expired.run("retry late --drop-expiry") == 0);
  expired.client.console.name_queue("q");
  consul.put("lictor/q/dead/of-q", R"({"reason":"failed","record":{"taskType":"T"}})");
  REQUIRE(expired.run("why of-q") == 0);
  CHECK(contains(expired.out(), "\"lictor retry of-q -q q\" runs it again"));
  Stage unreadable{consul};
  REQUIRE(unreadable.run("why bad") == 0);
  CHECK_FALSE(contains(unreadable.out(), "lictor retry"));
  CHECK(
      contains(unreadable.out(), "its producer has to write it again; \"lictor dead purge bad\""));
}

TEST_CASE("stats and events fail as Consul does where it cannot be read") {
  ModelConsul consul;
  consul.faulty = 0;
  consul.fault.error = "no connection";
  Stage stage{consul};
  CHECK(exit_code(refusal_of(stage.run("stats")).code) == 4);
}

}  // namespace lictor::cli::test
