// What is deleted or rewritten while it waits, is held or runs.

#include <doctest/doctest.h>

#include "alone.h"

using namespace lictor;
using namespace lictor::core;
using namespace lictor::core::test;

TEST_SUITE_BEGIN("core");

TEST_CASE("a task deleted while it runs has its job stopped, and one written again runs") {
  Alone a;
  a.cluster.put("1");
  a.cluster.run_for(100ms);
  REQUIRE(a.cluster.running() == 1);
  a.cluster.store.remove("tasks/1");
  a.cluster.run_for(5ms);
  a.cluster.put("1");  // while the job is being stopped
  a.cluster.run_for(100ms);
  CHECK(count(a.daemon, Fact::Kind::kWithdrawn) == 1);
  CHECK(a.cluster.started == Keys{"tasks/1", "tasks/1"});
  CHECK(a.cluster.store.dead.empty());
}

TEST_CASE(
    "of a job that is being stopped for a deleted task a lost lead leaves nothing unwritten") {
  Alone a;
  a.cluster.put("1");
  a.cluster.run_for(100ms);
  a.cluster.store.remove("tasks/1");
  a.cluster.run_for(5ms);
  REQUIRE(a.cluster.running() == 1);
  a.cluster.kill_session();
  a.cluster.run_for(100ms);
  CHECK(count(a.daemon, Fact::Kind::kLeaseLost) == 1);
  CHECK(count(a.daemon, Fact::Kind::kUnwritten) == 0);
}

TEST_CASE("a task deleted while its finish is under way, and written again, runs again") {
  Alone a;
  a.cluster.put("1");
  a.cluster.run_for(100ms);
  a.cluster.spoil({.out = 500ms},
                  [](const Daemon&, const Effect& e) { return finishes(e, "tasks/1"); });
  a.cluster.end_job(a.daemon, "tasks/1");
  a.cluster.run_for(100ms);
  a.cluster.store.remove("tasks/1");
  a.cluster.put("1");
  a.cluster.run_for(1s);
  CHECK(a.cluster.started == Keys{"tasks/1", "tasks/1"});
}

TEST_CASE("a task rewritten while it runs runs again in its new version") {
  Alone a;
  a.cluster.put("1");
  a.cluster.run_for(100ms);
  a.cluster.put("1", with_record("another record"));
  a.cluster.run_for(100ms);
  CHECK(a.cluster.running() == 1);
  a.cluster.end_job(a.daemon, "tasks/1");
  a.cluster.run_for(100ms);
  REQUIRE(a.cluster.running() == 1);
  CHECK(*a.cluster.job("tasks/1")->task->record == "another record");
  CHECK(count(a.daemon, Fact::Kind::kResultVoid) == 1);
}

TEST_CASE("what is written beside our claim survives the rewrites that follow") {
  Alone a;
  a.cluster.put("1");
  a.cluster.run_for(100ms);
  a.cluster.store.touch("tasks/1", "a record with a remark");
  a.cluster.end_job(a.daemon, "tasks/1", JobEnding::kRetry, "no luck");
  a.cluster.run_for(100ms);
  CHECK(*a.cluster.store.task("tasks/1")->record == "a record with a remark");
  CHECK(a.cluster.store.task("tasks/1")->stamp.error == "no luck");
  a.cluster.run_for(2s);
  CHECK(*a.cluster.job("tasks/1")->task->record == "a record with a remark");
}

TEST_SUITE_END();
