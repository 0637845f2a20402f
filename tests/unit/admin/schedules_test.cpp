// The schedules' routes, over the model of Consul.

#include "base/time_text.h"
#include "scene.h"

namespace lictor::admin {
namespace {

using nlohmann::json;

constexpr const char* kNightly =
    R"({"cron":"30 2 * * *","timezone":"Europe/Rome","mine":12345678901234567890123,)"
    R"("task":{"taskType":"Backup","taskPara":{"host":"db7"}}})";
constexpr const char* kHourly =
    R"({"every":"1h","paused":true,"task":{"taskType":"Sync"},"fromConfig":true})";

std::vector<std::string> names_of(const json& page) {
  std::vector<std::string> names;
  for (const json& each : page.at("schedules")) names.push_back(each.at("name"));
  return names;
}

using Names = std::vector<std::string>;

Response remove(Scene& scene, const std::string& target) {
  return ask(*scene.router, make_request("DELETE", target));
}

}  // namespace

TEST_CASE("schedules are listed by name with their states, searched and paged") {
  Scene scene;
  scene.schedule("db/nightly", kNightly);
  scene.schedule("hourly", kHourly);
  scene.schedule("odd", R"({"cron":"61 * * * *","task":{"taskType":"Sync"}})");
  scene.schedule("over", R"({"at":["2020-01-01T00:00:00Z"],"task":{"taskType":"Sync"}})");
  const json page = scene.read("/v1/schedules?queue=q");
  CHECK(names_of(page) == Names{"db/nightly", "hourly", "odd", "over"});
  CHECK(page["counts"] == json{{"active", 1}, {"paused", 1}, {"bad", 1}, {"ended", 1}});
  check_members(page, {{"next", nullptr}, {"hidden", json::array()}});
  const json& nightly = page["schedules"][0];
  check_members(
      nightly,
      json::parse(
          R"({"rule": "30 2 * * *", "timezone": "Europe/Rome", "type": "Backup", "last_tick": null,
          "last": null, "error": null, "from_config": false})"));
  CHECK(parse_rfc3339(nightly["next"].get<std::string>()) > wall_now());
  // It is paused.
  check_members(page["schedules"][1], {{"next", nullptr}, {"from_config", true}});
  CHECK(contains(page["schedules"][2]["error"].get<std::string>(), "cron"));

  CHECK(names_of(scene.read("/v1/schedules?queue=q&state=paused")) == Names{"hourly"});
  CHECK(names_of(scene.read("/v1/schedules?queue=q&state=bad")) == Names{"odd"});
  CHECK(names_of(scene.read("/v1/schedules?queue=q&text=BACKUP")) == Names{"db/nightly"});
  CHECK(names_of(scene.read("/v1/schedules?queue=q&text=30%202")) == Names{"db/nightly"});
  const json first = scene.read("/v1/schedules?queue=q&limit=2");
  CHECK(names_of(first) == Names{"db/nightly", "hourly"});
  CHECK(first["found"] == 4);
  const std::string cursor = wire::query_value(first["next"].get<std::string>());
  const json second = scene.read("/v1/schedules?queue=q&limit=2&cursor=" + cursor);
  CHECK(names_of(second) == Names{"odd", "over"});
  CHECK(second["next"].is_null());
}

// A leader writes lastTick when it first sees a schedule, so that ticks before count as decided.
TEST_CASE("a schedule's last run is that of its last task, also if lastTick differs") {
  Scene scene;
  scene.schedule("new",
                 R"({"every":"1h","lastTick":"2026-01-01T10:00:00Z","task":{"taskType":"T"}})");
  scene.schedule("old", R"({"every":"1h","lastTick":"2026-01-01T10:00:00Z",)"
                        R"("lastTask":"old/20260101T080000Z","task":{"taskType":"T"}})");
  const json page = scene.read("/v1/schedules?queue=q");
  check_members(page["schedules"][0], {{"last", nullptr}, {"last_tick", "2026-01-01T10:00:00Z"}});
  CHECK(page["schedules"][1]["last"] == "2026-01-01T08:00:00Z");
}

TEST_CASE("all clients share one reading of the schedules, also when it fails") {
  Scene scene;
  scene.schedule("nightly", kNightly);
  CHECK(scene.read("/v1/schedules?queue=q")["found"] == 1);
  const std::size_t asked = scene.consul.asked();
  for (int i = 0; i < 50; ++i) {
    static_cast<void>(scene.read("/v1/schedules?queue=q&text=" + std::to_string(i)));
  }
  CHECK(scene.consul.asked() - asked < 25);  // one a second

  Scene away;
  away.consul.faulty = away.consul.asked();
  away.consul.fault.status = 500;
  CHECK(away.get("/v1/schedules?queue=q").status == 503);
  CHECK(away.get("/v1/schedules?queue=q").status == 200);
}

TEST_CASE("a schedule is shown with its record as it was written and its next ticks") {
  Scene scene;
  scene.schedule("db/nightly", kNightly);
  for (const char* target :
       {"/v1/schedules/db%2Fnightly?queue=q", "/v1/schedules/db/nightly?queue=q"}) {
    const json told = scene.read(target);
    CHECK(told["name"] == "db/nightly");
    check_members(told["schedule"], {{"state", "active"}, {"text", kNightly}, {"note", nullptr}});
    CHECK(told["schedule"]["value"]["task"]["taskType"] == "Backup");
    REQUIRE(told["ticks"].size() == 10);
    CHECK(told["ticks"][0]["tick"] == told["schedule"]["next"]);
    CHECK(contains(told["ticks"][0]["local"].get<std::string>(), "T02:30:00+0"));
  }
  scene.schedule("hourly", R"({"every":"1h","overlaps":"skip","task":{"taskType":"Sync"}})");
  const json hourly = scene.read("/v1/schedules/hourly?queue=q");
  CHECK(hourly["ticks"][0]["tick"] == hourly["ticks"][0]["local"]);
  CHECK(contains(hourly["schedule"]["note"].get<std::string>(), "overlap"));
  CHECK(hourly["schedule"]["from_config"] == false);
  scene.schedule("ours", kHourly);
  CHECK(scene.read("/v1/schedules/ours?queue=q")["schedule"]["from_config"] == true);
  scene.schedule("odd", "no json");
  const json odd = scene.read("/v1/schedules/odd?queue=q");
  check_members(odd["schedule"], {{"state", "bad"}, {"raw", "no json"}});
  CHECK(odd["ticks"].empty());
}

TEST_CASE("a schedule is paused and resumed, run and removed") {
  Scene scene;
  scene.schedule("db/nightly", kNightly);
  const auto post = [&](const std::string& change) {
    return scene.post("/v1/schedules/db%2Fnightly/" + change + "?queue=q");
  };
  const auto changed = [&](const std::string& change) {
    const Response response = post(change);
    REQUIRE_MESSAGE(response.status == 200, response.body);
    return json::parse(response.body)["changed"].get<bool>();
  };
  const auto state = [&] {
    return scene.read("/v1/schedules/db/nightly?queue=q")["schedule"]["state"];
  };
  CHECK(changed("pause"));
  CHECK_FALSE(changed("pause"));
  CHECK(state() == "paused");

  const Response run = post("run");
  REQUIRE_MESSAGE(run.status == 201, run.body);
  const std::string id = json::parse(run.body)["id"];
  CHECK(id.starts_with("db/nightly/"));
  const json task = scene.read("/v1/tasks/" + wire::query_value(id) + "?queue=q")["tasks"][0];
  check_members(task, {{"type", "Backup"}, {"state", "waiting"}});
  CHECK(scene.read("/v1/schedules/db/nightly?queue=q")["schedule"]["last_task"] == id);

  CHECK(changed("resume"));
  CHECK(state() == "active");
  CHECK(remove(scene, "/v1/schedules/db%2Fnightly?queue=q").status == 200);
  CHECK(scene.get("/v1/schedules/db/nightly?queue=q").status == 404);
  CHECK(remove(scene, "/v1/schedules/db/nightly?queue=q").status == 404);
  CHECK(scene.get("/v1/tasks/" + wire::query_value(id) + "?queue=q").status == 200);
}

TEST_CASE("a schedule is written: created once, replaced, and refused with the field at fault") {
  Scene scene;
  const auto put = [&](const std::string& target, const std::string& record) {
    Request request = make_request("PUT", target);
    request.body = record;
    return ask(*scene.router, std::move(request));
  };
  const std::string path = "/v1/schedules/db%2Fnightly?queue=q";
  CHECK(put(path + "&create=1", kNightly).status == 200);
  CHECK(scene.read(path)["schedule"]["text"] == kNightly);  // to the byte
  const Response again = put(path + "&create=1", kNightly);
  CHECK(again.status == 409);
  CHECK(contains(again.body, "exists already"));
  CHECK(put(path, R"({"every":"2h","task":{"taskType":"Backup"}})").status == 200);
  CHECK(scene.read(path)["schedule"]["rule"] == "every 2h");
  const Response bad = put(path, R"({"cron":"61 * * * *","task":{"taskType":"Backup"}})");
  CHECK(bad.status == 400);
  CHECK(contains(bad.body, "minute: expected"));
  CHECK(put(path, "no json").status == 400);
  CHECK(put(path, "").status == 400);
  CHECK(scene.read(path)["schedule"]["rule"] == "every 2h");
}

TEST_CASE("an impossible change of a schedule is refused with the reason") {
  Scene scene;
  scene.schedule("odd", R"({"every":"0s","task":{"taskType":"Sync"}})");
  scene.schedule("nightly", kNightly);
  const auto refused = [&](const Response& response, int status, const std::string& part) {
    CAPTURE(response.body);
    CHECK(response.status == status);
    CHECK(contains(response.body, part));
  };
  for (const char* change : {"pause", "resume", "run"}) {
    CAPTURE(std::string{change});
    const std::string name = change;
    refused(scene.post("/v1/schedules/odd/" + name + "?queue=q"), 400, "cannot be read: every");
    refused(scene.post("/v1/schedules/nihgtly/" + name + "?queue=q"), 404,
            "did you mean \\\"nightly\\\"?");
  }
  refused(scene.get("/v1/schedules?queue=q&state=faulty"), 400, "state: expected active");
  refused(scene.get("/v1/schedules?queue=q&limit=501"), 400, "limit: expected 1 to 500");
  refused(scene.get("/v1/schedules?queue=nope"), 404, "one of: q");
  refused(scene.get("/v1/schedules/x?queue=nope"), 404, "one of: q");
  refused(remove(scene, "/v1/schedules/nightly?queue=nope"), 404, "one of: q");
  refused(remove(scene, "/v1/schedules?queue=q"), 405, "takes GET, HEAD");
  CHECK(remove(scene, "/v1/schedules/odd?queue=q").status == 200);  // also one that is bad
}

TEST_CASE("a schedule is changed by nobody without the right, nor by a page of another origin") {
  Scene scene;
  scene.token = "secret";
  scene.schedule("nightly", kNightly);
  for (const auto& [method, path] : {std::pair{"DELETE", ""},
                                     {"PUT", ""},
                                     {"POST", "/pause"},
                                     {"POST", "/resume"},
                                     {"POST", "/run"}}) {
    CAPTURE(std::string{path});
    Request request = make_request(method, "/v1/schedules/nightly" + std::string{path});
    request.headers = {{"host", "localhost"}, {"origin", "http://evil.example"}};
    CHECK(scene.router->refuse(request).value_or(Response{}).status == 403);
    request.headers.erase("origin");
    request.trusted_listener = false;
    CHECK(scene.router->refuse(request).value_or(Response{}).status == 401);
    request.headers["authorization"] = "Bearer secret";
    CHECK_FALSE(scene.router->refuse(request));
  }
  CHECK(scene.read("/v1/schedules/nightly?queue=q")["schedule"]["state"] == "active");
}

}  // namespace lictor::admin
