// A queue with partitions, as the commands show it.

#include <atomic>
#include <regex>

#include "base/host_name.h"
#include "cli/check.h"
#include "cluster/member.h"
#include "core/partition.h"
#include "harness.h"
#include "model_consul.h"

namespace lictor::cli::test {
namespace {

using nlohmann::json;

constexpr std::uint32_t kCount = 8;

std::string lock_key(std::uint32_t partition) {
  return "lictor/q/leader/8/" + std::to_string(partition);
}

// A queue with eight partitions.
class Fleet {
 public:
  Fleet() { consul.put("lictor/q/partitions", std::to_string(kCount)); }

  // Adds a member that leads these. `url`: of its admin API.
  std::string add(const std::string& node, const cluster::Partitions& partitions,
                  const std::string& url = {}) {
    const std::string session = consul.session();
    json value{{"node", node}, {"host", host_name()}, {"partitions", {{"q", kCount}}}};
    if (!url.empty()) value["admin"] = {url};
    consul.put("lictor/q/members/" + node, value.dump(), session);
    value["since"] = "2026-11-21T00:00:00Z";
    for (const std::uint32_t i : partitions) consul.put(lock_key(i), value.dump(), session);
    return session;
  }
  void release(std::uint32_t partition, const std::string& session) {
    consul.release(lock_key(partition), session);
  }

  ModelConsul consul;
};

// The id of a task in that partition.
std::string id_in(std::uint32_t partition) {
  for (int i = 0;; ++i) {
    std::string id = "t" + std::to_string(i);
    if (core::partition_of(id, kCount) == partition) return id;
  }
}

Report report_of(ModelConsul& consul, std::uint32_t desired_partitions = kCount) {
  Store store{consul};
  CheckOptions::Queue queue{"q", wire::Layout::under("lictor/", "q"), {}, {}};
  queue.options.partitions = desired_partitions;
  Report report;
  check_queue(store, queue, "node", true, report);
  return report;
}

std::string checked(ModelConsul& consul, std::uint32_t desired_partitions = kCount) {
  return report_of(consul, desired_partitions).page().text(false);
}

}  // namespace

TEST_CASE("partitions are shown in ranges") {
  CHECK(cluster::ranges({}).empty());
  CHECK(cluster::ranges({3}) == "3");
  CHECK(cluster::ranges({0, 1, 2, 3, 7}) == "0-3,7");
  CHECK(cluster::ranges({0, 2, 3}) == "0,2-3");
  CHECK(cluster::partitions_text({3}) == "partition 3");
  CHECK(cluster::partitions_text({3, 4}) == "partitions 3-4");
}

TEST_CASE("leader shows who leads each partition, and fails if nobody does") {
  Fleet fleet;
  fleet.add("a", {0, 1, 2});
  fleet.add("b", {3, 4, 5, 6});
  Stage stage{fleet.consul};
  CHECK(contains(refusal_of(stage.run("leader"), ErrorCode::kNotFound),
                 "nobody leads partition 7 of queue \"q\" (lictor/q/leader/8/7 does not exist); "
                 "a or b takes it"));
  CHECK(missing_in(stage.out(), {"PARTITION", "\n2          a"}) == "");
  // The columns are as wide as this host's name asks.
  CHECK(std::regex_search(stage.out(), std::regex{"\n7 +free"}));

  Stage document{fleet.consul, true};
  REQUIRE_FALSE(document.run("leader"));
  const json all = json::parse(document.out()).at("partitions");
  REQUIRE(all.size() == kCount);
  check_members(all[3], json::parse(R"({"partition": 3, "lock": "held", "node": "b",
      "since": "2026-11-21T00:00:00Z", "key": "lictor/q/leader/8/3"})"));
  check_members(all[7], {{"lock", "free"}, {"node", nullptr}});
  fleet.add("c", {7});
  CHECK(printed(fleet.consul, "leader").err.empty());
}

TEST_CASE("leader reports several free partitions at once, and a leader that is silent") {
  Fleet fleet;
  fleet.add("a", {0, 1}, "http://127.0.0.1:1");
  fleet.add("b", {2, 3});
  fleet.consul.put(lock_key(5), R"({"node":"c","lock_delay":"30s"})");
  Stage stage{fleet.consul};
  CHECK(contains(refusal_of(stage.run("leader")).message,
                 "nobody leads partitions 4-7 of queue \"q\" (below lictor/q/leader/8/); b takes "
                 "each when the lock-delay has passed, within 30s"));
  fleet.consul.remove(lock_key(5));
  CHECK(contains(stage.run("leader").error().message, "b takes each within two lock-delays"));
  CHECK(stage.out().starts_with("a leads partitions 0-1, but its daemon does not answer: "));
}

TEST_CASE("a number of partitions that cannot be read is an error that says what to do") {
  ModelConsul consul;
  consul.put("lictor/q/partitions", "lots");
  CHECK(contains(refusal(consul, "leader", ErrorCode::kInvalid),
                 "lictor/q/partitions: expected the number of partitions"));
  const Report report = report_of(consul, 1);
  CHECK(contains(report.page().text(false), "lictor/q/partitions: expected the number"));
  CHECK(report.first_failure() == ErrorCode::kFailed);  // not of the usage
}

TEST_CASE("a lock's holder that is no member is a finding, since nothing may run") {
  cluster::Fleet fleet{.locks = client::Locks{{wire::KvEntry{"k", "{}", "5e55"}}}};
  CHECK(cluster::diagnose(fleet, "q").empty());  // the members may be hidden
  fleet.members.push_back({"a", "host"});
  const auto findings = cluster::diagnose(fleet, "q");
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].kind == std::string{"leader_silent"});
  CHECK(findings[0].what == "session 5e55 leads, and is not among the members");
}

