
#include "base/clock.h"
#include "base/time_text.h"
#include "client/control.h"
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
  const json document = document_of(consul, "members");
  check_members(document, {{"partitions", 1}, {"free", json::array()}});
  const json told = document["members"];
  REQUIRE(told.size() == 1);
  check_members(told[0], json::parse(R"({"node": "a", "host": "host-a", "pid": 12, "version": "1.0",
      "admin": ["http://127.0.0.1:8642"], "since": "2026-11-21T02:32:30.949Z",
      "seen": "2026-11-21T02:35:00Z", "answers": null, "leads": true, "partitions": [0],
      "draining": false, "partitions_wanted": 1, "config": null})"));
}

TEST_CASE("a member of this host whose admin API refuses is marked, long before its session ends") {
  ModelConsul consul;
  consul.join("http://127.0.0.1:1");
  CHECK(document_of(consul, "members")["members"][0]["answers"] == false);
  const Printed table = printed(consul, "members");
  CHECK(missing_in(table.out, {"ANSWERS", " no"}) == "");
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
  check_members(document, {{"started", "2026-11-20T00:00:00Z"}, {"since", "2026-11-21T00:00:00Z"}});
  // A key written by hand may lack the field.
  CHECK_FALSE(contains(shown("", false), "leads     "));
}

TEST_CASE("an entry of another version is shown in part, an entry without a session is not") {
  ModelConsul consul;
  consul.put("lictor/q/members/b", kValue);
  const Printed unheld = printed(consul, "members");
  CHECK(unheld.out.empty());
  CHECK(contains(unheld.err, "no members in queue \"q\""));
  consul.put("lictor/q/members/b", "[1]", consul.session());
  const Printed odd = printed(consul, "members");
  CHECK(missing_in(odd.out, {"NODE", "b"}) == "");
}

TEST_CASE("with a leader, an empty list of members is explained") {
  ModelConsul consul;
  consul.put("lictor/q/leader", R"({"node":"a"})", consul.session());
  consul.put("lictor/q/tasks/7", R"({"taskType":"T"})");
  const Printed led = printed(consul, "members");
  CHECK(contains(led.err, "no members in queue \"q\" (lictor/q/members/), though a leads: "));
  CHECK_FALSE(contains(led.err, "start one"));
  // Also when a command asks its leader.
  CHECK(contains(printed(consul, "why 7").err, "the leader, a, is not among the members"));
}

TEST_CASE("a missing right is no empty list") {
  ModelConsul consul;
  consul.refuse = [](const net::Request& request) -> std::optional<http::Response> {
    if (!contains(request.target, "/members/")) return std::nullopt;
    return reply(contains(request.target, "recurse") ? 404 : 403, "Permission denied", 9);
  };
  CHECK_FALSE(refusal(consul, "members", ErrorCode::kPermissionDenied).empty());
}

