// A queue with several leaders: their merged status, and the findings about it.

#include <chrono>

#include "cluster/leader_status.h"
#include "scene.h"

namespace lictor::admin {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

std::string answer_of(const json& status) { return json{{"queues", {status}}}.dump(); }

// A queue of four partitions: "a" leads 0 and 3, "b" leads 1, nobody leads 2.
struct PartitionedScene : Scene {
  PartitionedScene() {
    auto& own = backend.known->queues[0];
    own.partitions = 4;
    own.leads = {0, 3};
    own.states = {{"ready", 3}};
    backend.members.locks = locks_of({{"a", "2026-01-01T00:00:00Z"}, {"b", ""}, {}, {"a", ""}});
    cluster::Member& a = backend.members.members[0];
    a.partitions = {0, 3};
    a.desired_partitions["q"] = 4;
    cluster::Member b = a;
    b.node = "b";
    b.partitions = {1};
    b.draining = true;
    backend.members.members.push_back(b);
    status_of_b = json::parse(
        R"({"name": "q", "role": "leading", "partitions": 4, "leads": [1], "waiting": 2,
            "claimed_ahead": 1, "running": 4, "paused": false, "unacked": 1, "oldest_due_ms": 900,
            "longest_running_ms": 5, "lease_left_ms": 9000, "types": ["Mail"],
            "states": {"ready": 2}})");
    backend.leader_answers = {{"b", answer_of(status_of_b)}};
  }

  json status_of_b;
};

}  // namespace

TEST_CASE("the status of several leaders is merged") {
  const auto merge = [](const char* a, const char* b) {
    return json(cluster::merged({{"a", ordered_json::parse(a)}, {"b", ordered_json::parse(b)}}));
  };
  CHECK(merge(R"({"role": "draining", "leads": [0, 3], "waiting": 3, "running": 1, "unacked": 0,
                  "paused": false, "oldest_due_ms": 10, "longest_running_ms": 70,
                  "lease_left_ms": 9000, "states": {"ready": 3, "running": 1},
                  "schedules": {"active": 2}, "types": ["Mail", "Report"], "log_error": "disk full",
                  "activity": {"minutes": 2, "done": [1, 2], "delay_p50_ms": [null, 5],
                               "last_minute": {"done": 2}}})",
              R"({"role": "leading", "leads": [1], "waiting": null, "claimed_ahead": 2,
                  "running": 4, "unacked": 1, "paused": true, "oldest_due_ms": 900,
                  "lease_left_ms": 8000, "states": {"ready": 2, "too large": 1},
                  "types": ["Report", "Other"], "cannot_start": "no memory",
                  "activity": {"minutes": 2, "done": [3, 4], "delay_p50_ms": [7, 3],
                               "last_minute": {"done": 4}}})") ==
        json::parse(
            R"({"role": "leading", "leads": [0, 1, 3], "waiting": 3, "claimed_ahead": 2,
                "running": 5, "unacked": 1, "paused": true, "oldest_due_ms": 900,
                "longest_running_ms": 70, "lease_left_ms": 8000,
                "states": {"ready": 5, "running": 1, "too large": 1}, "schedules": {"active": 2},
                "types": ["Report"], "log_error": "a: disk full", "cannot_start": "b: no memory",
                "activity": {"minutes": 2, "done": [4, 6], "delay_p50_ms": [7, 5],
                             "last_minute": {"done": 6}}})"));
  CHECK(cluster::merged({}).is_null());
  // A status that lacks much is no reason to fail.
  CHECK(merge("{}", R"({"leads": [1], "states": {"ready": 1}, "types": ["T"]})")["states"] ==
        json{{"ready", 1}});
}

TEST_CASE("an answer of another form is no status") {
  for (const char* odd :
       {R"("leads":7)", R"("leads":["x"])", R"("waiting":"3")", R"("states":{"ready":-1})",
        R"("role":1)", R"("activity":[])", R"("activity":{"done":["x"]})",
        R"("activity":{"last_minute":{"done":null}})", R"("lease_left_ms":1.5)", R"("types":{})"}) {
    CAPTURE(std::string{odd});
    CHECK(cluster::read_status(R"({"queues":[{"name":"q",)" + std::string{odd} + "}]}").is_null());
  }
  for (const char* odd :
       {"", "[]", "{}", R"({"queues":{}})", R"({"queues":[]})", R"({"queues":[null]})"}) {
    CHECK(cluster::read_status(odd).is_null());
  }
  CHECK(cluster::read_status(answer_of({{"name", "q"}, {"waiting", nullptr}}))["name"] == "q");
}