TEST_CASE("members shows which partitions each leads, who is draining, and what is free") {
  Fleet fleet;
  fleet.add("a", {0, 1, 2, 3, 7});
  fleet.add("b", {4});
  fleet.consul.put("lictor/q/members/b/drain", "{}");
  fleet.consul.put("lictor/q/members/gone/drain", "{}");
  const Printed stage = printed(fleet.consul, "members");
  CHECK(missing_in(stage.out, {"PARTITIONS", "0-3,7 (5)", "draining  4 (1)"}) == "");
  CHECK_FALSE(contains(stage.out, "gone"));
  CHECK(contains(stage.err, "nobody leads partitions 5-6; \"lictor leader\" says who"));

  const json told = document_of(fleet.consul, "members");
  check_members(told, {{"partitions", 8}, {"free", {5, 6}}});
  REQUIRE(told.at("members").size() == 2);
  check_members(told["members"][0], {{"partitions", {0, 1, 2, 3, 7}}, {"draining", false}});
  check_members(told["members"][1], {{"draining", true}, {"leads", true}});
}

TEST_CASE("why asks the leader of the task's own partition, and names the partition nobody leads") {
  std::atomic<int> asked_a = 0, asked_b = 0;
  const auto answering = [](std::atomic<int>& asked) {
    return FakeAdminApi::Handler{[&asked](const httpd::Request& request) {
      if (request.url.path.ends_with("/why")) ++asked;
      return json_answer(R"([{"reason":"running","text":"it is running"}])");
    }};
  };
  const FakeAdminApi a{answering(asked_a)}, b{answering(asked_b)};
  Fleet fleet;
  fleet.add("a", {0}, a.url());
  fleet.add("b", {1}, b.url());
  const auto put = [&](std::uint32_t partition) {
    fleet.consul.put("lictor/q/tasks/" + id_in(partition), R"({"taskType":"old"})");
    fleet.consul.put("lictor/q/tasks/" + id_in(partition), R"({"taskType":"new"})");
  };
  for (const std::uint32_t i : {0, 1, 3}) put(i);
  CHECK(printed(fleet.consul, "why " + id_in(1)).out == "task " + id_in(1) + ": it is running\n");
  CHECK(asked_a == 0);
  CHECK(asked_b == 1);

  const Printed free = printed(fleet.consul, "why " + id_in(3));
  CHECK(contains(free.out, "nobody leads partition 3 of queue \"q\""));
  CHECK(contains(free.err, "as far as Consul knows; nobody leads partition 3"));
  // The task is placed by its serialKey, whatever its id.
  fleet.consul.put("lictor/q/tasks/" + id_in(3),
                   R"({"taskType":"T","serialKey":")" + id_in(0) + R"("})");
  printed(fleet.consul, "why " + id_in(3));
  CHECK(asked_a == 1);
}

