// How tasks end that do not end well: failures, and tasks that are withdrawn.

#include <filesystem>
#include <fstream>

#include <doctest/doctest.h>

#include "commands.h"
#include "process.h"
#include "world.h"

namespace lictor::live {
namespace {

using nlohmann::json;

TEST_SUITE_BEGIN("live");

TEST_CASE("each attempt gets what the producer wrote, whoever has made those before") {
  World world;
  const std::string seen = world.folder.file("seen");
  const std::string record = R"({"taskType": "Show", "x": 1e2, "taskTaken": "false"})";
  world.kv.put(world.task_key("fresh"), record);
  world.kv.put(world.task_key("tried"),
               R"({"taskType": "Show", "x": 1e2, "taskTaken": "false","taskAttempt":1,)"
               R"("taskError":"exit status 1"})");
  const json show{{"exec", {"/bin/sh", "-c", "cat >> " + seen + "; echo >> " + seen + "; exit 1"}},
                  {"max_attempts", 2},
                  {"backoff", {{"initial", "10ms"}}}};
  const auto daemon = world.daemon("a", {{"executors", {{"Show", show}}}});
  REQUIRE(eventually([&] { return world.dead() == 2; }));
  CHECK(read_text(seen) == record + '\n' + record + '\n' + record + '\n');
}

TEST_CASE("a task that fails is tried again after a growing pause, then it is a dead letter") {
  World world;
  const auto daemon = world.daemon(
      "a", {{"max_attempts", 3},
            {"backoff", {{"initial", "300ms"}, {"factor", 3}, {"max", "1h"}, {"jitter", 0}}}});
  world.submit("1", 1000, {{"exit", 1}, {"print", "the disk is full"}});
  world.submit("2", 1001);
  REQUIRE(eventually([&] { return world.all_done(); }));

  const std::vector<Run> runs = world.journal.runs_of("1");
  REQUIRE(runs.size() == 3);
  CHECK(runs[0].attempt == 1);
  CHECK(runs[1].attempt == 2);
  CHECK(runs[2].attempt == 3);
  CHECK(runs[1].token > runs[0].token);
  CHECK(runs[2].token > runs[1].token);
  // taskRetryAt is in milliseconds.
  CHECK(seconds_between(runs[0].last_ns, runs[1].begin_ns) >= 0.298);
  CHECK(seconds_between(runs[1].last_ns, runs[2].begin_ns) >= 0.898);
  // A task that waits for its next try holds up nobody.
  REQUIRE(world.journal.run("2").has_value());
  CHECK(world.journal.run("2")->begin_ns < runs[2].begin_ns);

  const json letter = world.kv.get_json(world.dead_key("1"));
  INFO(letter.dump());
  CHECK(letter.value("reason", "") == "failed");
  CHECK(letter.value("attempts", 0) == 3);
  CHECK(letter.value("node", "") == daemon->node());
  CHECK(letter.value("output_tail", "").find("the disk is full") != std::string::npos);
  CHECK(letter["record"]["taskPara"]["print"] == "the disk is full");
  CHECK_FALSE(letter["record"].contains("taskClaim"));
}

TEST_CASE("a host that can start no job fails no task: it waits, and says so") {
  World world;
  const auto daemon = world.daemon("a", {{"max_attempts", 1}, {"delivery", "at_most_once"}});
  world.submit("before", 999);
  REQUIRE(eventually([&] { return world.all_done(); }));
  // Where jobs leave what they hand over there is a file now, so that no directory can be made.
  const std::filesystem::path scratch = daemon->state_dir() + "/scratch";
  std::filesystem::remove_all(scratch);
  { const std::ofstream in_the_way{scratch}; }

  world.submit("1", 1000);
  world.submit("2", 1001);
  REQUIRE(eventually([&] { return daemon->logged("the job cannot be started"); }));
  REQUIRE(eventually([&] {
    const json record = world.kv.get_json(world.task_key("1"));
    return record.value("taskError", "").find("cannot make the directory") != std::string::npos &&
           record.value("taskTaken", "") == "false" && record.value("taskAttempt", 0) == 0;
  }));
  CHECK(world.dead() == 0);
  CHECK(world.journal.runs().size() == 1);
  const Output checked = lictor(world, {"check"});
  says(checked, "1 task could not be started: 1: cannot make the directory");
  says(checked, "\"lictor leader --step-down --config " + world.folder.file("client.json") +
                    " --root " + world.root + " --consul " + world.address() + '"');

  std::filesystem::remove(scratch);
  REQUIRE(eventually([&] { return world.all_done(); }));
  CHECK(world.dead() == 0);
  REQUIRE(world.journal.run("1").has_value());
  CHECK(world.journal.run("1")->attempt == 1);
  CHECK(world.journal.run("1")->begin_ns < world.journal.run("2")->begin_ns);
}

TEST_CASE("a job that outlives its time is ended with all of its processes, and tried again") {
  World world;
  const auto daemon = world.daemon("a", {{"timeout", "2s"}, {"backoff", {{"initial", "10ms"}}}});
  world.submit("1", 1000, {{"sleep_first", 60'000}, {"child", "yes"}});
  REQUIRE(eventually([&] { return world.all_done(); }));
  const std::vector<Run> runs = world.journal.runs_of("1");
  REQUIRE(runs.size() == 2);
  CHECK_FALSE(runs[0].ended);
  CHECK(runs[1].ended);
  CHECK(world.journal.overlaps() == std::vector<std::string>{});
  REQUIRE(runs[0].child != 0);
  CHECK(eventually([&] { return !is_alive(runs[0].child); }));
}

TEST_SUITE_END();

}  // namespace
}  // namespace lictor::live
