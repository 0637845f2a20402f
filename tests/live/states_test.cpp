// The table of the manual (concepts.md): for each state of a task and each event, what the store
// holds afterwards.

#include <doctest/doctest.h>

#include "process.h"
#include "tcp_proxy.h"
#include "world.h"

namespace lictor::live {
namespace {

using nlohmann::json;

// One daemon with a task in each state.
class Table {
 public:
  explicit Table(const json& queue = {}) : network_{world.port()} {
    json settings{{"prefetch", 1},
                  {"max_attempts", 2},
                  {"backoff", {{"initial", "1h"}, {"max", "1h"}, {"jitter", 0}}},
                  {"history", true}};
    if (!queue.is_null()) settings.merge_patch(queue);
    DaemonSettings daemon_settings = world.settings("a", settings);
    daemon_settings.consul = {network_.address()};
    daemon = std::make_unique<LictorDaemon>(daemon_settings);
    world.submit("done", 100);
    world.submit("failed", 101, {{"exit", 1}});
    world.kv.put(world.task_key("dead"), "nonsense");
    reaches("done", "done");
    reaches("failed", "backing off, attempt 1");
    reaches("dead", "dead: unreadable");
    world.submit("running", 1000, {{"sleep_first", 300'000}, {"child", "yes"}});
    world.submit("held", 1001);
    world.submit("waiting", 1002);
    world.kv.put_json(world.task_key("scheduled"),
                      {{"taskType", "Record"}, {"executeAt", "2999-01-01T00:00:00Z"}});
    world.begun_with_child("running");
    reaches("running", "claimed, attempt 1");
    reaches("held", "claimed, attempt 1");
    stays({{"waiting", "waiting"}, {"scheduled", "scheduled"}});
    job = *world.journal.run("running");
  }

  // What the store says of a task.
  std::string state(const std::string& id) {
    if (const auto entry = world.kv.get(world.task_key(id))) {
      const json record = json::parse(entry->value, nullptr, false);
      if (!record.is_object()) return "unreadable";
      const std::string attempt = ", attempt " + std::to_string(record.value("taskAttempt", 0));
      const int lost = record.value("taskLost", 0);
      const std::string losses = lost == 0 ? "" : ", lost " + std::to_string(lost);
      if (record.value("taskTaken", json{}) == "true" ||
          record.value("taskTaken", json{}) == true) {
        return "claimed" + attempt + losses;
      }
      if (record.contains("taskRetryAt")) return "backing off" + attempt + losses;
      return (record.contains("executeAt") ? "scheduled" : "waiting") +
             (record.contains("taskAttempt") ? attempt : std::string{}) + losses;
    }
    if (world.kv.has(world.dead_key(id))) {
      return "dead: " + world.kv.get_json(world.dead_key(id)).value("reason", "");
    }
    return world.kv.has(done_key(id)) ? "done" : "gone";
  }
  std::string done_key(const std::string& id) const { return world.root + "default/done/" + id; }

  void reaches(const std::string& id, const std::string& expected) {
    CAPTURE(id);
    std::string last;
    const bool reached = eventually([&] { return (last = state(id)) == expected; });
    CHECK_MESSAGE(reached, id << " is " << last << ", not " << expected);
  }
  void stays(const std::vector<std::pair<std::string, std::string>>& expected) {
    for (const auto& [id, wanted] : expected) {
      CAPTURE(id);
      CHECK(state(id) == wanted);
    }
  }
  // What no event but its own changes.
  void rest_is_untouched() {
    stays({{"failed", "backing off, attempt 1"},
           {"scheduled", "scheduled"},
           {"dead", "dead: unreadable"},
           {"done", "done"}});
  }
  bool job_is_gone() { return !is_alive(job.pid) && !is_alive(job.child); }

  World world;
  TcpProxy network_;
  std::unique_ptr<LictorDaemon> daemon;
  Run job;  // of the task "running"
};

TEST_SUITE_BEGIN("live");

TEST_CASE("states: a job's success, failure and time-out, and the time of what waits for it") {
  World world;
  const auto daemon = world.daemon(
      "a", {{"max_attempts", 2}, {"backoff", {{"initial", "10ms"}}}, {"history", true}});
  world.submit("good", 1000);
  world.submit("bad", 1001, {{"exit", 3}});
  world.submit("better", 1002, {{"fail_until", 2}});
  world.submit("hopeless", 1003, {{"exit", 65}});
  world.submit("again", 1004, {{"exit", 75}, {"fail_until", 2}});
  json slow{{"taskType", "Record"}, {"timeout", "200ms"}, {"taskPara", {{"sleep", 300'000}}}};
  slow["maxAttempts"] = 1;
  world.kv.put_json(world.task_key("slow"), slow);
  const auto now = std::chrono::system_clock::now() + std::chrono::milliseconds{700};
  const auto due_ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count();
  world.kv.put_json(world.task_key("timed"), {{"taskType", "Record"}, {"executeAt", due_ms}});
  world.kv.put_json(world.task_key("late"),
                    {{"taskType", "Record"}, {"expireAt", due_ms / 1000 - 100}});
  REQUIRE(eventually([&] { return world.all_done(); }));

  const auto done = [&](const std::string& id) {
    return world.kv.has(world.root + "default/done/" + id);
  };
  const auto reason = [&](const std::string& id) {
    const auto entry = world.kv.get(world.dead_key(id));
    return entry ? json::parse(entry->value).value("reason", "") : "";
  };
  CHECK(done("good"));
  CHECK(done("better"));
  CHECK(done("timed"));
  CHECK(reason("bad") == "failed");
  CHECK(reason("hopeless") == "permanent");
  CHECK(reason("again") == "failed");
  CHECK(reason("slow") == "failed");
  CHECK(world.kv.get_json(world.dead_key("slow"))["error"].get<std::string>().starts_with(
      "timed out"));
  CHECK(reason("late") == "expired");
  CHECK(world.journal.runs_of("bad").size() == 2);
  CHECK(world.journal.runs_of("better").size() == 2);
  CHECK(world.journal.runs_of("hopeless").size() == 1);
  CHECK(world.journal.runs_of("late").empty());
}

TEST_CASE("states: the key is deleted") {
  Table table;
  // What holds the slot goes last: else the next would start before it is deleted.
  for (const char* id : {"failed", "scheduled", "waiting", "held", "running"}) {
    table.world.kv.remove(table.world.task_key(id));
  }
  CHECK(eventually([&] { return table.job_is_gone(); }));
  // Nothing of them comes back, and the queue goes on.
  table.world.submit("next", 3000);
  table.reaches("next", "done");
  for (const char* id : {"running", "held", "waiting", "scheduled", "failed"}) {
    table.reaches(id, "gone");
  }
  CHECK(table.world.journal.order() ==
        std::vector<std::string>{"done", "failed", "running", "next"});
}

TEST_CASE("states: the key is rewritten by its producer") {
  Table table;
  const json again{{"taskType", "Record"}, {"taskPara", {{"version", "2"}}}};
  for (const char* id : {"held", "waiting", "scheduled", "failed"}) {
    table.world.kv.put_json(table.world.task_key(id), again);
  }
  // The running one last: its job goes on, and what was written runs when it has ended.
  table.world.kv.put_json(table.world.task_key("running"), again);
  CHECK(throughout(500ms, [&] { return is_alive(table.job.pid); }));
  ::kill(-table.job.pid, SIGKILL);
  for (const char* id : {"running", "held", "waiting", "scheduled", "failed"}) {
    table.reaches(id, "done");
    CHECK(table.world.journal.runs_of(id).back().version == "2");
  }
  CHECK(table.world.journal.runs_of("running").size() == 2);
  CHECK(table.world.journal.runs_of("held").size() == 1);
  CHECK(table.world.journal.runs_of("waiting").size() == 1);
  CHECK(table.world.journal.runs_of("scheduled").size() == 1);
}

TEST_CASE("states: the owner is killed") {
  Table table;
  table.daemon->kill();
  CHECK(eventually([&] { return table.job_is_gone(); }));
  table.stays(
      {{"running", "claimed, attempt 1"}, {"held", "claimed, attempt 1"}, {"waiting", "waiting"}});
  table.rest_is_untouched();

  table.daemon->start();
  for (const char* id : {"running", "held", "waiting"}) table.reaches(id, "done");
  const auto attempts = [&](const char* id) {
    return table.world.kv.get_json(table.done_key(id)).value("attempts", 0);
  };
  CHECK(attempts("running") == 2);
  CHECK(attempts("held") == 2);  // nobody can tell that it was never started
  CHECK(attempts("waiting") == 1);
  CHECK(table.world.journal.runs_of("held").size() == 1);
  table.rest_is_untouched();
}

TEST_CASE("states: the lease is lost") {
  Table table;
  table.world.kv.destroy_session(table.world.leader_session());
  CHECK(eventually([&] { return table.job_is_gone(); }));
  for (const char* id : {"running", "held", "waiting"}) table.reaches(id, "done");
  CHECK(table.world.kv.get_json(table.done_key("running")).value("lost", 0) == 0);
  CHECK(table.world.kv.get_json(table.done_key("waiting")).value("lost", 0) == 0);
  table.rest_is_untouched();
  CHECK(table.world.journal.overlaps() == std::vector<std::string>{});
}

TEST_CASE("states: the queue is paused") {
  Table table;
  table.world.kv.put(table.world.root + "default/control", R"({"paused": {"by": "a test"}})");
  table.reaches("held", "waiting");
  CHECK(throughout(500ms, [&] { return is_alive(table.job.pid); }));
  table.stays({{"running", "claimed, attempt 1"}, {"waiting", "waiting"}});
  table.rest_is_untouched();
  ::kill(-table.job.pid, SIGKILL);
  table.reaches("running", "backing off, attempt 1");
  CHECK(throughout(500ms, [&] { return table.state("waiting") == "waiting"; }));

  table.world.kv.put(table.world.root + "default/control", "{}");
  table.reaches("held", "done");
  table.reaches("waiting", "done");
  CHECK(table.world.kv.get_json(table.done_key("held")).value("attempts", 0) == 1);
}

TEST_CASE("states: the daemon is stopped") {
  Table table{{{"drain_timeout", "500ms"}}};
  CHECK(table.daemon->stop() == 0);
  CHECK(table.job_is_gone());
  table.stays({{"running", "waiting"}, {"held", "waiting"}, {"waiting", "waiting"}});
  table.rest_is_untouched();
  CHECK(table.world.leader().empty());
}

TEST_CASE("states: the end of a task is being written, and its key is deleted or rewritten") {
  Table table;
  const auto end_unheard = [&](const char* id) {
    table.network_.cut_at(R"("delete-cas","Key":")" + table.world.task_key(id) + '"',
                          TcpProxy::Before::kRequest);
  };
  ::kill(-table.job.pid, SIGKILL);
  table.reaches("waiting", "done");

  end_unheard("deleted");
  table.world.submit("deleted", 2000);
  REQUIRE(eventually([&] { return table.network_.is_cut(); }));
  table.world.kv.remove(table.world.task_key("deleted"));
  table.network_.heal();
  table.world.submit("next", 2001);
  table.reaches("next", "done");
  table.stays({{"deleted", "gone"}});

  end_unheard("rewritten");
  table.world.submit("rewritten", 3000);
  REQUIRE(eventually([&] { return table.network_.is_cut(); }));
  table.world.submit("rewritten", 3000, {{"version", "2"}});
  table.network_.heal();
  table.reaches("rewritten", "done");
  const auto runs = table.world.journal.runs_of("rewritten");
  REQUIRE(runs.size() == 2);
  CHECK(runs[1].version == "2");
}

TEST_SUITE_END();

}  // namespace
}  // namespace lictor::live
