// Tasks due much later are not kept in memory, and start in time all the same.

#include "alone.h"

namespace lictor::core::test {
namespace {

using Kind = Reason::Kind;

constexpr int kLongList = 200;

// A leader at work on a long list, all of it for tomorrow.
struct Distant : Alone {
  explicit Distant(QueueOptions options = options_of("a")) : Alone(std::move(options)) {
    all_end_after(1ms);
    put_for_tomorrow(cluster, 1'000, kLongList);
    cluster.run_for(1s);
  }
  Task& later(const std::string& id, std::chrono::milliseconds in) {
    Task& task = cluster.make(id);
    task.execute_at = cluster.wall() + in;
    return task;
  }
  void put(const std::string& id, std::chrono::milliseconds in) {
    cluster.store.put(later(id, in));
    cluster.run_for(1s);
  }
  Queue::Stats held() { return daemon.queue->stats(); }
};

TEST_CASE("a task of much later is not held, and starts in time") {
  Distant a;
  CHECK(a.held().distant == kLongList);
  const Instant due = a.cluster.now + 1h;
  a.put("1", 1h);
  const auto before = a.held();
  CHECK(before.tasks + before.distant == kLongList + 1);
  CHECK(a.daemon.queue->waiting() == kLongList + 1);

  a.cluster.run_for(57min);
  CHECK(a.held().distant == before.distant);
  a.cluster.run_for(2min + 10s);
  CHECK(a.held().distant == before.distant - 1);
  CHECK(a.held().tasks == before.tasks + 1);
  CHECK(a.cluster.started.empty());
  a.cluster.run_for(1min);
  REQUIRE(a.cluster.started == Keys{"tasks/1"});
  CHECK(*a.started_at("tasks/1") - due < 10ms);
  // And the next day.
  CHECK(a.cluster.run_until([&] { return a.idle(); }, 25h));
  CHECK(a.held().distant == 0);
}

TEST_CASE("distant tasks are read once a minute at most, many at a time") {
  Distant a;
  for (int i = 0; i < 120; ++i) {
    a.cluster.store.put(a.later("s" + std::to_string(i), 1h + std::chrono::seconds{i}));
  }
  a.cluster.run_for(57min);
  a.daemon.log.clear();
  a.cluster.run_for(2min);
  CHECK(all<FetchTasks>(a.daemon).size() >= 1);
  CHECK(all<FetchTasks>(a.daemon).size() <= 4);
  a.cluster.run_for(4min);
  CHECK(a.cluster.started.size() == 120);
}

TEST_CASE("a task of much later that is rewritten is due as it says then") {
  Distant a;
  a.put("1", 1h);
  SUBCASE("now") {
    a.put("1", 0ms);
    CHECK(a.cluster.started == Keys{"tasks/1"});
  }
  SUBCASE("sooner") {
    a.put("1", 10min);
    CHECK(a.cluster.started.empty());
    a.cluster.run_for(10min);
    CHECK(a.cluster.started == Keys{"tasks/1"});
  }
  SUBCASE("later") {
    a.put("1", 2h);
    a.cluster.run_for(1h + 59min);
    CHECK(a.cluster.started.empty());
    a.cluster.run_for(2min);
    CHECK(a.cluster.started == Keys{"tasks/1"});
  }
  SUBCASE("later, while it was about to be read") {
    a.cluster.run_for(59min);
    const auto before = a.held();
    a.put("1", 2h);
    CHECK(a.held().distant == before.distant + 1);
    a.cluster.run_for(1h + 55min);
    CHECK(a.cluster.started.empty());
    a.cluster.run_for(10min);
    CHECK(a.cluster.started == Keys{"tasks/1"});
  }
  SUBCASE("with an unreadable record") {
    a.cluster.store.write("tasks/1", "{");
    a.cluster.run_for(1s);
    CHECK(a.cluster.store.dead.size() == 1);
    CHECK(a.why("1")[0].kind == Kind::kUnknownTask);
  }
}

TEST_CASE("a task of much later that is withdrawn is forgotten") {
  Distant a;
  a.put("1", 1h);
  const auto before = a.held();
  a.cluster.remove_and_run("tasks/1", 1s);
  CHECK(a.held().distant == before.distant - 1);
  a.put("1", 1h);  // and may come back
  CHECK(a.held().distant == before.distant);
  for (int i = 0; i < kLongList; ++i) a.cluster.store.remove("tasks/" + std::to_string(1'000 + i));
  a.cluster.run_for(2s);
  CHECK(a.held().tasks + a.held().distant == 1);
  a.cluster.run_for(1h);
  CHECK(a.cluster.started == Keys{"tasks/1"});
}

TEST_CASE("a task that loses its executor by a reload is reported, though it is for much later") {
  QueueOptions options = options_of("a");
  options.types["T"] = *options.any_type;
  options.types["U"] = *options.any_type;
  Distant a{options};
  a.cluster.put_and_run("1", 1s, [&](Task& task) {
    task.type = "T";
    task.execute_at = a.cluster.wall() + 1h;
  });
  REQUIRE(a.why("1")[0].kind == Kind::kNotDue);
  const auto before = a.held();
  const auto reconfigure = [&] { a.cluster.reload(a.daemon, options, 1s); };
  options.types.erase("T");
  SUBCASE("and has another") {
    reconfigure();
    CHECK(a.held().distant == before.distant);
    CHECK(a.why("1")[0].kind == Kind::kNotDue);
  }
  SUBCASE("and has none") {
    options.types["db"] = *options.any_type;
    options.any_type.reset();
    reconfigure();
    CHECK(a.why("1")[0].kind == Kind::kNoExecutor);
    CHECK(count(a.daemon, Fact::Kind::kNoExecutor) >= 1);
    CHECK(count(a.daemon, Fact::Kind::kChanged) == 0);
    options.types["T"] = options.types["U"];
    reconfigure();
    CHECK(a.why("1")[0].kind == Kind::kNotDue);
  }
  a.cluster.run_for(1h);
  CHECK(a.cluster.started == Keys{"tasks/1"});
}

TEST_CASE("a task that is tried again, or expires first, is held") {
  Distant a;
  a.cluster.plan = [](const Task& task) {
    return JobPlan{1ms, task.stamp.attempt == 1 ? JobEnding::kRetry : JobEnding::kDone, "no luck"};
  };
  const auto before = a.held();
  a.cluster.put("slow", [&](Task& task) { task.backoff = Backoff{1h, 1h, 1, 0}; });
  Task& stale = a.later("stale", 2h);
  stale.expire_at = a.cluster.wall() + 1h;
  a.cluster.store.put(stale);
  a.cluster.run_for(1s);
  CHECK(a.held().distant == before.distant);
  CHECK(a.held().tasks == before.tasks + 2);
  a.cluster.run_for(1h);
  CHECK(a.cluster.started == Keys{"tasks/slow", "tasks/slow"});
  CHECK(a.dead("dead/stale").reason == "expired");
}

}  // namespace
}  // namespace lictor::core::test