TEST_CASE("stats sums what all leaders count, and says which are not counted") {
  const auto telling = [](const char* queue) {
    return FakeAdminApi::Handler{[queue](const httpd::Request&) {
      return json_answer(R"({"queues":[{"name":"other"},)" + std::string{queue} + "]}");
    }};
  };
  const FakeAdminApi a{
      telling(R"({"name":"q","role":"draining","partitions":8,"leads":[0,2],"running":1,)"
              R"("oldest_due_ms":0,"lease_left_ms":9000,"paused":false,)"
              R"("states":{"running":1,"next":2},"workers":{"Mail":{"busy":1}}})")};
  const FakeAdminApi b{
      telling(R"({"name":"q","role":"leading","partitions":8,"leads":[1],"running":2,)"
              R"("oldest_due_ms":120000,"lease_left_ms":8000,"paused":true,)"
              R"("states":{"running":2,"backoff":1},)"
              R"("workers":{"Mail":{"busy":3},"Image":{"idle":1}}})")};
  Fleet fleet;
  fleet.add("a", {0, 2}, a.url());
  fleet.add("b", {1}, b.url());
  fleet.add("c", {3, 4, 5, 6, 7}, "http://127.0.0.1:1");
  const json told = document_of(fleet.consul, "stats");
  const json sums = json::parse(
      R"({"leader": null, "leaders": ["a", "b"], "role": "leading", "partitions": 8,
          "leads": [0, 1, 2], "running": 3, "oldest_due_ms": 120000, "lease_left_ms": 8000,
          "paused": true, "states": {"running": 3, "next": 2, "backoff": 1},
          "workers": {"Mail": {"busy": 4}, "Image": {"idle": 1}}})");
  check_members(told, sums);
  CHECK(told.at("not_counted").size() == 1);
  const Printed shown = printed(fleet.consul, "stats");
  CHECK(contains(shown.out, "a, b"));
  CHECK(contains(shown.err, "not counted: c: "));
}

TEST_CASE("stats and events say what to do if nobody leads") {
  for (const auto& partitions : {cluster::Partitions{}, cluster::Partitions{0}}) {
    Fleet fleet;
    fleet.add("a", partitions);
    const bool nobody = partitions.empty();
    const ErrorCode code = nobody ? ErrorCode::kNotFound : ErrorCode::kFailed;
    CHECK(contains(refusal(fleet.consul, "stats", code), "\"lictor leader\" says why") == nobody);
  }
  ModelConsul consul;
  CHECK(refusal(consul, "events", ErrorCode::kNotFound) ==
        "nobody leads queue \"q\"; \"lictor leader\" says why");
  consul.faulty = consul.asked();
  consul.fault.error = "no connection";
  CHECK_FALSE(refusal(consul, "stats", ErrorCode::kUnavailable).empty());
}

TEST_CASE("events names the partition of a lock if the queue has several") {
  const FakeAdminApi a{[](const httpd::Request&) {
    return json_answer(R"({"events":[{"at":"2026-11-21T00:00:00Z","event":"leading",)"
                       R"("partition":0}],"next":"1"})");
  }};
  Fleet fleet;
  fleet.add("a", {0}, a.url());
  CHECK(printed(fleet.consul, "events").out == "2026-11-21T00:00:00Z  leading  partition 0\n");
  ModelConsul single;
  single.put("lictor/q/leader", R"({"node":"a"})", single.join(a.url()));
  CHECK(printed(single, "events").out == "2026-11-21T00:00:00Z  leading\n");
  const FakeAdminApi odd{[](const httpd::Request&) {
    return json_answer(R"({"queues":[{"name":"q","paused":"x","states":7}],"missed":"x"})");
  }};
  fleet.add("b", {1}, odd.url());
  CHECK(contains(printed(fleet.consul, "stats").out, "paused                    no"));
  CHECK(contains(printed(fleet.consul, "events").out, "leading  partition 0"));
}

TEST_CASE("list and why report the leaders' trouble") {
  Fleet fleet;
  fleet.add("a", {0, 1}, "http://127.0.0.1:1");
  fleet.add("b", {2, 3, 4, 5});
  fleet.consul.put("lictor/q/tasks/" + id_in(1), R"({"taskType":"T"})");
  const Printed listed = printed(fleet.consul, "list");
  CHECK(listed.out.starts_with("nobody leads partitions 6-7 of queue \"q\""));
  CHECK(contains(listed.out, "; a leads partitions 0-1, but its daemon does not answer: "));
  CHECK(printed(fleet.consul, "why " + id_in(1))
            .out.starts_with("task " + id_in(1) +
                             ": a leads partition 1, but its daemon does not answer: "));
}

