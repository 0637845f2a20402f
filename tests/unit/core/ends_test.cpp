// The writes at a task's end, and the kept results.

#include <nlohmann/json.hpp>

#include "alone.h"
#include "core/history.h"

namespace lictor::core::test {
namespace {

JobPlan writing(std::vector<KvWrite> writes, std::string result = {}) {
  return JobPlan{10ms, JobEnding::kDone, {}, std::move(writes), std::move(result)};
}

// The kept result of a finished task.
nlohmann::json kept(const Alone& a, const std::string& id) {
  const dev::KvRecord* record = a.cluster.store.find("done/" + id);
  REQUIRE(record != nullptr);
  return nlohmann::json::parse(record->value);
}

QueueOptions with_history(HistoryLimits limits) {
  QueueOptions options = options_of("a");
  options.history = limits;
  return options;
}

TEST_CASE("a write whose condition does not hold fails the attempt, and writes nothing") {
  Alone a;
  a.cluster.plan = [](const Task& task) {
    const bool first = task.stamp.attempt == 1;
    return writing({{"app/x", "new", false, first ? std::optional<std::uint64_t>{77} : 0},
                    {"app/y", "new", false, {}}});
  };
  a.cluster.put("1");
  CHECK(a.cluster.run_until([&] { return a.cluster.started.size() == 2; }, 5s));
  CHECK(a.cluster.store.keys("app/").empty());
  CHECK(a.cluster.store.task("tasks/1")->stamp.error.find("its writes were refused") == 0);
  CHECK(count(a.daemon, Fact::Kind::kDone) == 0);
  CHECK(a.cluster.run_until([&] { return a.idle(); }, 5s));
  CHECK(a.cluster.store.keys("app/").size() == 2);
  a.cluster.run_for(1s);
  CHECK(count(a.daemon, Fact::Kind::kDone) == 1);
}

TEST_CASE("a task deleted before its end is written is withdrawn, with its job's writes") {
  Alone a;
  a.cluster.plan = [](const Task&) { return writing({{"app/x", "new", false, {}}}); };
  a.once({.out = 500ms}, [](const Effect& e) { return finishes(e, "tasks/1"); });
  a.cluster.put_and_run("1", 100ms);
  a.cluster.remove_and_run("tasks/1", 2s);
  CHECK(a.idle());
  CHECK(a.cluster.store.keys("app/").empty());
  CHECK(count(a.daemon, Fact::Kind::kDone) == 0);
  CHECK(count(a.daemon, Fact::Kind::kWithdrawn) == 1);
}

TEST_CASE("a task is dead, in the log, events and counters, when Consul has its dead letter") {
  bool expires = false, deleted = false;
  SUBCASE("its job fails") {}
  SUBCASE("expireAt passes") { expires = true; }
  SUBCASE("its job fails, and the task is deleted before") { deleted = true; }
  SUBCASE("expireAt passes, and the task is deleted before") { expires = deleted = true; }
  Alone a;
  a.all_end_after(10ms, JobEnding::kPermanent);
  a.once({.out = 500ms}, begins_with<BuryOp>);
  a.cluster.put_and_run("1", 100ms, [&](Task& task) {
    if (expires) task.expire_at = a.cluster.wall() - 1s;
  });
  CHECK(count(a.daemon, Fact::Kind::kDead) == 0);
  if (deleted) a.cluster.store.remove("tasks/1");
  a.cluster.run_for(2s);
  CHECK(a.idle());
  CHECK(count(a.daemon, Fact::Kind::kDead) == (deleted ? 0 : 1));
  CHECK(count(a.daemon, Fact::Kind::kWithdrawn) == (deleted ? 1 : 0));
  CHECK(a.cluster.store.dead.size() == (deleted ? 0 : 1));
}

TEST_CASE("a write that is not allowed fails its own task alone") {
  QueueOptions options = options_of("a");
  options.concurrency = 2;
  options.any_type->max_attempts = 1;
  Alone a{options};
  a.cluster.exclusive = false;
  a.cluster.store.no_right.insert("app/secret");
  a.cluster.plan = [](const Task& task) {
    return writing({{task.key == "tasks/1" ? "app/secret" : "app/x", "v", false, {}}});
  };
  a.cluster.put("1");
  a.cluster.put("2");
  CHECK(a.cluster.run_until([&] { return a.idle(); }, 5s));
  CHECK(a.cluster.store.has("app/x"));
  CHECK(a.dead("dead/1").error.find("Permission denied") != std::string::npos);
}

TEST_CASE("why: a job's end is not written, and what Consul said") {
  Alone a;
  a.cluster.put_and_run("1", 1s);
  a.cluster.store.no_right.insert("tasks/1");
  a.end_and_run("tasks/1", 1s);
  const Reason reason = a.why("1").front();
  CHECK(reason.kind == Reason::Kind::kRefused);
  CHECK(reason.text.find("Permission denied") != std::string::npos);
  CHECK(reason.until.has_value());
  a.cluster.store.no_right.clear();
  CHECK(a.cluster.run_until([&] { return a.idle(); }, 10s));
}

TEST_CASE("more writes than a transaction holds fail the attempt, in words") {
  Alone a{options_with([](QueueOptions& o) { o.any_type->max_attempts = 1; })};
  a.cluster.plan = [](const Task&) {
    std::vector<KvWrite> writes;
    for (std::size_t i = 0; i < limits::kMostOperations - 2; ++i)
      writes.push_back({"app/" + std::to_string(i), "v", false, {}});
    return writing(std::move(writes));
  };
  a.cluster.put("1");
  CHECK(a.cluster.run_until([&] { return a.idle(); }, 5s));
  CHECK(a.dead("dead/1").error.find("do not fit") != std::string::npos);
  CHECK(a.cluster.store.keys("app/").empty());
}

TEST_CASE("a finished task is kept with its result, the oldest beyond the limit are not") {
  Alone a{with_history({5, 1h})};
  a.cluster.plan = [](const Task& task) { return writing({}, "\"of " + task.id + '"'); };
  for (int i = 0; i < 12; ++i) a.cluster.put(std::to_string(100 + i));
  CHECK(a.cluster.run_until([&] { return a.idle(); }, 5s));
  a.cluster.run_for(5s);
  REQUIRE(a.cluster.store.keys("done/").size() == 5);
  CHECK(a.cluster.store.keys("done/").front() == "done/107");
  const auto last = kept(a, "111");
  CHECK(last["result"] == "of 111");
  CHECK(last["attempts"] == 1);
  CHECK(last["record"] == nlohmann::json::parse(a.cluster.store.value_of(a.cluster.make("111"))));
  // The next leader finds them, and goes on.
  a.cluster.crash(a.daemon);
  a.cluster.restart_after(a.daemon, 1s);
  a.cluster.put("200");
  CHECK(a.cluster.run_until([&] { return a.idle(); }, 60s));
  a.cluster.run_for(5s);
  CHECK(a.cluster.store.keys("done/").size() == 5);
  CHECK(a.cluster.store.has("done/200"));
  CHECK_FALSE(a.cluster.store.has("done/107"));
}

TEST_CASE("entries that the cancel command adds to the history are pruned within a day") {
  Alone a{with_history({5, 0s})};
  CHECK(a.cluster.run_until([&] { return a.idle(); }, 5s));
  a.cluster.run_for(5s);
  for (int i = 0; i < 9; ++i) a.cluster.store.write("done/c" + std::to_string(i), "{}");
  a.cluster.run_for(23h);
  CHECK(a.cluster.store.keys("done/").size() == 9);
  a.cluster.run_for(2h);
  CHECK(a.cluster.store.keys("done/").size() == 5);
}

TEST_CASE("while the history is read once more, nothing of it is due") {
  const QueueOptions options = with_history({5, 1h});
  Requests requests;
  History history{options, requests};
  Instant now{1h};
  const WallTime wall{};
  Effects out;
  history.start(now);
  history.on_time(now, out);
  const auto listed = [&] {
    HistoryListed reply;
    reply.request = std::get<ListHistory>(out.back()).request;
    reply.ok = true;
    reply.entries.push_back({"tasks/1", 7, wall});
    return reply;
  };
  HistoryListed failed = listed();
  failed.ok = false;
  now += 3s;
  history.on(now, failed, out);
  CHECK(history.next_deadline() == now + 300s);  // a hundredth of the time
  now += 300s;
  out.clear();
  history.on_time(now, out);
  history.on(now, listed(), out);
  static_cast<void>(history.take_old(now, wall, 10));
  now += 24h;
  history.on_time(now, out);
  REQUIRE(out.size() == 2);
  CHECK(history.next_deadline() > now);
  history.on(now, listed(), out);
  CHECK(history.next_deadline() <= now);
}

TEST_CASE("an entry that is too old is deleted alone, and a key has one entry") {
  const QueueOptions options = with_history({2, 1h});
  Requests requests;
  History history{options, requests};
  Effects out;
  history.start(kStart);
  history.on_time(kStart, out);
  HistoryListed empty{std::get<ListHistory>(out.back()).request, true};
  history.on(kStart, empty, out);
  history.add(kStart, "a", 1, kWallStart - 3h);
  history.add(kStart, "b", 2, kWallStart - 2h);
  for (const std::uint64_t index : {3U, 4U}) history.add(kStart, "a", index, kWallStart);
  const auto old = history.take_old(kStart + 2s, kWallStart, 10);
  REQUIRE(old.size() == 1);
  CHECK(old.front().key == "b");
  CHECK(history.size() == 1);
}

TEST_CASE("a kept result is deleted when it is too old, also when nothing else happens") {
  Alone a{with_history({1000, 1min})};
  a.all_end_after(10ms);
  a.cluster.put("1");
  CHECK(a.cluster.run_until([&] { return a.idle(); }, 5s));
  a.cluster.run_for(50s);
  CHECK(a.cluster.store.keys("done/").size() == 1);
  a.cluster.run_for(20s);
  CHECK(a.cluster.store.keys("done/").empty());
}

TEST_CASE("a result beyond what a transaction holds is left out, and the task is finished") {
  Alone a{options_with([](QueueOptions& o) { o.max_transaction_bytes = 20'000; },
                       with_history({5, 1h}))};
  a.cluster.plan = [](const Task&) { return writing({}, '"' + std::string(50'000, 'x') + '"'); };
  a.cluster.put("1");
  CHECK(a.cluster.run_until([&] { return a.idle(); }, 5s));
  const auto done = kept(a, "1");
  CHECK_FALSE(done.contains("result"));
  CHECK(done["result_left_out"] == true);
  CHECK(count(a.daemon, Fact::Kind::kResultLeftOut) == 1);
}

TEST_CASE("if record and result do not both fit, the result is kept") {
  Alone a{with_history({5, 1h})};
  a.cluster.plan = [](const Task&) { return writing({}, '"' + std::string(250'000, 'x') + '"'); };
  a.cluster.put("1", with_record(std::string(250'000, '.')));
  CHECK(a.cluster.run_until([&] { return a.idle(); }, 5s));
  const auto done = kept(a, "1");
  CHECK(done["result"].get<std::string>().size() == 250'000);
  CHECK_FALSE(done.contains("record"));
  CHECK(count(a.daemon, Fact::Kind::kResultLeftOut) == 0);
}

TEST_CASE("a result that cannot be kept is left out and reported, with history and without") {
  for (const bool keeps : {false, true}) {
    CAPTURE(keeps);
    Alone a{keeps ? with_history({5, 1h}) : options_of("a")};
    a.cluster.plan = [](const Task&) {
      JobPlan plan = writing({}, {});
      plan.result_fault = "expected JSON";
      return plan;
    };
    a.cluster.put("1");
    CHECK(a.cluster.run_until([&] { return a.idle(); }, 5s));
    CHECK(a.cluster.started.size() == 1);
    CHECK(a.cluster.store.dead.empty());
    CHECK(count(a.daemon, Fact::Kind::kResultLeftOut) == 1);
    if (keeps) CHECK(kept(a, "1")["result_left_out"] == true);
  }
}

TEST_CASE("at most once: a job that a drain stopped is not run again") {
  QueueOptions options = options_of("a");
  options.any_type->delivery = Delivery::kAtMostOnce;
  options.drain_timeout = 1s;
  Alone a{options};
  a.cluster.put_and_run("1", 100ms);
  a.cluster.tell(a.daemon, StopRequested{});
  a.cluster.store.write("tasks/2", "{");  // nothing is buried in a drain
  a.cluster.run_for(10s);
  CHECK(a.cluster.store.dead.size() == 1);
  CHECK(a.dead("dead/1").reason == "stopped");
}

TEST_CASE("tasks claimed ahead are given back at a pause, not counted, and start in order later") {
  for (const Delivery delivery : {Delivery::kAtLeastOnce, Delivery::kAtMostOnce}) {
    QueueOptions options = options_of("a");
    options.prefetch = 2;
    options.any_type->delivery = delivery;
    Alone a{options};
    for (const char* id : {"1", "2", "3", "4"}) a.cluster.put(id);
    a.cluster.run_for(1s);
    CHECK_FALSE(a.cluster.store.task("tasks/4")->stamp.taken);
    // Not if a lost owner would end it.
    CHECK(a.cluster.store.task("tasks/3")->stamp.taken == (delivery == Delivery::kAtLeastOnce));
    a.cluster.pause_and_run(true, 1s);
    for (const char* id : {"2", "3", "4"}) {
      const Stamp& stamp = a.cluster.store.task(std::string{"tasks/"} + id)->stamp;
      CHECK_FALSE(stamp.taken);
      CHECK(stamp.attempt == 0);
    }
    CHECK(a.cluster.store.task("tasks/1")->stamp.taken);  // it runs on
    a.cluster.store.control(false, "");
    a.all_end_after(1ms);
    a.cluster.end_job(a.daemon, "tasks/1");
    CHECK(a.cluster.run_until([&] { return a.idle(); }, 5s));
    CHECK(a.cluster.started == Keys{"tasks/1", "tasks/2", "tasks/3", "tasks/4"});
  }
}

TEST_CASE("a task that is rewritten while it is claimed ahead runs as it is then, in its place") {
  Alone a{options_with([](QueueOptions& o) { o.prefetch = 3; })};
  for (const char* id : {"1", "2", "3"}) a.cluster.put(id);
  a.cluster.put_and_run("4", 1s, [&](Task& task) { task.expire_at = a.cluster.wall() + 3s; });
  // One again, without our claim, and later; one edited beside it.
  Task& again = a.cluster.make("2");
  again.execute_at = a.cluster.wall() + 1min;
  again.record = std::make_shared<const std::string>("again");
  a.cluster.store.put(again);
  a.cluster.store.touch("tasks/3", "edited");
  a.cluster.store.touch("tasks/4", "edited, not begun");
  a.cluster.run_for(5s);
  a.all_end_after(1ms);
  a.cluster.end_job(a.daemon, "tasks/1");
  CHECK(a.cluster.run_until([&] { return a.idle(); }, 2min));
  CHECK(a.cluster.started == Keys{"tasks/1", "tasks/3", "tasks/2"});
  CHECK(a.cluster.done.contains("again"));
  CHECK(a.cluster.done.contains("edited"));
  CHECK(a.dead("dead/4").reason == "expired");
}

}  // namespace
}  // namespace lictor::core::test
