// The read API and the changes, over the model of Consul, checked against the OpenAPI description.

#include <algorithm>
#include <set>

#include "base/clock.h"
#include "base/time_text.h"
#include "scene.h"

namespace lictor::admin {
namespace {

using nlohmann::json;

// Why `value` does not fit the schema; empty: it does. Knows the parts of JSON Schema that
// openapi.json uses. `open`: the schema is a part of an allOf, so that others describe the rest.
std::string misfit(const json& document, const json& schema, const json& value, bool open = false) {
  if (schema.contains("$ref")) {
    const std::string name = schema["$ref"];
    return misfit(document, document.at(json::json_pointer{name.substr(1)}), value, open);
  }
  for (const json& each : schema.value("allOf", json::array())) {
    if (auto why = misfit(document, each, value, true); !why.empty()) return why;
  }
  if (schema.contains("anyOf")) {
    const bool one = std::any_of(schema["anyOf"].begin(), schema["anyOf"].end(),
                                 [&](const json& s) { return misfit(document, s, value).empty(); });
    return one ? "" : value.dump() + " fits none of anyOf";
  }
  if (schema.contains("enum")) {
    const bool known = std::count(schema["enum"].begin(), schema["enum"].end(), value) != 0;
    if (!known) return value.dump() + " is not one of " + schema["enum"].dump();
  }
  if (schema.contains("type")) {
    const json types = schema["type"].is_array() ? schema["type"] : json::array({schema["type"]});
    const char* type = value.is_object()           ? "object"
                       : value.is_array()          ? "array"
                       : value.is_string()         ? "string"
                       : value.is_boolean()        ? "boolean"
                       : value.is_null()           ? "null"
                       : value.is_number_integer() ? "integer"
                                                   : "number";
    if (std::count(types.begin(), types.end(), type) == 0) {
      return value.dump() + " is not of type " + types.dump();
    }
  }
  if (schema.value("format", "") == "date-time" && value.is_string() &&
      !parse_rfc3339(value.get<std::string>())) {
    return value.dump() + " is no RFC 3339 time";
  }
  if (value.is_array() && schema.contains("items")) {
    for (const json& each : value) {
      if (auto why = misfit(document, schema["items"], each); !why.empty()) return why;
    }
  }
  if (!value.is_object()) return {};
  for (const json& name : schema.value("required", json::array())) {
    if (!value.contains(name.get<std::string>()))
      return "no " + name.dump() + " in " + value.dump();
  }
  const json properties = schema.value("properties", json::object());
  for (const auto& [name, member] : value.items()) {
    const json* inner = properties.contains(name)                 ? &properties[name]
                        : schema.contains("additionalProperties") ? &schema["additionalProperties"]
                                                                  : nullptr;
    if (inner == nullptr) {
      if (!open && !properties.empty()) return name + " is not described";
      continue;
    }
    if (auto why = misfit(document, *inner, member); !why.empty()) return name + ": " + why;
  }
  return {};
}

// "/v1/tasks/{id}/why" as the router writes it: "/v1/tasks/*/why".
std::string pattern_of(std::string path) {
  const std::size_t begin = path.find('{');
  if (begin != std::string::npos) path.replace(begin, path.find('}') + 1 - begin, "*");
  return path;
}

}  // namespace

TEST_CASE("tasks are listed in the order in which they start, with counts by state and type") {
  Scene scene;
  scene.task("late", R"({"taskType":"Mail","executeAt":"2999-01-01T00:00:00Z"})");
  scene.task("second", R"({"taskType":"Mail","taskTime":20})");
  scene.task("first", R"({"taskType":"Report","taskTime":10})");
  scene.letter("gone", "Mail", "exit status 1");
  const json page = scene.read("/v1/tasks?queue=q");
  CHECK(ids_of(page) == std::vector<std::string>{"first", "second", "late"});
  CHECK(page["counts"] == json{{"waiting", 2}, {"scheduled", 1}, {"dead", 1}});
  CHECK(page["types"] == json{{"Mail", 2}, {"Report", 1}});
  CHECK(page["found"] == 3);
  CHECK(page["next"].is_null());
  CHECK(ids_of(scene.read("/v1/tasks?queue=q&state=scheduled")) ==
        std::vector<std::string>{"late"});
  CHECK(ids_of(scene.read("/v1/tasks?queue=q&type=Report")) == std::vector<std::string>{"first"});
  CHECK(ids_of(scene.read("/v1/tasks?queue=q&text=SECO")) == std::vector<std::string>{"second"});
  CHECK(ids_of(scene.read("/v1/tasks?queue=q&state=dead")) == std::vector<std::string>{"gone"});
}

TEST_CASE("the history is listed by the time of the end, done and cancelled tasks alike") {
  Scene scene;
  const auto keep = [&](const std::string& id, const std::string& hour, const std::string& by) {
    json entry{{"taskType", "T"}, {"at", "2026-01-01T" + hour + ":00:00Z"}, {"cancelled_by", by}};
    scene.consul.put("lictor/q/done/" + id, entry.dump());
  };
  keep("early", "10", "");
  keep("cancelled", "11", "ops");
  keep("late", "12", "");
  CHECK(ids_of(scene.read("/v1/done?queue=q")) ==
        std::vector<std::string>{"late", "cancelled", "early"});
}

TEST_CASE("pages follow each other without a gap, also when the last task shown is gone") {
  Scene scene;
  std::vector<std::string> all;
  for (int i = 0; i < 25; ++i) {
    all.push_back("task-" + std::to_string(10 + i));
    scene.task(all.back(), R"({"taskType":"T","taskTime":)" + std::to_string(i / 3) + "}");
  }
  std::vector<std::string> seen;
  std::string cursor;
  for (int pages = 0; pages < 10; ++pages) {
    const json page = scene.read("/v1/tasks?queue=q&limit=4&cursor=" + wire::query_value(cursor));
    CHECK(page["found"] == 25);
    for (std::string& id : ids_of(page)) seen.push_back(std::move(id));
    if (page["next"].is_null()) break;
    cursor = page["next"];
  }
  CHECK(seen == all);
  const std::string after = scene.read("/v1/tasks?queue=q&limit=4")["next"];
  Scene without;  // the last task of that page
  for (const std::string& id : all) {
    const int number = std::stoi(id.substr(5)) - 10;
    if (number != 3) {
      without.task(id, R"({"taskType":"T","taskTime":)" + std::to_string(number / 3) + "}");
    }
  }
  const json next = without.read("/v1/tasks?queue=q&limit=2&cursor=" + wire::query_value(after));
  CHECK(ids_of(next) == std::vector<std::string>{"task-14", "task-15"});
}

TEST_CASE("dead letters are grouped by their error, the newest first in the list") {
  Scene scene;
  for (int i = 0; i < 3; ++i) {
    scene.letter("a" + std::to_string(i), "Mail", "exit status 1",
                 "2026-01-0" + std::to_string(i + 1) + "T00:00:00Z");
  }
  scene.letter("a3", "Mail", "exit status 1: no route to 10.0.0.7");
  scene.letter("a4", "Mail", "exit status 1: no route to 10.0.0.12", "2026-01-02T00:00:00Z");
  scene.letter("b", "Report", "timed out");
  const json page = scene.read("/v1/dead?queue=q");
  REQUIRE(page["groups"].size() == 3);
  check_members(page["groups"][1],
                {{"count", 2}, {"error", "exit status 1: no route to 10.0.0.12"}});
  CHECK(scene.read(
            "/v1/dead?queue=q&error=exit%20status%201:%20no%20route%20to%2010.0.0.1")["found"] ==
        2);
  check_members(page["groups"][0],
                {{"count", 3}, {"error", "exit status 1"}, {"newest", "2026-01-03T00:00:00.000Z"}});
  CHECK(ids_of(page).front() == "a2");
  CHECK(scene.read("/v1/dead?queue=q&error=timed%20out")["found"] == 1);
}

TEST_CASE("tasks that wait for another attempt are grouped by their error") {
  Scene scene;
  for (const char* id : {"a", "b"}) {
    scene.task(id, R"({"taskType":"Mail","taskAttempt":1,"taskRetryAt":"2999-01-01T00:00:00Z",)"
                   R"("taskError":"exit status 1"})");
  }
  scene.task("fine", R"({"taskType":"Mail"})");
  const json groups = scene.read("/v1/tasks?queue=q&limit=1")["groups"];
  REQUIRE(groups.size() == 1);
  check_members(groups[0], {{"count", 2}, {"error", "exit status 1"}});
}

TEST_CASE("a list is read again after a change, and not for every look") {
  Scene scene;
  scene.task("one", R"({"taskType":"T"})");
  CHECK(scene.read("/v1/tasks?queue=q")["found"] == 1);
  const std::size_t asked = scene.consul.asked();
  CHECK(scene.read("/v1/tasks?queue=q")["found"] == 1);
  CHECK(scene.consul.asked() == asked);
}

TEST_CASE("the answer to a wrong question says what was expected") {
  Scene scene;
  const auto wrong = [&](const std::string& target, int status, const std::string& part) {
    const Response response = scene.get(target);
    CAPTURE(response.body);
    CHECK(response.status == status);
    CHECK(contains(response.body, part));
  };
  wrong("/v1/tasks?queue=nope", 404, "one of: q");
  wrong("/v1/tasks?queue=q&state=odd", 400, "state: expected");
  wrong("/v1/tasks?queue=q&limit=0", 400, "limit: expected 1 to 500");
  wrong("/v1/tasks?queue=q&limit=many", 400, "limit: expected 1 to 500");
  wrong("/v1/tasks?queue=q&cursor=1:2", 400, "cursor: expected");
  wrong("/v1/tasks/missing?queue=q", 404, "no task missing");
}

TEST_CASE("a task is submitted, cancelled, and an unknown one is not found") {
  Scene scene;
  const Response sent =
      scene.post("/v1/tasks?queue=q", R"({"taskType":"Mail","taskId":"a/1","taskPara":{"n":1}})");
  CHECK(sent.status == 201);
  CHECK(json::parse(sent.body)["id"] == "a/1");
  CHECK(scene.post("/v1/tasks?queue=q", R"({"taskType":"Mail","taskId":"a/1"})").status == 409);
  CHECK(scene.post("/v1/tasks?queue=q", "no json").status == 400);
  const Response cancelled = scene.post("/v1/tasks/a%2F1/cancel?queue=q");
  CHECK(cancelled.status == 200);
  // Over the loopback a change takes no token, so its answer must not show the task's content.
  CHECK_FALSE(contains(cancelled.body, "taskPara"));
  CHECK(scene.post("/v1/tasks/a%2F1/cancel?queue=q").status == 404);
}

TEST_CASE("dead letters are retried and purged, one or many, but never all by mistake") {
  Scene scene;
  for (const char* id : {"a", "b", "c", "d"}) scene.letter(id, "Mail", "exit status 1");
  scene.letter("other", "Report", "exit status 2");
  CHECK(scene.post("/v1/dead/a/retry?queue=q").status == 200);
  CHECK(scene.post("/v1/dead/b/purge?queue=q").status == 200);
  CHECK(scene.post("/v1/dead/b/purge?queue=q").status == 404);
  const Response all = scene.post("/v1/dead/purge?queue=q", "{}");
  CHECK(all.status == 400);
  CHECK(contains(all.body, "\\\"all\\\": true"));
  CHECK(scene.post("/v1/dead/purge?queue=q", R"({"type":7})").status == 400);
  const json retried =
      json::parse(scene.post("/v1/dead/retry?queue=q", R"({"error":"exit status 1"})").body);
  CHECK(retried == json{{"changed", 2}, {"refused", 0}, {"refusals", json::array()}});
  const json purged = json::parse(scene.post("/v1/dead/purge?queue=q", R"({"all":true})").body);
  CHECK(purged["changed"] == 1);
}

TEST_CASE("a queue is paused and resumed, and its page says by whom") {
  Scene scene;
  CHECK(json::parse(scene.post("/v1/pause?queue=q", R"({"reason":"upgrade"})").body)["changed"] ==
        true);
  const json queue = scene.queue();
  CHECK(queue["paused"]["reason"] == "upgrade");
  CHECK(queue["paused"]["by"].get<std::string>().starts_with("admin API"));
  CHECK(json::parse(scene.post("/v1/resume?queue=q").body)["changed"] == true);
  CHECK(scene.queue()["paused"].is_null());
  CHECK(scene.post("/v1/step-down?queue=q").status == 202);
}

TEST_CASE("findings say what is wrong and what to do") {
  Scene scene;
  QueueStatus& known = scene.backend.known->queues[0];
  CHECK(scene.findings() == "1 task of a type that a has no executor for\n");
  known.states.clear();
  CHECK(scene.findings().empty());
  known.gauges["oldest_due"] = 300;
  CHECK(contains(scene.findings(), "has been due for 5m\n"));
  known.gauges["running"] = 1;
  known.gauges["longest_running"] = 70.981;
  CHECK(contains(scene.findings(), "due for 5m; 1 job runs, the oldest for 71s\n"));
  known.log_error = "cannot write /x: No space left on device";
  CHECK(contains(scene.findings(), "a cannot keep the output of jobs: cannot write /x: No space"));
  known.gauges["lease_left"] = 0.7;
  CHECK(contains(scene.findings(), "the lease of a ends in 700 ms"));
  known.cannot_start = "no space left on device";
  CHECK(contains(scene.findings(), "cannot start jobs: no space left"));
  cluster::Member other{.node = "b", .config = "2", .silence = "was last seen 1 min ago"};
  scene.backend.members.members[0].config = "1";
  scene.backend.members.members.push_back(other);
  CHECK(contains(scene.findings(), "b: was last seen"));
  CHECK_FALSE(contains(scene.findings(), "another configuration"));  // it is dead anyway
  scene.backend.members.members[1].silence.clear();
  CHECK(contains(scene.findings(), "b has another configuration than a\n"));
  auto& peers = scene.backend.members.members;
  peers[0].parts = {{"", "1"}, {"q", "2"}, {"q/Mail", "3"}};
  peers[1].parts = {{"", "1"}, {"q", "9"}};
  peers[1].reload_error = "lictor.json:3: unknown key";
  peers[1].seen = format_rfc3339(wall_now() + std::chrono::seconds{9});
  CHECK(contains(scene.findings(),
                 "b has another configuration than a: the settings of queue q differ; "
                 "executor Mail of queue q is missing\n"));
  CHECK(contains(scene.findings(), "b keeps an older configuration than its file: lictor.json:3"));
  CHECK(contains(scene.findings(), "the clock of b is "));
  known.role = QueueStatus::Role::kDraining;
  CHECK(contains(scene.findings(),
                 "a gives up leadership: it starts no job and waits for 1 running job\n"));
  const auto remedy = [&](const char* kind) {
    return scene.findings_of(kind).at(0)["remedy"].get<std::string>();
  };
  peers[0].silence = "its daemon does not answer";
  CHECK(remedy("leader_silent").starts_with("if it is dead, another daemon takes leadership"));
  peers[0].next = "it may be dead; b takes over in 9 to 14 s";
  CHECK(remedy("leader_silent") == "it may be dead; b takes over in 9 to 14 s");
  scene.backend.members.locks = locks_of({{}});
  CHECK(contains(scene.findings(), "nobody leads"));
  scene.backend.members.next = "last: a; b takes it";
  CHECK(remedy("no_leader") == "last: a; b takes it; if nobody does, read the log of b");
  scene.backend.trouble.what = "Consul has no leader";
  CHECK(contains(scene.findings(), "Consul has no leader"));
  // Unknown is not "nobody".
  CHECK(scene.queue()["fleet_error"] == "Consul has no leader");
  CHECK_FALSE(contains(scene.findings(), "nobody leads"));
}

TEST_CASE("a follower shows the leader's figures, or why it cannot") {
  Scene scene;
  scene.backend.known->queues[0].role = QueueStatus::Role::kFollowing;
  json queue = scene.queue();
  CHECK(queue["status"].is_null());
  CHECK_FALSE(queue.contains("leader_silent"));
  auto& answers = scene.backend.leader_answers;
  answers = {{"b", fail(ErrorCode::kFailed, "b could not be asked")}};
  CHECK(scene.queue()["leader_silent"] == "b could not be asked");
  answers = {{"b", R"({"queues":[{"name":"q","role":"leading","running":4,"types":["Other"]}]})"}};
  queue = scene.queue();
  CHECK(queue["types"] == json::array({"Other"}));  // the leader's: it alone runs tasks
  CHECK(queue["status"]["running"] == 4);
  CHECK(scene.backend.asked == "leaders /v1/queues?relayed=1&queue=q");
  for (const char* odd : {R"("oldest_due_ms":"x")", R"("oldest_due_ms":90000,"running":"4")"}) {
    answers[0].body = R"({"queues":[{"name":"q",)" + std::string{odd} + "}]}";
    queue = scene.queue();
    CHECK(queue["leader_silent"] == "b gave an answer that this version does not know");
  }
  answers[0].body = std::string(100'000, '[');
  CHECK(scene.queue()["status"].is_null());
  // A request from another member makes it ask nobody.
  scene.backend.asked.clear();
  CHECK(scene.read("/v1/queues?relayed=1&queue=q")["queues"][0].is_null());
  CHECK(scene.backend.asked.empty());
}

TEST_CASE("the output of a task comes from the member that ran it") {
  Scene scene;
  scene.backend.member_answers = "its output";
  CHECK(scene.get("/v1/logs?queue=q&id=x&node=b&attempt=2&offset=7").body == "its output");
  CHECK(scene.backend.asked == "b /v1/logs?queue=q&id=x&attempt=2&offset=7");
}

TEST_CASE("a token guards everything except health, metrics and the page's files") {
  Scene scene;
  scene.token = "secret";
  const auto status = [&](const std::string& target, const std::string& authorization,
                          const std::string& local) {
    Request request = make_request("GET", target);
    request.local_address = local;
    if (!authorization.empty()) request.headers["authorization"] = authorization;
    return scene.router->refuse(request).value_or(Response{}).status;
  };
  for (const char* path : {"/v1/tasks", "/v1/tasks/x", "/v1/tasks/x/why", "/v1/dead", "/v1/done",
                           "/v1/logs", "/v1/events", "/v1/schedules", "/v1/schedules/x",
                           "/v1/queues", "/v1/members", "/v1/status"}) {
    CAPTURE(std::string{path});
    CHECK(status(path, "", "127.0.0.1") == 401);
    CHECK(status(path, "Bearer wrong", "127.0.0.1") == 401);
    CHECK(status(path, "Bearer secret", "127.0.0.1") == 200);
    CHECK(status(path, "", "") == 200);  // a unix socket
  }
  for (const char* path :
       {"/", "/app.js", "/manual/", "/v1/openapi.json", "/metrics", "/healthz", "/readyz"}) {
    CHECK(status(path, "", "127.0.0.1") == 200);
  }
}

TEST_CASE("every answer is as the OpenAPI description says, and every path is described") {
  Scene scene;
  const json document = scene.read("/v1/openapi.json");
  scene.task("a/b", R"({"taskType":"Mail","taskTime":20,"serialKey":"s"})");
  scene.task("soon", R"({"taskType":"Mail","executeAt":"2999-01-01T00:00:00Z"})");
  scene.task("odd", "no json");
  scene.letter("gone", "Mail", "exit status 1");
  core::Fact fact{.kind = core::Fact::Kind::kStarted, .key = "lictor/q/tasks/a/b", .attempt = 1};
  scene.events.on_fact("q", fact);

  std::set<std::string> described;
  for (const auto& [path, methods] : document["paths"].items()) {
    for (const auto& [method, ignored] : methods.items()) {
      described.insert(method + ' ' + pattern_of(path));
    }
  }
  const json unknown = json::parse(scene.get("/nope").body);
  for (const json& path : unknown["paths"]) {
    const std::string text = path;
    const bool page = text == "/" || text.starts_with("/manual/") || text.ends_with(".js") ||
                      text.ends_with(".css") || text.ends_with(".svg");
    const bool known = described.contains("get " + text) || described.contains("post " + text);
    CHECK_MESSAGE((page || known), text);
  }
  const auto fits = [&](const std::string& method, const std::string& path,
                        const std::string& target, const std::string& body = {}) {
    CAPTURE(method + ' ' + target);
    std::string verb = method;
    for (char& each : verb) each = static_cast<char>(std::toupper(each));
    Request request = make_request(verb, target);
    request.body = body;
    const Response response = ask(*scene.router, std::move(request));
    const json& responses = document.at("paths").at(path).at(method).at("responses");
    const std::string status = std::to_string(response.status);
    const json& content =
        responses.at(responses.contains(status) ? status : "default").at("content");
    REQUIRE(content.contains("application/json"));
    const std::string why =
        misfit(document, content["application/json"]["schema"], json::parse(response.body));
    CHECK_MESSAGE(why.empty(), why);
    described.erase(method + ' ' + pattern_of(path));
    return response.status;
  };
  const Holder leader{"a", "2026-01-01T00:00:00Z"};
  for (const std::vector<Holder>& leaders : {std::vector{leader}, std::vector{leader, Holder{}}}) {
    scene.backend.members.locks = locks_of(leaders);
    for (const std::string path :
         {"/v1/queues", "/v1/members", "/v1/status", "/v1/tasks", "/v1/dead", "/v1/done"}) {
      CHECK(fits("get", path, path + "?queue=q") == 200);
    }
  }
  CHECK(fits("get", "/v1/tasks", "/v1/tasks?queue=nope") == 404);
  scene.consul.put("lictor/q/done/gone-for-good",
                   R"({"record":{"taskType":"Mail"},"cancelled_by":"me@a","attempts":0})");
  CHECK(fits("get", "/v1/tasks", "/v1/tasks?queue=q&state=done") == 200);
  CHECK(fits("get", "/v1/tasks/{id}", "/v1/tasks/gone-for-good?queue=q") == 200);
  CHECK(fits("get", "/v1/tasks/{id}", "/v1/tasks/gone?queue=q") == 200);
  CHECK(fits("get", "/v1/tasks/{id}", "/v1/tasks/a%2Fb?queue=q") == 200);
  CHECK(fits("get", "/v1/tasks/{id}/why", "/v1/tasks/a/b/why?queue=q") == 200);
  CHECK(fits("get", "/v1/events", "/v1/events?queue=q&format=json") == 200);
  CHECK(fits("get", "/v1/events", "/v1/events?queue=nope") == 404);
  CHECK(fits("get", "/v1/logs", "/v1/logs?queue=q&id=x") == 200);
  CHECK(fits("post", "/v1/tasks", "/v1/tasks?queue=q", R"({"taskType":"Mail","taskId":"n"})") ==
        201);
  CHECK(fits("post", "/v1/tasks/{id}/cancel", "/v1/tasks/n/cancel?queue=q") == 200);
  CHECK(fits("post", "/v1/tasks/cancel", "/v1/tasks/cancel?queue=q", R"({"ids":["n"]})") == 200);
  CHECK(fits("post", "/v1/dead/{id}/retry", "/v1/dead/gone/retry?queue=q") == 200);
  scene.letter("gone2", "Mail", "exit status 1");
  CHECK(fits("post", "/v1/dead/{id}/purge", "/v1/dead/gone2/purge?queue=q") == 200);
  CHECK(fits("post", "/v1/dead/retry", "/v1/dead/retry?queue=q", R"({"all":true})") == 200);
  CHECK(fits("post", "/v1/dead/purge", "/v1/dead/purge?queue=q", R"({"all":true})") == 200);
  scene.schedule("db/nightly", R"({"cron":"30 2 * * *","task":{"taskType":"Mail"}})");
  scene.schedule("odd", "no json");
  CHECK(fits("get", "/v1/schedules", "/v1/schedules?queue=q") == 200);
  const std::string schedule = "/v1/schedules/{name}";
  CHECK(fits("get", schedule, "/v1/schedules/db%2Fnightly?queue=q") == 200);
  CHECK(fits("get", schedule, "/v1/schedules/odd?queue=q") == 200);
  CHECK(fits("post", schedule + "/pause", "/v1/schedules/db/nightly/pause?queue=q") == 200);
  CHECK(fits("post", schedule + "/resume", "/v1/schedules/db/nightly/resume?queue=q") == 200);
  CHECK(fits("post", schedule + "/run", "/v1/schedules/db/nightly/run?queue=q") == 201);
  CHECK(fits("put", schedule, "/v1/schedules/db/nightly?queue=q",
             R"({"every":"1h","task":{"taskType":"Mail"}})") == 200);
  CHECK(fits("delete", schedule, "/v1/schedules/db/nightly?queue=q") == 200);
  CHECK(fits("get", schedule, "/v1/schedules/db/nightly?queue=q") == 404);
  CHECK(fits("post", "/v1/pause", "/v1/pause?queue=q") == 200);
  CHECK(fits("post", "/v1/resume", "/v1/resume?queue=q") == 200);
  CHECK(fits("post", "/v1/step-down", "/v1/step-down?queue=q") == 202);
  for (const char* text : {"get /healthz", "get /readyz", "get /metrics", "get /v1/openapi.json"}) {
    described.erase(text);
  }
  CHECK_MESSAGE(described.empty(), *described.begin());
}

}  // namespace lictor::admin