TEST_CASE("step-down waits until each partition has another leader") {
  Fleet fleet;
  fleet.add("a", {0, 1, 2, 3});
  fleet.add("b", {4, 5, 6, 7});
  CHECK(contains(refusal(fleet.consul, "leader --step-down --timeout 0s", ErrorCode::kFailed),
                 "partitions 0-7 still with the old leaders within 0s"));
  CHECK(printed(fleet.consul, "leader --step-down --no-wait").out ==
        "a, b are asked to step down\n");
  const json told = document_of(fleet.consul, "leader --step-down --no-wait");
  CHECK(told.at("asked") == json{"a", "b"});
}

TEST_CASE("step-down shows who leads each partition afterwards") {
  Fleet fleet;
  const std::string a = fleet.add("a", {0, 1, 2, 3, 4, 5, 6, 7});
  const std::string b = fleet.add("b", {});
  const auto told = [&](bool all) {
    fleet.consul.on_wait = [&, all] {
      for (std::uint32_t i = 0; i < kCount; ++i) {
        const bool stays = !all && i == 7;
        fleet.release(i, a);
        fleet.consul.put(lock_key(i), json{{"node", stays ? "a" : "b"}, {"since", "later"}}.dump(),
                         stays ? a : b);
      }
    };
    Stage stage{fleet.consul, true};
    const auto code = stage.run("leader --step-down");
    CHECK(code.has_value() == all);
    if (!code) CHECK(contains(code.error().message, "partition 7 with the same leader again"));
    return json::parse(stage.out()).at("partitions");
  };
  bool all = true;
  SUBCASE("all of them") {}
  SUBCASE("but one, which its leader took again") { all = false; }
  const json partitions = told(all);
  REQUIRE(partitions.size() == kCount);
  CHECK(partitions[3] == json{{"partition", 3}, {"stepped_down", "a"}, {"leader", "b"}});
  CHECK(partitions[7].at("leader") == (all ? "b" : "a"));
}

TEST_CASE("check reports free partitions, and members that ask for other numbers") {
  Fleet fleet;
  fleet.add("a", {0, 1, 2, 3});
  const std::string session = fleet.add("b", {4, 5, 6});
  std::string text = checked(fleet.consul);
  CHECK(contains(text, "nobody leads partition 7, so none of its tasks starts"));
  CHECK_FALSE(contains(text, "q: partitions"));

  fleet.consul.put(lock_key(7), R"({"node":"b"})", session);
  fleet.consul.put("lictor/q/members/a/drain", "{}");
  text = checked(fleet.consul, 4);
  CHECK(contains(text, "a leads partitions 0-3, b leads partitions 4-7; a is draining"));
  CHECK(contains(text, "the queue has 8 partitions, and this configuration asks for 4"));
  CHECK(contains(text,
                 "writes tasks, dead letters, leader, members, schedules, control, number of "
                 "partitions, partitions' locks"));

  fleet.consul.put("lictor/q/members/old", R"({"node":"old"})", fleet.consul.session());
  CHECK(contains(checked(fleet.consul), "the daemons ask for different numbers (1: old; 8: a, b)"));
}

TEST_CASE("check reports that all members ask for another number than the queue has") {
  Fleet fleet;
  const std::string session = fleet.add("a", {0, 1, 2, 3, 4, 5, 6, 7});
  fleet.consul.put("lictor/q/members/a", R"({"node":"a","partitions":{"q":16,"other":4}})",
                   session);
  CHECK(contains(checked(fleet.consul), "the queue has 8 partitions, and all daemons ask for 16"));
}

TEST_CASE("check warns of two daemons of one name") {
  Fleet fleet;
  fleet.add("a", {0, 1, 2, 3, 4, 5, 6, 7});
  fleet.consul.session("lictor member a");
  CHECK_FALSE(contains(checked(fleet.consul), "daemons are called"));
  fleet.consul.session("lictor member a");
  CHECK(contains(checked(fleet.consul),
                 "2 daemons are called a, and only one of them is among the members"));
}

}  // namespace lictor::cli::test
