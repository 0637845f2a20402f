// How the leader learns of tasks: by their names.

#include <doctest/doctest.h>

#include "alone.h"

using namespace lictor;
using namespace lictor::core;
using namespace lictor::core::test;

TEST_SUITE_BEGIN("core");

TEST_CASE("a new task does not wait for what the first reading of a long list has cost") {
  QueueOptions options = options_of("a");
  Cluster cluster;
  for (int i = 0; i < 1'000; ++i) {
    Task& later = cluster.make("later" + std::to_string(i));
    later.execute_at = cluster.wall() + 24h;
    later.record = std::make_shared<const std::string>(std::to_string(i) + std::string(200, '.'));
    cluster.store.put(later);
  }
  cluster.add(options);
  REQUIRE(cluster.run_until([&] { return cluster.leader() != nullptr; }, 1s));
  cluster.run_for(100ms);
  cluster.put("now");
  CHECK(cluster.run_until([&] { return cluster.started.size() == 1; }, 500ms));
}

TEST_CASE("a task written again under a name that was just deleted is found in a long list") {
  Alone a;
  put_for_tomorrow(a.cluster, 1'000, 200);
  a.cluster.run_for(1s);
  a.cluster.put("1");
  a.cluster.run_for(1s);
  REQUIRE(a.cluster.started == Keys{"tasks/1"});

  SUBCASE("while we do not know that it is deleted") {
    a.once({.back = 50ms}, [](const Effect& e) { return finishes(e, "tasks/1"); });
    a.cluster.end_job(a.daemon, "tasks/1");
    a.cluster.run_for(1ms);
  }
  SUBCASE("in names that were asked for before it was deleted") {
    a.once({.out = 50ms}, [](const Effect& e) { return std::holds_alternative<ListTasks>(e); });
    a.cluster.put("2", [&](Task& task) { task.execute_at = a.cluster.wall() + 24h; });
    a.cluster.run_for(10ms);  // the next names are on their way
    a.cluster.end_job(a.daemon, "tasks/1");
    a.cluster.run_for(10ms);
  }
  REQUIRE_FALSE(a.cluster.store.has("tasks/1"));
  a.cluster.put("1");
  a.cluster.run_for(1s);  // nothing else changes
  CHECK(a.cluster.started == Keys{"tasks/1", "tasks/1"});
}

TEST_CASE("only what changed is read again") {
  Alone a;
  a.cluster.store.control(true, "");
  put_for_tomorrow(a.cluster, 10'000, 3'000);
  a.cluster.run_for(5s);
  const std::size_t before = all<FetchTasks>(a.daemon).size();
  a.cluster.put("11234");  // rewritten: due now, were it not for the pause
  a.cluster.run_for(20s);
  const auto fetches = all<FetchTasks>(a.daemon);
  REQUIRE(fetches.size() == before + 1);
  CHECK(fetches.back().keys == Keys{"tasks/11234"});
  a.cluster.store.control(false, "");
  a.cluster.run_for(1s);
  CHECK(a.cluster.started == Keys{"tasks/11234"});
}

TEST_CASE("what is new waits while more is ready than can be started, and no longer") {
  Alone a;
  a.cluster.store.control(true, "");
  const auto put = [&](int first, int count) {
    for (int i = first; i < first + count; ++i) a.cluster.put(std::to_string(1'000 + i));
  };
  put(0, 200);
  a.cluster.run_for(1s);
  const auto readings = [&] { return all<ListTasks>(a.daemon).size(); };
  const auto in_a_second = [&](int first) {
    const std::size_t before = readings();
    for (int i = 0; i < 100; ++i) {
      put(first + i, 1);
      a.cluster.run_for(10ms);
    }
    return readings() - before;
  };
  CHECK(in_a_second(200) > 20);
  put(300, 3'000);
  CHECK(in_a_second(4'000) < 15);
}

TEST_CASE("a listing that a token may not read withdraws nothing") {
  Alone a;
  a.cluster.put("1");
  a.cluster.put("2");
  a.cluster.run_for(100ms);
  a.cluster.store.unreadable = true;
  a.cluster.store.control(false, "");  // some write, for the watch to wake
  a.cluster.run_for(1s);
  CHECK(a.cluster.running() == 1);
  a.cluster.store.unreadable = false;
  a.cluster.end_job(a.daemon, "tasks/1");
  a.cluster.run_for(1s);
  CHECK(a.cluster.started == Keys{"tasks/1", "tasks/2"});
}

TEST_CASE("the folder and the control key are made once, also when the reply is lost") {
  Cluster cluster;
  int losses = 2;
  cluster.fault = [&](const Daemon&, const Effect& e) {
    Fault f;
    if (std::holds_alternative<Commit>(e) && losses > 0) {
      f.lose_request = losses == 2;
      f.lose_reply = true;
      --losses;
    }
    return f;
  };
  Daemon& daemon = cluster.add(options_of("a"));
  cluster.run_for(60s);
  CHECK(losses == 0);
  CHECK(cluster.store.list(ListTasks{}).marker);
  CHECK(cluster.store.read_control(WatchControl{}).found);
  CHECK(all<Commit>(daemon).size() < 8);
  CHECK(cluster.violations().empty());
}

TEST_CASE("a control key that may not be made is asked for now and then, not ever more") {
  Cluster cluster;
  cluster.store.no_right = {"control", "tasks/"};
  Daemon& daemon = cluster.add(options_of("a"));
  cluster.run_for(10min);
  std::size_t most = 0;
  for (const Commit& commit : all<Commit>(daemon)) most = std::max(most, commit.ops.size());
  CHECK(most <= 2);
  CHECK(all<Commit>(daemon).size() < 300);
}

TEST_SUITE_END();
