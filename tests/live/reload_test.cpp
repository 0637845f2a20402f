// SIGHUP: the changes that a running daemon takes over, and those that it does not.

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "world.h"

namespace lictor::live {
namespace {

// Longer than the lease of a test's daemon: lock_delay less kill_grace and margin.
constexpr auto kBeyondLease = 13s;

// A file that cannot be read until somebody writes to it.
void replace_by_fifo(const std::string& file) {
  REQUIRE(::unlink(file.c_str()) == 0);
  REQUIRE(::mkfifo(file.c_str(), 0600) == 0);
}

std::size_t reloads(const LictorDaemon& daemon) {
  return count_of("configuration reloaded", daemon.log());
}

TEST_CASE("SIGHUP takes over executors and limits; running jobs go on") {
  World world;
  const auto daemon = world.daemon("a", {}, "none");
  world.submit("long", 1000, {{"sleep", 6000}});
  world.submit("second", 1001, {{"sleep", 300'000}});
  const Run long_run = world.begun("long");
  const auto digest = [&] {
    return world.kv.get_json(world.member_key(*daemon)).value("config", "");
  };
  const std::string digest_before = digest();
  CHECK(!digest_before.empty());

  const json recorder = json::array({LICTOR_JOB_RECORDER, world.journal.file(), "again", "none"});
  daemon->reload({{"concurrency", 2}, {"executors", {{"*", {{"exec", recorder}}}}}});
  REQUIRE(eventually([&] { return daemon->logged("configuration reloaded"); }));
  // Two at a time now, and the second by the new executor.
  world.begun("second");
  CHECK(world.journal.run("second")->host == "again");
  CHECK(is_alive(long_run.pid));
  REQUIRE(eventually([&] { return !world.kv.has(world.task_key("long")); }));
  CHECK(world.journal.run("long")->ended);
  // Other hosts see that its configuration has changed.
  REQUIRE(eventually([&] { return !digest().empty() && digest() != digest_before; }));
  // A type without an executor waits, and goes on when it has one.
  daemon->reload({{"executors", {{"*", nullptr}, {"Other", {{"noop", json::object()}}}}}});
  REQUIRE(eventually([&] { return reloads(*daemon) == 2; }));
  world.submit("third", 1002);
  REQUIRE(eventually([&] { return daemon->logged("no executor for this type"); }));
  world.kv.remove(world.task_key("second"));
  CHECK(throughout(300ms, [&] { return world.kv.has(world.task_key("third")); }));
  daemon->reload({{"executors", {{"Record", {{"exec", recorder}}}}}});
  REQUIRE(eventually([&] { return world.all_done(); }));
  CHECK(world.journal.run("third")->host == "again");
}

TEST_CASE("SIGHUP takes over the schedules of the configuration; a paused one stays so") {
  World world;
  const auto schedule = [](const char* which) {
    return json{{"every", "1s"},
                {"overlap", "allow"},
                {"task", {{"taskType", "Record"}, {"taskPara", {{"sleep", 1}, {"which", which}}}}}};
  };
  const auto daemon = world.daemon("a", {{"schedules", {{"s", schedule("first")}}}});
  const std::string key = world.root + "default/schedules/s";
  const auto stored = [&] { return world.kv.get_json(key); };
  REQUIRE(eventually([&] { return world.journal.ended() >= 2; }));
  CHECK(stored()["fromConfig"] == true);
  CHECK(daemon->logged("this schedule is as the configuration has it"));

  REQUIRE(eventually([&] {  // the leader writes it, too
    const auto entry = world.kv.get(key);
    if (!entry) return false;
    json record = json::parse(entry->value);
    record["paused"] = true;
    const std::string path = "/v1/kv/" + key + "?cas=" + std::to_string(entry->modify_index);
    return world.kv.request("PUT", path, record.dump()).body == "true";
  }));
  daemon->reload({{"schedules", {{"s", schedule("second")}}}});
  REQUIRE(eventually([&] { return stored()["task"]["taskPara"]["which"] == "second"; }));
  CHECK(stored()["paused"] == true);
  CHECK(stored().contains("lastTask"));
  REQUIRE(eventually([&] { return world.all_done(); }));

  daemon->reload({{"schedules", {{"s", nullptr}}}});
  REQUIRE(eventually([&] { return !world.kv.has(key); }));
}

TEST_CASE("SIGHUP keeps the old configuration when the new one is bad, and says so") {
  World world;
  const auto daemon = world.leading_daemon("a");
  daemon->reload_text("{\"queues\": [");
  REQUIRE(eventually([&] { return daemon->logged("keeping the old one"); }));
  daemon->reload({{"concurency", 2}});
  REQUIRE(eventually([&] { return daemon->logged("unknown key; did you mean"); }));
  world.submit_done("1", 1000);
  CHECK(world.leads(*daemon));
}

TEST_CASE("a reload takes over all settings except those that need a restart") {
  World world;
  const auto daemon = world.leading_daemon("a", {}, "none");
  const auto pending = [&] {
    return world.kv.get_json(world.member_key(*daemon)).value("reload_error", "");
  };
  daemon->reload({{"session_ttl", "20s"}, {"concurrency", 2}});
  REQUIRE(eventually([&] { return daemon->logged("configuration reloaded"); }));
  CHECK(daemon->logged("wait for a restart"));
  CHECK(daemon->logged("queue default: session_ttl"));
  CHECK(eventually(
      [&] { return pending().starts_with("a restart is needed for queue default: session_ttl"); }));
  for (const char* id : {"first", "second"}) world.submit(id, 1000, {{"sleep", 300'000}});
  CHECK(eventually([&] { return world.journal.run("first") && world.journal.run("second"); }));
  CHECK(world.leads(*daemon));
  daemon->reload({{"session_ttl", "10s"}});
  CHECK(eventually([&] { return pending().empty(); }));
}

TEST_CASE("a configuration that cannot be read for long costs neither lease nor running job") {
  World world;
  const auto daemon = world.daemon("a", {}, "none");
  const pid_t job = world.submit_begun("long", 1000, {{"sleep", 300'000}}).pid;
  const std::string session = world.leader_session();

  replace_by_fifo(daemon->config_file());
  daemon->hang_up();
  REQUIRE(throughout(kBeyondLease, [&] { return is_alive(job) && world.leads(*daemon); }));
  CHECK(world.leader_session() == session);
  CHECK_FALSE(daemon->logged("configuration reloaded"));
  // The reload requested meanwhile is done once, after that.
  daemon->hang_up();
  daemon->hang_up();
  write_text(daemon->config_file(), daemon->config_with({{"concurrency", 2}}));
  REQUIRE(eventually([&] { return daemon->logged("configuration reloaded"); }));
  world.submit_begun("second", 1001, {{"sleep", 300'000}});
  write_text(daemon->config_file(), daemon->config_with({{"concurrency", 3}}));
  REQUIRE(eventually([&] { return reloads(*daemon) == 2; }));
  world.submit_begun("third", 1002, {{"sleep", 300'000}});
  CHECK(is_alive(job));
}

TEST_CASE("SIGHUP during the start of a daemon is a reload after it") {
  World world;
  const auto daemon = world.daemon("a");
  daemon->kill();
  replace_by_fifo(daemon->config_file());
  daemon->start();
  {
    std::ofstream config{daemon->config_file()};  // it reads its configuration now
    daemon->hang_up();
    REQUIRE(throughout(200ms, [&] { return daemon->runs(); }));
    config << daemon->config_with(json::object());
  }
  REQUIRE(eventually([&] { return daemon->logged("reading the configuration again"); }));
  write_text(daemon->config_file(), daemon->config_with({{"concurrency", 2}}));
  CHECK(eventually([&] { return daemon->logged("configuration reloaded"); }));
}

TEST_CASE("a daemon whose reload does not end still stops orderly") {
  World world;
  const auto daemon = world.leading_daemon("a", {{"drain_timeout", "0s"}}, "none");
  replace_by_fifo(daemon->config_file());
  daemon->hang_up();
  REQUIRE(eventually([&] { return daemon->logged("reading the configuration again"); }));
  CHECK(daemon->stop() == 0);
  CHECK(daemon->logged("stopped"));
  CHECK(world.leader().empty());
}

TEST_CASE("a plug-in that is slow to load costs neither lease nor running job") {
  World world;
  const auto daemon = world.daemon("a", {}, "none");
  const pid_t job = world.submit_begun("long", 1000, {{"sleep", 300'000}}).pid;

  daemon->reload({{"concurrency", 2}, {"executors", {{"Slow", {{"plugin", LICTOR_SLOW_PLUGIN}}}}}});
  REQUIRE(throughout(kBeyondLease, [&] { return is_alive(job) && world.leads(*daemon); }));
  REQUIRE(eventually([&] { return daemon->logged("configuration reloaded"); }));
  world.kv.put_json(world.task_key("slow"), {{"taskType", "Slow"}});
  REQUIRE(eventually([&] { return !world.kv.has(world.task_key("slow")); }));
  CHECK(is_alive(job));
}

}  // namespace
}  // namespace lictor::live
