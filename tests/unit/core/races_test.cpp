// Events of a key while a request of ours is under way for it, and the effect of a lane, the
// control key and a flood of expiries on the other tasks.

#include "alone.h"

namespace lictor::core::test {
namespace {

// The reply to the claim of `key` takes 300 ms, so that the watch shows what happens meanwhile.
void delay_claim_reply(Alone& a, const std::string& key) {
  a.once(Fault{.back = 300ms}, [=](const Effect& effect) { return claims(effect, key); });
}

std::size_t commits_before(const Daemon& daemon, const std::string& finished_key) {
  std::size_t count = 0;
  for (const auto& logged : daemon.log) {
    if (!std::holds_alternative<Commit>(logged.effect)) continue;
    ++count;
    if (finishes(logged.effect, finished_key)) return count;
  }
  return static_cast<std::size_t>(-1);
}

TEST_CASE("a task deleted while its claim is under way is not started") {
  Alone a;
  delay_claim_reply(a, "tasks/1");
  a.cluster.put_and_run("1", 50ms);
  REQUIRE(a.cluster.store.task("tasks/1")->stamp.taken);
  a.cluster.remove_and_run("tasks/1", 1s);
  CHECK(a.cluster.started.empty());
  CHECK(count(a.daemon, Fact::Kind::kWithdrawn) == 1);
  a.cluster.put_and_run("1", 1s);
  CHECK(a.cluster.started == Keys{"tasks/1"});
}

TEST_CASE("a task rewritten while its claim is under way runs in its new version afterwards") {
  Alone a;
  delay_claim_reply(a, "tasks/1");
  a.cluster.put_and_run("1", 50ms);
  REQUIRE(a.cluster.store.task("tasks/1")->stamp.taken);
  a.cluster.put_and_run("1", 1s, with_record("another record"));
  CHECK(a.cluster.started == Keys{"tasks/1"});
  REQUIRE(a.cluster.running() == 1);
  a.cluster.end_job(a.daemon, "tasks/1");  // as if it had been rewritten just after its start
  a.cluster.run_for(1s);
  REQUIRE(a.cluster.started.size() == 2);
  CHECK(*a.cluster.job("tasks/1")->task->record == "another record");
  CHECK(count(a.daemon, Fact::Kind::kResultVoid) == 1);
  CHECK(count(a.daemon, Fact::Kind::kLost) == 0);
}

TEST_CASE("a claimed task that is read again runs, also where Consul was restored meanwhile") {
  Alone a;
  a.all_end_after(1ms);
  a.cluster.put("1");
  const dev::KvRecord before = *a.cluster.store.find("tasks/1");
  bool is_claimed = false;
  a.cluster.fault = [&](const Daemon&, const Effect& effect) {
    Fault fault;
    if (claims(effect, "tasks/1")) {
      fault.back = 300ms;
      is_claimed = true;
    }
    if (is_claimed && std::holds_alternative<FetchTasks>(effect)) fault.out = 500ms;
    return fault;
  };
  a.cluster.run_for(50ms);
  a.cluster.remove_and_run("tasks/1", 50ms);
  a.cluster.put("1", with_record("another record"));
  const auto is_checked = [&] { return a.daemon.queue->state_text("tasks/1") == "checking"; };
  REQUIRE(a.cluster.run_until(is_checked, 1s));
  a.cluster.store.restore(before);  // the snapshot is from before the claim
  CHECK(a.cluster.run_until([&] { return a.idle(); }, 30s));
  CHECK(a.cluster.started.size() == 1);
}

TEST_CASE("an older version of a waiting task that a restored snapshot brings back counts") {
  for (const auto later : {5min, 60min * 24 * 30}) {  // the second is distant
    Alone a;
    a.all_end_after(1ms);
    const auto due_in = [&](Duration span) {
      return [&a, span](Task& task) {
        task.execute_at = a.cluster.wall() + std::chrono::floor<std::chrono::milliseconds>(span);
      };
    };
    a.cluster.put_and_run("1", 100ms, due_in(10s));
    const dev::KvRecord older = *a.cluster.store.find("tasks/1");
    a.cluster.put_and_run("1", 5s, due_in(later));
    a.cluster.store.restore(older);
    a.cluster.run_for(30s);
    CHECK(a.cluster.started.size() == 1);
  }
}

TEST_CASE("a task written again before its lost finish is read does not hide that it is done") {
  Alone a;
  a.once({.lose_reply = true}, [](const Effect& e) { return finishes(e, "tasks/1"); });
  a.cluster.put_and_run("1", 100ms);
  a.end_and_run("tasks/1", 100ms);
  REQUIRE(a.idle());
  a.cluster.put_and_run("1", 10s, with_record("another record"));
  CHECK(count(a.daemon, Fact::Kind::kDone) == 1);
  CHECK(count(a.daemon, Fact::Kind::kResultVoid) == 0);
  CHECK(a.cluster.running() == 1);
}

TEST_CASE("a task whose claim is refused after its executor went waits for an executor") {
  QueueOptions options = options_of("a");
  options.types["T"] = *options.any_type;
  options.any_type.reset();
  Alone a{options};
  a.cluster.store.no_right.insert("tasks/1");
  a.once({.back = 50ms}, [](const Effect& e) { return claims(e, "tasks/1"); });
  a.cluster.put_and_run("1", 20ms, [&](Task& task) { task.type = "T"; });
  REQUIRE(a.daemon.queue->state_text("tasks/1") == "claiming");
  options.types.clear();
  a.cluster.reload(a.daemon, options, 10s);
  CHECK(a.daemon.queue->state_text("tasks/1") == "no executor");
}

TEST_CASE("a task written again while its old record goes to the dead letters runs") {
  Alone a;
  a.once({.back = 200ms}, begins_with<BuryOp>);
  a.cluster.put("1", [&](Task& task) { task.expire_at = a.cluster.wall() - 1s; });
  REQUIRE(a.cluster.run_until([&] { return !a.cluster.store.has("tasks/1"); }, 1s));
  a.cluster.put_and_run("1", 1s, [&](Task& task) { task.expire_at.reset(); });
  CHECK(a.cluster.started == Keys{"tasks/1"});
}

TEST_CASE("many tasks that expire together do not hold up the end of one that runs") {
  Alone a{options_with([](QueueOptions& o) { o.transactions_in_flight = 1; })};
  a.cluster.put_and_run("1", 100ms);
  REQUIRE(a.cluster.running() == 1);
  const WallTime at = a.cluster.wall() + 10s;
  constexpr int kMany = 3'000;
  for (int i = 0; i < kMany; ++i) {
    a.cluster.put("x" + std::to_string(i), [&](Task& task) { task.expire_at = at; });
  }
  a.cluster.run_for(9s);
  a.daemon.log.clear();
  a.cluster.run_for(1s + 1ms);
  a.end_and_run("tasks/1", 1s);
  CHECK(commits_before(a.daemon, "tasks/1") < 5);
  CHECK(a.cluster.run_until([&] { return a.cluster.store.dead.size() == kMany; }, 1min));
}

TEST_CASE("an answer about the control key that is older than the one before changes nothing") {
  Alone a;
  a.cluster.pause_and_run(false, 100ms);
  a.cluster.pause_and_run(true, 100ms);
  REQUIRE(a.daemon.queue->paused());
  const RequestId watch = all<WatchControl>(a.daemon).back().request;
  const std::uint64_t index = all<WatchControl>(a.daemon).back().index;
  ControlRead old;
  old.request = watch;
  old.ok = old.found = true;
  old.consul_index = index - 1;
  SUBCASE("that it is not paused") {}
  SUBCASE("that somebody asks for a step-down") { old.step_down = "of long ago"; }
  SUBCASE("that there is none") { old.found = false; }
  a.cluster.tell(a.daemon, old);
  a.cluster.put_and_run("1", 5s);
  CHECK(a.daemon.queue->paused());
  CHECK(a.cluster.started.empty());
  CHECK(count(a.daemon, Fact::Kind::kSteppingDown) == 0);
  CHECK(count(a.daemon, Fact::Kind::kResumed) == 0);
}

// Its job is stopped.
TEST_CASE("a task deleted while it runs, and written again, goes before one that came after") {
  for (const std::uint32_t concurrency : {1U, 2U}) {
    for (const Duration stops : {1ms, 10ms, 400ms, 5000ms}) {
      for (const Duration pause : {0ms, 3ms, 100ms, 600ms}) {
        INFO(concurrency, " ", stops.count(), " ", pause.count());
        Alone a{options_with([&](QueueOptions& o) { o.concurrency = concurrency; })};
        const auto with_key = [](Task& task) { task.serial_key = "s"; };
        a.cluster.stopping = [&](Duration) { return stops; };
        a.cluster.put_and_run("1", 1s, with_key);
        a.cluster.remove_and_run("tasks/1", pause);
        a.all_end_after(1s);
        a.cluster.put_and_run("1", pause, with_key);
        a.cluster.put("2", with_key);
        CHECK(a.cluster.run_until([&] { return a.idle(); }, 20s));
        CHECK(a.cluster.started == Keys{"tasks/1", "tasks/1", "tasks/2"});
        CHECK(count(a.daemon, Fact::Kind::kWithdrawn) == 1);
        CHECK(a.cluster.store.dead.empty());
      }
    }
  }
}

TEST_CASE("a task deleted while it runs is read again when others of its time are read") {
  Alone a{options_with([](QueueOptions& o) { o.concurrency = 2; })};
  const auto with_key = [](Task& task) { task.serial_key = "s"; };
  a.cluster.stopping = [](Duration) { return Duration{400ms}; };
  a.cluster.put_and_run("1", 1s, with_key);
  a.cluster.remove_and_run("tasks/1", 100ms);
  a.all_end_after(10ms);
  a.cluster.put_and_run("1", 100ms, with_key);
  a.cluster.put_and_run("2", 100ms, with_key);
  a.cluster.spoil({.back = 1s}, [](const Daemon&, const Effect& effect) {
    const auto* fetch = std::get_if<FetchTasks>(&effect);
    return fetch != nullptr && fetch->keys.front() == "tasks/3";
  });
  a.cluster.put_and_run("3", 200ms, with_key);  // when the job has ended, it is still being read
  CHECK(a.why("1").front().kind == Reason::Kind::kReading);
  CHECK(a.cluster.run_until([&] { return a.idle(); }, 5s));
  CHECK(a.cluster.started == Keys{"tasks/1", "tasks/1", "tasks/2", "tasks/3"});
}

TEST_CASE(
    "a task deleted while it runs, and written again last, goes after those that are unread") {
  Alone a{options_with([](QueueOptions& o) { o.concurrency = 2; })};
  a.cluster.stopping = [](Duration) { return Duration{400ms}; };
  a.put("1", "Any", "s");
  a.cluster.run_for(1s);
  a.cluster.remove_and_run("tasks/1", 100ms);
  a.all_end_after(10ms);
  a.cluster.spoil<FetchTasks>({.back = 1s});
  for (const char* id : {"2", "3", "4", "5", "6", "7", "8", "1"}) a.put(id, "Any", "s");
  CHECK(a.cluster.run_until([&] { return a.idle(); }, 20s));
  CHECK(a.cluster.started == Keys{"tasks/1", "tasks/2", "tasks/3", "tasks/4", "tasks/5", "tasks/6",
                                  "tasks/7", "tasks/8", "tasks/1"});
}

TEST_CASE("a task that is done, and written again at once, goes before one that came after") {
  for (const Duration pause : {0ms, 1ms, 2ms, 3ms, 5ms, 100ms}) {
    CAPTURE(pause.count());
    Alone a;
    a.cluster.put_and_run("1", 1s);
    a.cluster.end_job(a.daemon, "tasks/1");
    REQUIRE(a.cluster.run_until([&] { return a.idle(); }, 1s));
    a.all_end_after(1s);
    a.cluster.put_and_run("1", pause);
    a.cluster.put("2");
    CHECK(a.cluster.run_until([&] { return a.idle(); }, 20s));
    CHECK(a.cluster.started == Keys{"tasks/1", "tasks/1", "tasks/2"});
  }
}

TEST_CASE("lost leadership leaves nothing unwritten of a job stopped for a deleted task") {
  Alone a;
  a.cluster.put_and_run("1", 100ms);
  a.cluster.remove_and_run("tasks/1", 5ms);
  REQUIRE(a.cluster.running() == 1);
  a.cluster.kill_session();
  a.cluster.run_for(100ms);
  CHECK(count(a.daemon, Fact::Kind::kLeaseLost) == 1);
  CHECK(count(a.daemon, Fact::Kind::kUnwritten) == 0);
}

TEST_CASE("a task deleted while its finish is under way, and written again, runs again") {
  Alone a;
  a.cluster.put_and_run("1", 100ms);
  a.cluster.spoil({.out = 500ms},
                  [](const Daemon&, const Effect& e) { return finishes(e, "tasks/1"); });
  a.end_and_run("tasks/1", 100ms);
  a.cluster.store.remove("tasks/1");
  a.cluster.put_and_run("1", 1s);
  CHECK(a.cluster.started == Keys{"tasks/1", "tasks/1"});
}

}  // namespace
}  // namespace lictor::core::test
