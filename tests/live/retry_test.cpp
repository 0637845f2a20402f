// Tasks that do not end well: failures, and withdrawn tasks.

#include <filesystem>
#include <fstream>
#include <thread>
#include <utility>

#include "net/test_server.h"
#include "world.h"

namespace lictor::live {
namespace {

using namespace std::chrono_literals;

TEST_CASE("each attempt gets the producer's record, whoever made the earlier attempts") {
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

TEST_CASE("a host that can start no job fails no task: it waits, and says so") {
  World world;
  const auto daemon = world.daemon("a", {{"max_attempts", 1}, {"delivery", "at_most_once"}});
  world.submit_done("before", 999);
  // The place of the jobs' hand-over is a file now, so that no directory can be made.
  const std::filesystem::path scratch = daemon->state_dir() + "/scratch";
  std::filesystem::remove_all(scratch);
  { const std::ofstream in_the_way{scratch}; }

  world.submit("1", 1000);
  world.submit("2", 1001);
  REQUIRE(eventually([&] { return daemon->logged("the job cannot be started"); }));
  REQUIRE(eventually([&] {
    const json record = world.kv.get_json(world.task_key("1"));
    return contains(record.value("taskError", ""), "cannot make the directory") &&
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
  world.submit_done("1", 1000, {{"sleep_first", 60'000}, {"child", "yes"}});
  const std::vector<Run> runs = world.journal.runs_of("1");
  REQUIRE(runs.size() == 2);
  CHECK_FALSE(runs[0].ended);
  CHECK(runs[1].ended);
  CHECK(world.journal.overlaps() == std::vector<std::string>{});
  REQUIRE(runs[0].child != 0);
  CHECK(eventually([&] { return !is_alive(runs[0].child); }));
}

// With the defaults, three attempts and their backoffs took less.
constexpr auto kAway = 8s;

// The number of waiting tasks that count an attempt.
std::size_t attempted(World& world) {
  std::size_t count = 0;
  for (const KvEntry& entry : world.kv.list(world.root + "default/tasks/")) {
    const json record = json::parse(entry.value, nullptr, false);
    const bool is_task = record.is_object() && record.contains("taskTaken");
    if (!is_task || contains(record["taskTaken"].dump(), "true")) continue;
    count += record.value("taskAttempt", 0) != 0 ? 1 : 0;
  }
  return count;
}

// A daemon that `lictor why` can ask, with this executor for all types.
std::unique_ptr<LictorDaemon> daemon_with(const World& world, const json& executor,
                                          int concurrency = 1) {
  DaemonSettings settings = world.settings_with_admin("a", {{"concurrency", concurrency}});
  settings.queue["executors"] = {{"*", executor}};
  return std::make_unique<LictorDaemon>(std::move(settings));
}

TEST_CASE("a program whose folder is away: its tasks wait, and run when it is back") {
  World world;
  const std::string share = world.folder.file("share");
  const std::string program = share + "/job";
  std::filesystem::create_directory(share);
  std::filesystem::copy_file(LICTOR_JOB_RECORDER, program);
  const auto daemon = daemon_with(world, {{"exec", {program, world.journal.file(), "a", ""}}}, 4);
  REQUIRE(eventually([&] { return world.leads(*daemon); }));
  std::filesystem::rename(share, share + ".away");

  for (int i = 0; i < 40; ++i) world.submit(std::to_string(i), 1000 + i);
  REQUIRE(eventually([&] { return daemon->logged("the job cannot be started"); }));
  std::this_thread::sleep_for(kAway);
  CHECK(world.dead() == 0);
  CHECK(attempted(world) == 0);
  const Output why = lictor(world, {"why", "39", "--json"});
  CHECK(says(why, "cannot_start"));
  CHECK(says(why, "No such file or directory"));

  std::filesystem::rename(share + ".away", share);
  REQUIRE(eventually([&] { return world.all_done(); }));
  CHECK(world.dead() == 0);
  CHECK(world.journal.runs().size() == 40);
}

TEST_CASE("a receiver that is away for 8 s: its tasks wait, and are sent when it is back") {
  World world;
  const int port = free_port();
  const std::string url = "http://127.0.0.1:" + std::to_string(port) + "/notify";
  const auto daemon = daemon_with(world, {{"http", url}});
  for (int i = 0; i < 20; ++i) world.submit(std::to_string(i), 1000 + i);
  REQUIRE(eventually([&] { return daemon->logged("no connection"); }));
  std::this_thread::sleep_for(kAway);
  CHECK(world.dead() == 0);
  CHECK(attempted(world) == 0);
  CHECK(says(lictor(world, {"why", "19"}), "no connection"));

  net::test::TestServer receiver{
      [](const net::test::Received&, net::test::Connection& c) { c.reply(204, ""); }, "", port};
  REQUIRE(eventually([&] { return world.all_done(); }));
  CHECK(world.dead() == 0);
  CHECK(receiver.requests().size() == 20);
}

}  // namespace
}  // namespace lictor::live
