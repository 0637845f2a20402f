// SIGHUP: what can change while a daemon runs, and what cannot.

#include <doctest/doctest.h>

#include "process.h"
#include "world.h"

namespace lictor::live {
namespace {

using nlohmann::json;

TEST_SUITE_BEGIN("live");

TEST_CASE("SIGHUP takes over executors and limits; running jobs go on") {
  World world;
  const auto daemon = world.daemon("a", {}, "none");
  world.submit("long", 1000, {{"sleep", 6000}});
  world.submit("second", 1001, {{"sleep", 300'000}});
  REQUIRE(eventually([&] { return world.journal.run("long").has_value(); }));
  const Run long_run = *world.journal.run("long");

  const json recorder = json::array({LICTOR_JOB_RECORDER, world.journal.file(), "anew", "none"});
  daemon->reload({{"concurrency", 2}, {"executors", {{"*", {{"exec", recorder}}}}}});
  REQUIRE(eventually([&] { return daemon->logged("configuration reloaded"); }));
  // Two at a time now, and the second by the new executor.
  REQUIRE(eventually([&] { return world.journal.run("second").has_value(); }));
  CHECK(world.journal.run("second")->host == "anew");
  CHECK(is_alive(long_run.pid));
  REQUIRE(eventually([&] { return !world.kv.has(world.task_key("long")); }));
  CHECK(world.journal.run("long")->ended);

  // A type without an executor waits, and goes on when it has one.
  daemon->reload({{"executors", {{"*", nullptr}, {"Other", {{"noop", json::object()}}}}}});
  world.submit("third", 1002);
  REQUIRE(eventually([&] { return daemon->logged("no executor for this type"); }));
  world.kv.remove(world.task_key("second"));
  CHECK(throughout(300ms, [&] { return world.kv.has(world.task_key("third")); }));
  daemon->reload({{"executors", {{"Record", {{"exec", recorder}}}}}});
  REQUIRE(eventually([&] { return world.all_done(); }));
  CHECK(world.journal.run("third")->host == "anew");
}

TEST_CASE("SIGHUP keeps the old configuration when the new one is bad, and says so") {
  World world;
  const auto daemon = world.daemon("a");
  REQUIRE(eventually([&] { return world.leads(*daemon); }));
  daemon->reload_text("{\"queues\": [");
  REQUIRE(eventually([&] { return daemon->logged("keeping the old one"); }));
  daemon->reload({{"session_ttl", "20s"}});
  REQUIRE(
      eventually([&] { return daemon->logged("needs a restart: queue default: session_ttl"); }));
  daemon->reload({{"session_ttl", "10s"}, {"concurency", 2}});
  REQUIRE(eventually([&] { return daemon->logged("unknown key; did you mean"); }));
  world.submit("1", 1000);
  REQUIRE(eventually([&] { return world.all_done(); }));
  CHECK(world.leads(*daemon));
}

TEST_SUITE_END();

}  // namespace
}  // namespace lictor::live
