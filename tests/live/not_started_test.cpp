// What a job needs is away for a while: its program's folder, or the receiver of an http executor.
// No task dies of that, none of them counts an attempt, and what is wrong is said.

#include <chrono>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include <doctest/doctest.h>

#include "commands.h"
#include "net/test_server.h"
#include "world.h"

namespace lictor::live {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;

// With the defaults, three attempts and their backoffs took less.
constexpr auto kAway = 8s;

// Of the tasks that wait, those that count an attempt.
std::size_t attempted(World& world) {
  std::size_t count = 0;
  for (const KvEntry& entry : world.kv.list(world.root + "default/tasks/")) {
    const json record = json::parse(entry.value, nullptr, false);
    const bool is_task = record.is_object() && record.contains("taskTaken");
    if (!is_task || record["taskTaken"].dump().find("true") != std::string::npos) continue;
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

}  // namespace

TEST_SUITE_BEGIN("live");

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

TEST_CASE("a receiver that drops each connection for 8 s kills no task either") {
  World world;
  bool is_up = false;
  std::mutex mutex;
  net::test::TestServer receiver{[&](const net::test::Received&, net::test::Connection& c) {
    const std::lock_guard lock{mutex};
    is_up ? c.reply(204, "") : c.reset();
  }};
  const auto daemon = daemon_with(world, {{"http", receiver.address() + "/notify"}});
  for (int i = 0; i < 20; ++i) world.submit(std::to_string(i), 1000 + i);
  REQUIRE(receiver.wait_for_requests(1));
  std::this_thread::sleep_for(kAway);
  CHECK(world.dead() == 0);
  CHECK(attempted(world) == 0);
  {
    const std::lock_guard lock{mutex};
    is_up = true;
  }
  REQUIRE(eventually([&] { return world.all_done(); }));
  CHECK(world.dead() == 0);
}

TEST_CASE("a token that the receiver knows before the file has it costs no attempt") {
  World world;
  const std::string file = world.folder.file("token");
  write_text(file, "old");
  net::test::TestServer receiver{[](const net::test::Received& request, net::test::Connection& c) {
    c.reply(request.header("Authorization") == "Bearer new" ? 204 : 401, "");
  }};
  const json http{{"url", receiver.address() + "/notify"}, {"token_file", file}};
  const auto daemon = daemon_with(world, {{"http", http}});
  for (int i = 0; i < 5; ++i) world.submit(std::to_string(i), 1000 + i);
  REQUIRE(receiver.wait_for_requests(2));
  write_text(file, "new");
  REQUIRE(eventually([&] { return world.all_done(); }));
  CHECK(world.dead() == 0);
}

TEST_CASE("a large answer, or one that is no JSON, leaves the task done and is said") {
  World world;
  net::test::TestServer receiver{[](const net::test::Received& request, net::test::Connection& c) {
    const bool page = request.header("Lictor-Task-Id") == "page";
    c.reply(200, page ? std::string(2 << 20U, 'x') : '"' + std::string(600'000, 'x') + '"',
            page ? "Content-Type: text/html\r\n" : "Content-Type: application/json\r\n");
  }};
  const auto daemon = daemon_with(world, {{"http", receiver.address() + "/x"}});
  world.submit("page", 1000);
  world.submit("json", 1001);
  REQUIRE(eventually([&] { return world.all_done(); }));
  CHECK(world.dead() == 0);
  CHECK(receiver.requests().size() == 2);
  CHECK(daemon->logged("the job is done, and its result is left out"));
}

TEST_SUITE_END();

}  // namespace lictor::live
