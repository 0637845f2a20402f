// Every reason that keeps a task from running, from the facts by which the core decides.

#include <algorithm>

#include "alone.h"

namespace lictor::core::test {
namespace {

using Kind = Reason::Kind;

struct Asked : Alone {
  using Alone::Alone;

  // The given reasons, in order.
  std::vector<Kind> kinds(const std::string& id) {
    std::vector<Kind> found;
    for (const Reason& reason : why(id)) found.push_back(reason.kind);
    return found;
  }
};

TEST_CASE("why: not due, in backoff, no executor, unknown") {
  QueueOptions options = options_of("a");
  options.types["T"] = *options.any_type;
  options.any_type.reset();
  Asked a{options};
  const WallTime later = a.cluster.wall() + 1h;
  a.cluster.put("later", [&](Task& task) {
    task.type = "T";
    task.execute_at = later;
  });
  a.cluster.put("failed", [&](Task& task) {
    task.type = "T";
    task.stamp.attempt = 2;
    task.stamp.error = "exit status 3";
    task.stamp.retry_at = a.cluster.wall() + 1min;
  });
  a.cluster.put("alien");
  a.cluster.put_and_run("later alien", 1s, a.cluster.due_in(24h));

  REQUIRE(a.kinds("later") == std::vector{Kind::kNotDue});
  CHECK(a.why("later")[0].until == later);
  REQUIRE(a.kinds("failed") == std::vector{Kind::kBackoff});
  CHECK(a.why("failed")[0].text == "exit status 3");
  CHECK(a.kinds("alien") == std::vector{Kind::kNoExecutor});
  CHECK(a.kinds("later alien") == std::vector{Kind::kNoExecutor, Kind::kNotDue});
  CHECK(a.kinds("nobody") == std::vector{Kind::kUnknownTask});
  a.cluster.pause_and_run(true, 100ms);
  CHECK(a.kinds("later") == std::vector{Kind::kPaused, Kind::kNotDue});
}

TEST_CASE("why: behind others, behind its serialKey, no free slot, running") {
  Asked a;
  a.cluster.pause_and_run(true, 100ms);
  for (const char* id : {"1", "2", "3", "4"}) {
    a.put(id, "Any", id == std::string{"3"} ? "" : "db");
  }
  a.cluster.run_for(100ms);
  CHECK(a.kinds("1") == std::vector{Kind::kPaused});
  CHECK(a.kinds("2") == std::vector{Kind::kPaused, Kind::kOrder});

  a.cluster.pause_and_run(false, 100ms);
  REQUIRE(a.kinds("1") == std::vector{Kind::kRunning});
  CHECK(a.why("1")[0].count == 1);
  CHECK(a.kinds("2") == std::vector{Kind::kSerial, Kind::kConcurrency});
  CHECK(a.why("2")[0].key == "tasks/1");
  CHECK(a.why("2")[0].text == "db");
  CHECK(a.kinds("3") == std::vector{Kind::kConcurrency});
  REQUIRE(a.kinds("4").front() == Kind::kSerial);
  CHECK(a.why("4")[0].count >= 1);
  a.cluster.tell(a.daemon, StopRequested{});
  a.cluster.run_for(100ms);
  CHECK(a.kinds("3") == std::vector{Kind::kDraining, Kind::kConcurrency});
}

TEST_CASE("a task behind a hanging job of its serialKey is overdue while others start") {
  Asked a{options_with([](QueueOptions& o) { o.concurrency = 4; })};
  a.cluster.put_and_run("hangs", 100ms, [](Task& task) { task.serial_key = "db"; });
  REQUIRE(a.kinds("hangs") == std::vector{Kind::kRunning});
  CHECK(a.daemon.queue->oldest_due(a.cluster.now) == Duration::zero());
  a.cluster.put_and_run("behind", 5min, [](Task& task) { task.serial_key = "db"; });
  CHECK(a.kinds("behind") == std::vector{Kind::kSerial});
  const Duration due = a.daemon.queue->oldest_due(a.cluster.now);
  CHECK(due > 4min);
  CHECK(due <= 5min);
}

TEST_CASE("why: of a long queue no more tasks are counted than the loop has time for") {
  Asked a;
  a.cluster.pause_and_run(true, 100ms);
  for (std::size_t i = 10000; i < 10000 + Reason::kMostCounted + 10; ++i) {
    a.cluster.put(std::to_string(i));
  }
  a.cluster.run_for(5s);
  const std::vector<Reason> why = a.why(std::to_string(10000 + Reason::kMostCounted + 9));
  REQUIRE(why.size() == 2);
  CHECK(why[1].kind == Kind::kOrder);
  CHECK(why[1].count == Reason::kMostCounted);
}

TEST_CASE("why: the rate, the last chance, a write that is refused") {
  QueueOptions options = options_of("a");
  options.concurrency = 10;
  options.rate_limit = Rate{1min, 1};
  Asked a{options};
  a.cluster.exclusive = false;
  a.all_end_after(1ms);
  a.cluster.put_and_run("1", 1s);
  a.cluster.put_and_run("2", 1s);
  REQUIRE(a.kinds("2") == std::vector{Kind::kRate});
  CHECK(*a.why("2")[0].until > a.cluster.wall() + 50s);

  Asked b;
  b.cluster.store.no_right.insert("tasks/locked");
  b.cluster.put_and_run("locked", 1s);
  REQUIRE(b.kinds("locked") == std::vector{Kind::kRefused});
  CHECK(b.why("locked")[0].text == "writing the task: Permission denied");

  b.cluster.put_and_run("locked", 1s, b.cluster.due_in(1h));
  CHECK(b.kinds("locked") == std::vector{Kind::kNotDue});
  CHECK(count(b.daemon, Fact::Kind::kChanged) == 1);
}

TEST_CASE("a refusal is forgotten with its task") {
  Asked a;
  const auto refused = [&] { return a.daemon.queue->stats().refused; };
  for (int i = 0; i < 8; ++i) {
    const std::string key = "tasks/" + std::to_string(i);
    a.cluster.store.no_right.insert(key);
    a.cluster.put(std::to_string(i));
  }
  a.cluster.run_for(1s);
  CHECK(refused() == 8);
  // Withdrawn, expired, unreadable.
  for (int i = 0; i < 6; ++i) a.cluster.store.remove("tasks/" + std::to_string(i));
  a.cluster.store.no_right.clear();
  a.cluster.put("6", [&](Task& task) { task.expire_at = a.cluster.wall() - 1s; });
  a.cluster.store.write("tasks/7", "?");
  a.cluster.run_for(1s);
  CHECK(refused() == 0);
  CHECK(a.dead("dead/6").reason == "expired");
  CHECK(a.dead("dead/7").reason == "unreadable");
}

TEST_CASE("types without an executor are reported once, and not kept without end") {
  Asked a{options_with([](QueueOptions& o) { o.any_type.reset(); })};
  const auto told = [&](const std::string& type) {
    return std::count_if(a.daemon.log.begin(), a.daemon.log.end(), [&](const auto& entry) {
      const auto* fact = std::get_if<Fact>(&entry.effect);
      return fact != nullptr && fact->kind == Fact::Kind::kNoExecutor && fact->text == type;
    });
  };
  a.put("1", "T");
  a.put("2", "T");
  a.cluster.run_for(1s);
  CHECK(told("T") == 1);
  for (int i = 0; i < 1000; ++i) a.put("other" + std::to_string(i), "U" + std::to_string(i));
  a.cluster.run_for(10s);
  a.put("3", "T");
  a.cluster.run_for(10s);
  CHECK(told("U999") == 1);
  CHECK(told("T") == 2);  // it made room for the others
}

TEST_CASE("why: nobody leads, or the lease is not proved") {
  Asked a;
  a.cluster.put("1");
  a.cluster.fault = [](const Daemon&, const Effect&) { return Fault{.refused = true}; };
  a.cluster.run_for(30s);
  CHECK(a.kinds("1").front() == Kind::kNotLeading);
}

}  // namespace
}  // namespace lictor::core::test