TEST_CASE("a queue with partitions shows the leader of each one and the figures of all leaders") {
  PartitionedScene scene;
  const json queue = scene.queue();
  CHECK(scene.backend.asked == "leaders /v1/queues?relayed=1&queue=q");
  check_members(queue, {{"leader", nullptr}, {"partitions", 4}});
  CHECK(queue["leaders"].size() == 4);
  CHECK(queue["leaders"][0] ==
        json{{"partition", 0}, {"node", "a"}, {"since", "2026-01-01T00:00:00Z"}});
  CHECK(queue["leaders"][2] == json{{"partition", 2}, {"node", nullptr}, {"since", nullptr}});
  check_members(queue["members"][0], {{"partitions", {0, 3}}, {"draining", false}});
  check_members(queue["members"][1], {{"partitions_wanted", 4}, {"draining", true}});
  CHECK(queue["status"]["states"]["ready"] == 5);
  CHECK(queue["status"]["leads"] == json{0, 1, 3});
  CHECK(queue["types"] == json::array({"Mail"}));  // what all leaders run
  CHECK_FALSE(queue.contains("leader_silent"));
  const json members = scene.read("/v1/members?queue=q");
  check_members(members, {{"leaders", queue["leaders"]}, {"members", queue["members"]}});
}

TEST_CASE("a leader that cannot be asked is named, and the others are shown") {
  PartitionedScene scene;
  scene.backend.leader_answers = {{"b", fail(ErrorCode::kFailed, "b could not be asked: no")},
                                  {"c", "no json"}};
  const json queue = scene.queue();
  CHECK(queue["leader_silent"] ==
        "b could not be asked: no; c gave an answer that this version does not know");
  CHECK(queue["status"]["states"]["ready"] == 3);
}

TEST_CASE("findings about a queue with partitions name partitions and hosts") {
  PartitionedScene scene;
  auto& fleet = scene.backend.members;
  CHECK(scene.findings() == "nobody leads partition 2, so none of its tasks starts\n");
  fleet.locks = locks_of({{"a", ""}, {}, {}, {"a", ""}});
  CHECK(scene.findings() == "nobody leads partitions 1-2, so none of their tasks starts\n");
  fleet.locks = locks_of({{}, {}, {}, {}});
  CHECK(scene.findings().starts_with("nobody leads this queue, so no task starts\n"));
  fleet.locks = locks_of({{"a", ""}, {"b", ""}, {}, {"a", ""}}, true);  // it may not be read
  CHECK(scene.findings().empty());
  fleet.members[1].silence = "its daemon does not answer";
  CHECK(scene.findings() == "b leads partition 1, but its daemon does not answer\n");
  fleet.members[1].silence.clear();
  // Its entry is old, by this host's clock, and it answers.
  fleet.members[1].seen = format_rfc3339(wall_now() - std::chrono::seconds{97});
  CHECK(scene.findings() == "the clock of b is 97s or more behind this host's\n");
  fleet.members[1].seen.clear();

  scene.status_of_b["oldest_due_ms"] = 300'000;
  scene.status_of_b["longest_running_ms"] = 70'000;
  scene.status_of_b["states"] = {{"no executor", 2}};
  scene.status_of_b["log_error"] = "disk full";
  scene.backend.leader_answers = {{"b", answer_of(scene.status_of_b)}};
  CHECK(scene.findings() ==
        "b cannot keep the output of jobs: disk full\n"
        "2 tasks of a type that b has no executor for\n"
        "the first waiting task has been due for 5m; 4 jobs run, the oldest for 70s\n");
  scene.backend.known->queues[0].states = {{"no executor", 1}};
  CHECK(contains(scene.findings(), "3 tasks of a type that a, b have no executor for\n"));
}

TEST_CASE("a desired number of partitions is shown with the members that ask for it") {
  PartitionedScene scene;
  auto& fleet = scene.backend.members;
  fleet.locks = locks_of({{"a", ""}, {"b", ""}, {"b", ""}, {"a", ""}});
  CHECK(scene.findings().empty());
  fleet.members[1].desired_partitions["q"] = 16;
  CHECK(scene.findings() ==
        "the queue has 4 partitions, and the daemons ask for different numbers (4: a; 16: b)\n");
  fleet.members[0].desired_partitions["q"] = 16;
  CHECK(scene.findings() == "the queue has 4 partitions, and all daemons ask for 16\n");
}

}  // namespace lictor::admin
