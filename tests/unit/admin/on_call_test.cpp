// Requests of somebody on call to the page, over the model of Consul: many tasks at once, searches,
// figures by type, findings about schedules.

#include <chrono>

#include "base/time_text.h"
#include "scene.h"

namespace lictor::admin {
namespace {

using nlohmann::json;
using Ids = std::vector<std::string>;

json changed(Scene& scene, const std::string& target, const json& body) {
  const Response response = scene.post(target, body.dump());
  REQUIRE_MESSAGE(response.status == 200, response.body);
  return json::parse(response.body);
}

core::Fact fact_of(core::Fact::Kind kind, const std::string& type, std::chrono::milliseconds took) {
  core::Task task;
  task.type = type;
  return {.kind = kind, .took = took, .task = std::make_shared<const core::Task>(task)};
}

}  // namespace

TEST_CASE("chosen tasks are cancelled, chosen dead letters retried or purged, and no others") {
  Scene scene;
  for (const char* id : {"a", "b/c", "d"}) scene.task(id, R"({"taskType":"Mail"})");
  const json cancelled = changed(scene, "/v1/tasks/cancel?queue=q", {{"ids", {"a", "b/c", "no"}}});
  check_members(cancelled, {{"changed", 2}, {"refused", 1}});
  CHECK(cancelled["refusals"][0]["id"] == "no");
  CHECK(ids_of(scene.read("/v1/tasks?queue=q")) == Ids{"d"});

  for (const char* id : {"x", "y", "z"}) scene.letter(id, "Mail", "exit status 1");
  CHECK(changed(scene, "/v1/dead/retry?queue=q", {{"ids", {"x"}}})["changed"] == 1);
  CHECK(changed(scene, "/v1/dead/purge?queue=q", {{"ids", {"y"}}})["changed"] == 1);
  CHECK(scene.read("/v1/tasks/x?queue=q")["tasks"][0]["state"] == "waiting");
  CHECK(scene.get("/v1/tasks/y?queue=q").status == 404);
  CHECK(scene.read("/v1/tasks/z?queue=q")["tasks"][0]["state"] == "dead");

  for (const json& ids : {json("x"), json::array(), json{1}, json(Ids(201, "x"))}) {
    for (const char* path : {"/v1/tasks/cancel", "/v1/dead/retry", "/v1/dead/purge"}) {
      const Response refused =
          scene.post(std::string{path} + "?queue=q", json{{"ids", ids}}.dump());
      CHECK(refused.status == 400);
      CHECK(contains(refused.body, "ids: expected 1 to 200"));
    }
  }
  CHECK(scene.post("/v1/tasks/cancel?queue=q", "{}").status == 400);
}

TEST_CASE("records are searched for a text, in any state") {
  Scene scene;
  scene.task("one", R"({"taskType":"Mail","taskPara":{"to":"Ad\u0061@example.org"}})");
  scene.task("two", R"({"taskType":"Mail","taskPara":{"to":"bob@example.org"}})");
  scene.consul.put("lictor/q/dead/three",
                   R"({"record":{"taskType":"Mail","taskPara":"ada@example.org"},"error":"no"})");
  const auto found = [&](const std::string& query) {
    return ids_of(scene.read(query + "&queue=q&record=ada%40EXAMPLE"));
  };
  CHECK(found("/v1/tasks?limit=9") == Ids{"one"});
  CHECK(found("/v1/dead?limit=9") == Ids{"three"});
  CHECK(found("/v1/done?limit=9").empty());
  CHECK(found("/v1/tasks?type=Report").empty());
  CHECK(scene.get("/v1/tasks?queue=q&record=ad").status == 400);
  // The lists without a search are whole, and other searches are forgotten in their turn.
  CHECK(scene.read("/v1/tasks?queue=q")["found"] == 2);
  for (int i = 0; i < 9; ++i) {
    CHECK(scene.read("/v1/tasks?queue=q&record=nobody" + std::to_string(i))["found"] == 0);
  }
  CHECK(found("/v1/tasks?limit=9") == Ids{"one"});
}

TEST_CASE("the tasks of a schedule are listed, and not those of one with a longer name") {
  Scene scene;
  for (const char* id : {"db/20260101T000000Z", "db/x/20260101T000000Z", "db/other", "db"}) {
    scene.task(id, R"({"taskType":"Mail"})");
  }
  CHECK(ids_of(scene.read("/v1/tasks?queue=q&schedule=db")) == Ids{"db/20260101T000000Z"});
  CHECK(ids_of(scene.read("/v1/tasks?queue=q&schedule=db/x")) == Ids{"db/x/20260101T000000Z"});
}

TEST_CASE("an orphan is counted as a running task and by itself") {
  Scene scene;
  scene.task(
      "lost",
      R"({"taskType":"Mail","taskTaken":true,"taskAttempt":1,"taskClaim":{"node":"b","session":"x",)"
      R"("nonce":"n","since":"2026-01-01T00:00:00Z"}})");
  const json page = scene.read("/v1/tasks?queue=q");
  check_members(page["tasks"].at(0), {{"state", "running"}, {"orphan", true}});
  CHECK(page["counts"] == json{{"running", 1}, {"orphan", 1}});
  CHECK(ids_of(scene.read("/v1/tasks?queue=q&state=orphan")) == Ids{"lost"});
  CHECK(ids_of(scene.read("/v1/tasks?queue=q&state=running")) == Ids{"lost"});
}

TEST_CASE("unreadable dead letters are grouped by the field in error, and purged by it") {
  Scene scene;
  const auto bury = [&](const std::string& id, const std::string& type, const std::string& error) {
    scene.consul.put("lictor/q/dead/" + id, json{{"raw", R"({"taskType":")" + type + R"("})"},
                                                 {"reason", "unreadable"},
                                                 {"error", error}}
                                                .dump());
  };
  const std::string expected = "taskTime: expected seconds since the epoch, got ";
  bury("a", "Mail", expected + "\"soon\"");
  bury("b", "Report", expected + "\"tomorrow\"");
  bury("c", "Mail", "maxAttempts: expected a number, got \"many\"");
  const json page = scene.read("/v1/dead?queue=q");
  REQUIRE(page["groups"].size() == 2);
  const json& group = page["groups"][0];
  check_members(group, {{"count", 2}, {"type", nullptr}, {"reason", "unreadable"}});
  const json purged = changed(scene, "/v1/dead/purge?queue=q",
                              {{"reason", "unreadable"}, {"error", group["error"]}});
  CHECK(purged["changed"] == 2);
}

TEST_CASE("the last hour is counted by the minute") {
  Scene scene;
  core::Fact fact{.kind = core::Fact::Kind::kStarted, .waited = std::chrono::milliseconds{15}};
  scene.activity.on_fact("q", fact);
  fact.kind = core::Fact::Kind::kDone;
  scene.activity.on_fact("q", fact);
  const auto told = scene.activity.json("q");
  CHECK(told["done"].size() == 60);
  CHECK(told["done"].back() == 1);
  CHECK(told["delay_p99_ms"].back() == 20);
  CHECK(told["delay_p50_ms"].front().is_null());
  CHECK(told["last_minute"]["started"] == 1);
  CHECK(scene.activity.json("other")["started"].back() == 0);
}

TEST_CASE("the last hour of each type is shown, merged for several leaders") {
  using Kind = core::Fact::Kind;
  using std::chrono::milliseconds;
  Scene scene;
  scene.activity.on_fact("q", fact_of(Kind::kStarted, "Mail", milliseconds{0}));
  scene.activity.on_fact("q", fact_of(Kind::kDone, "Mail", milliseconds{300}));
  scene.activity.on_fact("q", fact_of(Kind::kDone, "Mail", milliseconds{100}));
  scene.activity.on_fact("q", fact_of(Kind::kFailed, "Mail", milliseconds{9000}));
  scene.activity.on_fact("q", fact_of(Kind::kDead, "Report", milliseconds{0}));
  scene.activity.on_fact("q", fact_of(Kind::kStarted, "Begun", milliseconds{0}));
  const json mail{{"done", 2},   {"failed", 1},    {"dead", 0},
                  {"recent", 3}, {"took_ms", 400}, {"longest_ms", 300}};
  const auto told = scene.queue()["status"]["by_type"];
  CHECK(told["Mail"] == mail);
  CHECK(told["Report"]["dead"] == 1);
  CHECK(told.size() == 2);
  CHECK(scene.activity.by_type("other").empty());
  for (int i = 0; i < 300; ++i) {
    scene.activity.on_fact("q", fact_of(Kind::kDone, "T" + std::to_string(i), milliseconds{1}));
  }
  CHECK(scene.activity.by_type("q").size() == 100);

  using nlohmann::ordered_json;
  const ordered_json a{{"by_type", {{"Mail", mail}}}};
  const ordered_json b{{"by_type", {{"Mail", mail}, {"Report", mail}}}};
  const ordered_json both = cluster::merged({{"a", a}, {"b", b}})["by_type"];
  check_members(both["Mail"], {{"took_ms", 800}, {"longest_ms", 300}});
  CHECK(both["Report"]["done"] == 2);
}

TEST_CASE("a bad schedule, one with a useless field or a type that nobody runs is a finding") {
  Scene scene;
  scene.backend.known->queues[0].types = {"Mail"};
  scene.schedule("bad", R"({"every":"0s","task":{"taskType":"Mail"}})");
  scene.schedule("fine", R"({"every":"1h","task":{"taskType":"Mail"}})");
  scene.schedule("idle", R"({"every":"1h","task":{"taskType":"Rare"}})");
  scene.schedule("odd", R"({"every":"1h","timeZone":"Europe/Rome","task":{"taskType":"Mail"}})");
  const auto faults = scene.findings_of("schedule_fault");
  REQUIRE(faults.size() == 1);
  CHECK(contains(faults[0]["what"], "\"bad\": it makes no tasks: every: expected"));
  const auto notes = scene.findings_of("schedule_note");
  REQUIRE(notes.size() == 2);
  CHECK(
      contains(notes[0]["what"], "\"idle\": its tasks have the type \"Rare\", which nobody runs"));
  CHECK(missing_in(notes[1]["what"], {"\"odd\": ", "timeZone"}) == "");
}

TEST_CASE("Consul's trouble is shown with its beginning") {
  Scene scene;
  CHECK(scene.read("/v1/queues")["consul"].is_null());
  scene.backend.trouble = {"Consul does not answer", *parse_rfc3339("2026-01-01T00:00:00Z"), true};
  for (const char* page : {"/v1/queues", "/v1/status"}) {
    CHECK(scene.read(page)["consul"] == json{{"what", "Consul does not answer"},
                                             {"since", "2026-01-01T00:00:00.000Z"},
                                             {"at_least", true}});
  }
}

TEST_CASE("a member that answers and is not ready is shown with its own reason") {
  Scene scene;
  scene.backend.members.members[0].unready = "Consul refuses the token";
  CHECK(scene.findings_of("member_unready").at(0)["what"] ==
        "a is not ready: Consul refuses the token");
}

TEST_CASE("the list of tasks shows failures, and its commands name the queue") {
  Scene quiet;
  CHECK(quiet.read("/v1/tasks?queue=q")["findings"] == json::array());
  Scene scene;
  scene.letter("x", "Mail", "exit status 1");
  scene.letter("y", "Mail", "exit status 1");
  scene.task("z", R"({"taskType":"Mail","taskAttempt":1,"taskError":"exit status 7"})");
  const json told = scene.read("/v1/tasks?queue=q")["findings"];
  REQUIRE(told.size() == 2);
  check_members(told[0],
                {{"kind", "dead_letters"}, {"what", "2 dead letters: 2 of Mail: exit status 1"}});
  CHECK(contains(told[0]["remedy"].get<std::string>(), "\"lictor retry y -q q\""));
  CHECK(told[1]["kind"] == "failing");
  CHECK(told[1]["what"] == "1 task failed and will be tried again: 1 of Mail: exit status 7");
}

}  // namespace lictor::admin
