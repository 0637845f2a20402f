// The admin API, the members, and the output of programs, read from elsewhere.

#include "world.h"

namespace lictor::live {
namespace {

// A program that prints, and goes on until the file is there.
json printing_until(const std::string& file) {
  const std::string script =
      "echo begin; while [ ! -e '" + file + "' ]; do sleep 0.05; done; echo end";
  return {{"executors", {{"Print", {{"exec", {"/bin/sh", "-c", script}}}}}}};
}

void submit_print(World& world, const std::string& id) {
  world.kv.put_json(world.task_key(id), json{{"taskType", "Print"}});
}

TEST_CASE("members name their admin APIs, and those show the leader and whether all is well") {
  World world;
  LictorDaemon a{world.settings_with_admin("a")};
  REQUIRE(eventually([&] { return world.leads(a) && !world.admin_url(a).empty(); }));
  LictorDaemon b{world.settings_with_admin("b")};
  REQUIRE(eventually([&] { return !world.admin_url(b).empty(); }));

  const std::string url = world.admin_url(a);
  CHECK(a.logged(url));
  CHECK(world.kv.get_json(world.leader_key()).at("admin") == url);
  Kv face_a{url};
  Kv face_b{world.admin_url(b)};
  CHECK(face_a.request("GET", "/healthz").status == 200);
  CHECK(face_a.request("GET", "/readyz").status == 200);
  CHECK(face_b.request("GET", "/readyz").status == 200);
  const json status = face_a.request("GET", "/v1/status").json();
  CHECK(status.at("node") == a.node());
  CHECK(status.at("pid") == a.pid());
  CHECK(status.at("queues").at(0).at("role") == "leading");
  CHECK(face_b.request("GET", "/v1/status").json().at("queues").at(0).at("role") == "following");
  CHECK(face_a.request("GET", "/nope").status == 404);
  CHECK(face_a.request("POST", "/v1/status").status == 405);

  const json members = json::parse(ends(lictor(a, {"members", "--json"}), 0)).at("members");
  REQUIRE(members.size() == 2);
  CHECK(members[0].at("node") == a.node());
  CHECK(members[0].at("leads") == true);
  CHECK(members[1].at("node") == b.node());
  CHECK(members[1].at("pid") == b.pid());
  CHECK(members[1].at("leads") == false);
  CHECK(contains(lictor(a, {"members"}).out, "LEADS"));
}

TEST_CASE("a program's output is read with another host's configuration, also while it runs") {
  World world;
  const std::string go = world.folder.file("go");
  LictorDaemon a{world.settings_with_admin("a", printing_until(go))};
  REQUIRE(eventually([&] { return world.leads(a) && !world.admin_url(a).empty(); }));
  LictorDaemon b{world.settings_with_admin("b", printing_until(go))};
  REQUIRE(eventually([&] { return !world.admin_url(b).empty(); }));
  submit_print(world, "x/1");

  const std::string followed = world.folder.file("followed");
  Process follow{{LICTOR_COMMAND, "logs", "x/1", "-f", "--config", b.config_file()}, followed};
  REQUIRE(eventually([&] { return read_text(followed) == "begin\n"; }));
  CHECK(follow.runs());
  CHECK(ends(lictor(b, {"logs", "x/1"}), 0) == "begin\n");
  const json logs = json::parse(lictor(b, {"logs", "x/1", "--json"}).out).at("logs");
  REQUIRE(logs.size() == 1);
  CHECK(logs[0].at("node") == a.node());
  CHECK(logs[0].at("running") == true);

  write_text(go, "");
  CHECK(follow.wait() == 0);
  CHECK(read_text(followed) == "begin\nend\n");
  REQUIRE(eventually([&] { return world.all_done(); }));
  // Consul has forgotten the task by now: all members are asked.
  CHECK(lictor(b, {"logs", "x/1"}).out == "begin\nend\n");
  CHECK(lictor(b, {"logs", "x/1", "--attempt", "2"}).exit_code == 3);
  ends(lictor(b, {"logs", "x/1", "--node", b.node()}), 3, {b.node() + ": has none"});
}

TEST_CASE("logs -f follows a task over the death of its leader to its end") {
  World world;
  const std::string go = world.folder.file("go");
  auto a = std::make_unique<LictorDaemon>(world.settings_with_admin("a", printing_until(go)));
  REQUIRE(eventually([&] { return world.leads(*a) && !world.admin_url(*a).empty(); }));
  LictorDaemon b{world.settings_with_admin("b", printing_until(go))};
  REQUIRE(eventually([&] { return world.stands_by(b) && !world.admin_url(b).empty(); }));
  submit_print(world, "1");
  const std::string followed = world.folder.file("followed");
  Process follow{{LICTOR_COMMAND, "logs", "1", "-f", "--config", b.config_file()}, followed};
  REQUIRE(eventually([&] { return read_text(followed) == "begin\n"; }));
  a->kill();
  CHECK(eventually([&] {
    const std::string text = read_text(followed);
    return contains(text, "attempt 2 on " + b.node() + "\nbegin\n");
  }));
  write_text(go, "");
  CHECK(follow.wait() == 0);
  CHECK(read_text(followed).ends_with("begin\nend\n"));
  CHECK(eventually([&] { return world.all_done(); }));
}

TEST_CASE("logs -f goes on with the next attempt, and says how the task ended") {
  World world;
  const json queue{
      {"max_attempts", 2},
      {"backoff", {{"initial", "100ms"}}},
      {"executors",
       {{"Print", {{"exec", {"/bin/sh", "-c", "echo try $LICTOR_ATTEMPT; exit 9"}}}}}}};
  LictorDaemon a{world.settings_with_admin("a", queue)};
  REQUIRE(eventually([&] { return world.leads(a) && !world.admin_url(a).empty(); }));
  submit_print(world, "1");
  ends(lictor(a, {"logs", "1", "-f"}), 0, {"try 2\n", "task 1 is dead"});
}

TEST_CASE("a daemon stops at once while its admin API is being asked") {
  World world;
  const std::string go = world.folder.file("go");
  LictorDaemon a{world.settings_with_admin("a", printing_until(go))};
  submit_print(world, "1");
  REQUIRE(eventually([&] { return !world.admin_url(a).empty(); }));
  const std::string out = world.folder.file("out");
  Process follow{{LICTOR_COMMAND, "logs", "1", "-f", "--config", a.config_file()}, out};
  REQUIRE(eventually([&] { return read_text(out) == "begin\n"; }));
  write_text(go, "");
  const std::int64_t stopped_ns = monotonic_ns();
  CHECK(a.stop() == 0);
  CHECK(seconds_between(stopped_ns, monotonic_ns()) < 20.0);
  CHECK(follow.wait() == 0);
  CHECK(read_text(out).starts_with("begin\n"));
}

}  // namespace
}  // namespace lictor::live