TEST_CASE("an admin API on the loopback is asked on its own host; elsewhere the setting is named") {
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

// --- The leader's knowledge beyond Consul, and commands whose leader does not answer

namespace {

// A queue that "a" leads, whose admin API is at `url`: task 7 was rewritten, task 8 was not.
void fill(ModelConsul& consul, const std::string& url) {
  consul.put("lictor/q/leader", R"({"node":"a"})", consul.join(url));
  consul.put("lictor/q/tasks/7", R"({"taskType":"old"})");
  consul.put("lictor/q/tasks/7", R"({"taskType":"new"})");
  consul.put("lictor/q/tasks/8", R"({"taskType":"T"})");
  consul.put("lictor/q/dead/9", R"({"reason":"failed","record":{}})");
}

}  // namespace

TEST_CASE("why asks the leader, also about a task that was rewritten while it runs") {
  const FakeAdminApi api{[](const httpd::Request& request) {
    CHECK(request.url.path == "/v1/tasks/7/why");
    return json_answer(R"([{"reason":"running","text":"it is running, attempt 1"}])");
  }};
  ModelConsul consul;
  fill(consul, api.url());
  CHECK(printed(consul, "why 7").out == "task 7: it is running, attempt 1\n");
}

TEST_CASE("leader and why first say that the leader does not answer") {
  ModelConsul consul;
  fill(consul, "http://127.0.0.1:1");
  const Printed asked = printed(consul, "leader");
  CHECK(asked.out.starts_with("a leads, but its daemon does not answer: "));
  CHECK(contains(asked.out, "answers   no"));
  CHECK(asked.err.empty());
  Stage as_json{consul, true};
  REQUIRE(as_json.run("leader") == 0);
  CHECK(as_json.err().starts_with("lictor: a leads, but its daemon does not answer: "));
  CHECK(json::parse(as_json.out()).at("answers") == false);

  const Printed waits = printed(consul, "why 8");
  CHECK(waits.out.starts_with("task 8: a leads, but its daemon does not answer: "));
  CHECK(missing_in(waits.out, {"127.0.0.1:1", "no other daemon is up"}) == "");
  CHECK(waits.err.empty());
  CHECK(document_of(consul, "why 8").at("reasons")[0].at("reason") == "leader_silent");
}

TEST_CASE("leader and why name the members that may lead next") {
  ModelConsul consul;
  fill(consul, "http://127.0.0.1:1");
  const auto add = [&](const std::string& node, WallTime seen) {
    const json member{{"node", node}, {"seen", format_rfc3339(seen)}};
    consul.put("lictor/q/members/" + node, member.dump(), consul.session());
  };
  const auto told = [&] { return printed(consul, "leader").out; };
  consul.put("lictor/q/members/by-hand", R"({"node":"by-hand"})");
  add("silent", wall_now() - std::chrono::hours{1});
  add("b", wall_now());
  CHECK(contains(told(),
                 "cut off; b takes over within 1s of the end of its jobs if only the daemon died"));
  add("c", wall_now());
  CHECK(contains(told(), "cut off; b or c takes over within 1s"));
  CHECK(contains(printed(consul, "why 8").out, "b or c takes over within 1s"));
  for (const char* more : {"d", "e", "f", "g"}) add(more, wall_now());
  CHECK(contains(told(), "cut off; b, c, d, e or one of 2 more takes over within 1s"));
}

TEST_CASE("while the lock is free, leader and why name the members that may take it") {
  ModelConsul consul;
  consul.put("lictor/q/leader", R"({"node":"a","lock_delay":"30s"})");
  consul.put("lictor/q/tasks/8", R"({"taskType":"T"})");
  const auto told = [&] { return refusal(consul, "leader", ErrorCode::kNotFound); };
  CHECK(contains(told(),
                 "no daemon is up (\"lictor run\" starts one); the next one takes it when the "
                 "lock-delay has passed, within 30s"));
  for (const char* node : {"b", "c"}) {
    consul.put("lictor/q/members/" + std::string{node}, "{}", consul.session());
  }
  consul.join("http://127.0.0.1:1");
  CHECK(contains(told(), "b or c takes it when the lock-delay has passed, within 30s"));
  CHECK(contains(printed(consul, "why 8").out, "b or c takes it when the lock-delay has passed"));
}

TEST_CASE("after the leader key was deleted beside daemons that are up, those are named") {
  ModelConsul consul;
  consul.put("lictor/q/members/b", "{}", consul.session());
  CHECK(contains(refusal(consul, "leader", ErrorCode::kNotFound),
                 "does not exist); b takes it within the lock-delay"));
  CHECK_FALSE(contains(printed(consul, "pause").err, "no daemon has ever led"));
}

TEST_CASE("why of a dead letter names commands that exist and can succeed") {
  ModelConsul consul;
  consul.put("lictor/q/dead/9", R"({"reason":"failed","error":"exit status 1","attempts":3,)"
                                R"("record":{"taskType":"T"}})");
  consul.put("lictor/q/dead/bad", R"({"reason":"unreadable","error":"no JSON","raw":"{"})");
  const Printed failed = printed(consul, "why 9");
  CHECK(contains(failed.out, "it is a dead letter after 3 attempts: exit status 1"));
  CHECK(contains(failed.out, "\"lictor retry 9\" runs it again; \"lictor dead purge 9\" deletes"));
  consul.put("lictor/q/dead/9,7", R"({"reason":"failed","error":"exit status 2","record":{},)"
                                  R"("key":"lictor/q/tasks/9","at":"2026-11-21T00:00:00Z"})");
  CHECK(contains(printed(consul, "why 9").out, "exit status 2"));  // its newest one
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
  const Printed unreadable = printed(consul, "why bad");
  CHECK_FALSE(contains(unreadable.out, "lictor retry"));
  CHECK(contains(unreadable.out, "its producer has to write it again; \"lictor dead purge bad\""));
  consul.put("lictor/q/dead/foreign", "no record of lictor");
  CHECK_FALSE(contains(printed(consul, "why foreign").out, "lictor retry"));
}

// --- Draining

namespace {

constexpr const char* kWish = "lictor/q/members/a/drain";

// A queue of two partitions, which "a" leads, and "b", which leads none.
struct Drained {
  Drained() {
    consul.put("lictor/q/partitions", "2");
    consul.put("lictor/q/members/a", R"({"node":"a"})", a);
    consul.put("lictor/q/members/b", R"({"node":"b"})", b);
    for (const char* key : {"lictor/q/leader/2/0", "lictor/q/leader/2/1"}) {
      consul.put(key, R"({"node":"a"})", a);
    }
  }
  void move_all() {
    for (const char* key : {"lictor/q/leader/2/0", "lictor/q/leader/2/1"}) {
      consul.release(key, a);
      consul.put(key, R"({"node":"b"})", b);
    }
  }
  [[nodiscard]] bool wishes(const std::string& node) {
    Store store{consul};
    return client::is_draining(store, wire::Layout::under("lictor/", "q"), node).value();
  }
  ModelConsul consul;
  const std::string a = consul.session(), b = consul.session();
};

}  // namespace

TEST_CASE("drain writes the request, once, and says what follows; undrain withdraws it") {
  Drained fleet;
  const Printed first = printed(fleet.consul, "drain a");
  CHECK(first.out.starts_with("a is draining: it leads partitions 0-1, which it gives away, "));
  CHECK(contains(first.out, "takes none until \"lictor undrain a\"\njobs that still run after "));
  CHECK(first.err.empty());
  CHECK(fleet.wishes("a"));
  CHECK_FALSE(fleet.wishes("b"));
  CHECK(document_of(fleet.consul, "drain a") == json{{"queue", "q"},
                                                     {"node", "a"},
                                                     {"changed", false},
                                                     {"draining", true},
                                                     {"partitions", {0, 1}}});
  CHECK(printed(fleet.consul, "undrain a").out.starts_with("a takes partitions again: "));
  CHECK_FALSE(fleet.wishes("a"));
  CHECK(document_of(fleet.consul, "undrain a").at("changed") == false);
}

TEST_CASE("drain complains if no other member takes what the host gives away") {
  Drained fleet;
  fleet.consul.put("lictor/q/members/b/drain", "{}");
  CHECK(contains(printed(fleet.consul, "drain a").err,
                 "no other member takes partitions: the tasks of those that a gives"));
}

TEST_CASE("drain --wait ends when the host leads no partition") {
  Drained fleet;
  fleet.consul.on_wait = [&] { fleet.move_all(); };
  CHECK(contains(printed(fleet.consul, "drain a --wait").out, "\na leads no partition\n"));
  CHECK_FALSE(fleet.consul.on_wait);
  // Nothing to wait for.
  CHECK(document_of(fleet.consul, "drain a --wait").at("partitions") == json::array());
}

TEST_CASE("drain --wait fails at its timeout, and when the request is withdrawn") {
  Drained fleet;
  Stage late{fleet.consul, true};
  CHECK(contains(refusal_of(late.run("drain a --wait --wait-timeout 0s"), ErrorCode::kFailed),
                 "a still leads partitions 0-1 after 0s: "));
  CHECK(json::parse(late.out()).at("partitions") == json{0, 1});
  fleet.consul.on_wait = [&] {
    fleet.consul.remove(kWish);
    fleet.consul.put("lictor/q/leader/2/0", R"({"node":"a","more":1})", fleet.a);
  };
  CHECK(contains(refusal(fleet.consul, "drain a --wait", ErrorCode::kConflict), "ended the drain"));
}

TEST_CASE("drain refuses a queue with one partition, an unknown host and a bad name") {
  ModelConsul single;
  single.put("lictor/q/members/a", "{}", single.session());
  CHECK(contains(refusal(single, "drain a", ErrorCode::kInvalid),
                 "use \"lictor leader --step-down\""));

  Drained fleet;
  Stage stage{fleet.consul};
  for (const std::string command : {"drain", "undrain"}) {
    CHECK(contains(refusal_of(stage.run(command + " host"), ErrorCode::kNotFound),
                   "no member host in queue \"q\" (lictor/q/members/); the members are a, b"));
    for (const char* name : {"", "a/drain", "..", "a/"}) {
      CHECK(refusal_of(stage.run_words({command, name})).code == ErrorCode::kInvalid);
    }
  }
  CHECK_FALSE(fleet.wishes("host"));
}

TEST_CASE("undrain also withdraws the request for a host that has left") {
  Drained fleet;
  fleet.consul.put("lictor/q/members/gone/drain", "{}");
  CHECK(contains(printed(fleet.consul, "undrain gone").out, "it is no member now"));
  CHECK_FALSE(fleet.wishes("gone"));
}

TEST_CASE("without the right to write the request, drain names the key") {
  Drained fleet;
  fleet.consul.refuse = [](const net::Request& request) -> std::optional<http::Response> {
    if (request.method != "PUT") return std::nullopt;
    return reply(403, "Permission denied");
  };
  CHECK(contains(refusal(fleet.consul, "drain a", ErrorCode::kPermissionDenied), kWish));
}

}  // namespace lictor::cli::test
