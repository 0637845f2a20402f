// SIGHUP: what can change while a daemon runs, and what cannot.

#include <sys/stat.h>
#include <unistd.h>

#include <doctest/doctest.h>

#include "process.h"
#include "world.h"

namespace lictor::live {
namespace {

using nlohmann::json;

// A file that cannot be read until somebody writes to it.
void replace_by_fifo(const std::string& file) {
  REQUIRE(::unlink(file.c_str()) == 0);
  REQUIRE(::mkfifo(file.c_str(), 0600) == 0);
}

TEST_SUITE_BEGIN("live");

TEST_CASE("SIGHUP takes over executors and limits; running jobs go on") {
  World world;
  const auto daemon = world.daemon("a", {}, "none");
  world.submit("long", 1000, {{"sleep", 6000}});
  world.submit("second", 1001, {{"sleep", 300'000}});
  REQUIRE(eventually([&] { return world.journal.run("long").has_value(); }));
  const Run long_run = *world.journal.run("long");
  const auto digest = [&] {
    return world.kv.get_json(world.root + "default/members/" + daemon->node()).value("config", "");
  };
  const std::string digest_before = digest();
  CHECK(!digest_before.empty());

  const json recorder = json::array({LICTOR_JOB_RECORDER, world.journal.file(), "again", "none"});
  daemon->reload({{"concurrency", 2}, {"executors", {{"*", {{"exec", recorder}}}}}});
  REQUIRE(eventually([&] { return daemon->logged("configuration reloaded"); }));
  // Two at a time now, and the second by the new executor.
  REQUIRE(eventually([&] { return world.journal.run("second").has_value(); }));
  CHECK(world.journal.run("second")->host == "again");
  CHECK(is_alive(long_run.pid));
  REQUIRE(eventually([&] { return !world.kv.has(world.task_key("long")); }));
  CHECK(world.journal.run("long")->ended);
  // Other hosts see that its configuration is another one now.
  REQUIRE(eventually([&] { return !digest().empty() && digest() != digest_before; }));

  // A type without an executor waits, and goes on when it has one.
  daemon->reload({{"executors", {{"*", nullptr}, {"Other", {{"noop", json::object()}}}}}});
  REQUIRE(eventually([&] {
    const std::string log = daemon->log();
    return log.find("configuration reloaded") != log.rfind("configuration reloaded");
  }));
  world.submit("third", 1002);
  REQUIRE(eventually([&] { return daemon->logged("no executor for this type"); }));
  world.kv.remove(world.task_key("second"));
  CHECK(throughout(300ms, [&] { return world.kv.has(world.task_key("third")); }));
  daemon->reload({{"executors", {{"Record", {{"exec", recorder}}}}}});
  REQUIRE(eventually([&] { return world.all_done(); }));
  CHECK(world.journal.run("third")->host == "again");
}

TEST_CASE("SIGHUP keeps the old configuration when the new one is bad, and says so") {
  World world;
  const auto daemon = world.leading_daemon("a");
  daemon->reload_text("{\"queues\": [");
  REQUIRE(eventually([&] { return daemon->logged("keeping the old one"); }));
  daemon->reload({{"concurency", 2}});
  REQUIRE(eventually([&] { return daemon->logged("unknown key; did you mean"); }));
  world.submit("1", 1000);
  REQUIRE(eventually([&] { return world.all_done(); }));
  CHECK(world.leads(*daemon));
}

TEST_CASE("of a reload, what needs a restart waits for one, and the rest is taken") {
  World world;
  const auto daemon = world.leading_daemon("a", {}, "none");
  const auto pending = [&] {
    return world.kv.get_json(world.root + "default/members/" + daemon->node())
        .value("reload_error", "");
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

TEST_SUITE_END();

}  // namespace
}  // namespace lictor::live
