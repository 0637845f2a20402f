// Lost requests, lost replies, rogue writers, owners that died.

#include <algorithm>

#include <doctest/doctest.h>

#include "alone.h"

using namespace lictor;
using namespace lictor::core;
using namespace lictor::core::test;

namespace {

Task taken(Cluster& cluster, const std::string& id, std::uint32_t attempt, std::uint32_t lost) {
  Task& task = cluster.make(id);
  task.stamp.taken = true;
  task.stamp.attempt = attempt;
  task.stamp.lost = lost;
  task.stamp.claim = Claim{"b", "gone", "b1-7", {}};
  return task;
}

}  // namespace

TEST_SUITE_BEGIN("core");

TEST_CASE("a task rewritten between reading and claiming runs in its new version") {
  Alone a;
  a.once(Fault{.out = 200ms}, [](const Effect& e) { return claims(e, "tasks/1"); });
  a.cluster.put("1");
  a.cluster.run_for(50ms);
  a.cluster.put("1", with_record("another record"));
  a.cluster.run_for(1s);
  CHECK(a.cluster.started == Keys{"tasks/1"});
  CHECK(*a.cluster.job("tasks/1")->task->record == "another record");
  CHECK(a.cluster.store.task("tasks/1")->stamp.attempt == 1);
}

TEST_CASE("a task deleted and written again while its claim is under way runs") {
  Alone a;
  a.once(Fault{.out = 200ms}, [](const Effect& e) { return claims(e, "tasks/1"); });
  a.cluster.put("1");
  a.cluster.run_for(50ms);
  a.cluster.store.remove("tasks/1");
  // The claim is refused and read back as gone; the reply is late, the listing is not.
  a.cluster.spoil<FetchTasks>({.back = 300ms});
  a.cluster.run_for(250ms);
  a.cluster.put("1");
  a.cluster.run_for(1s);
  CHECK(a.cluster.started == Keys{"tasks/1"});
}

TEST_CASE("a task written again while its unreadable forerunner is being buried runs") {
  Alone a;
  a.cluster.fault = [](const Daemon&, const Effect& e) {
    Fault f;
    if (std::holds_alternative<Commit>(e)) f.out = 200ms;
    if (std::holds_alternative<FetchTasks>(e)) f.back = 300ms;
    return f;
  };
  a.cluster.store.put_bad("tasks/1", "{", "expected a JSON object");
  a.cluster.run_for(50ms);
  a.cluster.store.remove("tasks/1");
  a.cluster.run_for(200ms);  // refused; the reading that tells why is on its way
  a.cluster.put("1");
  a.cluster.run_for(2s);
  CHECK(a.cluster.started == Keys{"tasks/1"});
  CHECK(a.cluster.store.dead.empty());
}

TEST_CASE("a task that took the name of an unreadable one waits for those listed with it") {
  Alone a;
  a.once(Fault{.lose_request = true},
         [](const Effect& e) { return std::holds_alternative<Commit>(e); });
  a.cluster.store.put_bad("tasks/2", "{", "expected a JSON object");
  a.cluster.run_for(a.daemon.options.request_timeout - 200ms);
  a.cluster.store.remove("tasks/2");
  a.once(Fault{.back = 1500ms},
         [](const Effect& e) { return std::holds_alternative<FetchTasks>(e); });
  a.cluster.put("1");
  a.cluster.put("2");
  // It is found when it is looked up what became of the burial; the one before it is read slowly.
  a.cluster.run_for(2s);
  CHECK(a.cluster.started == Keys{"tasks/1"});
  a.cluster.end_job(a.daemon, "tasks/1");
  a.cluster.run_for(1s);
  CHECK(a.cluster.started == Keys{"tasks/1", "tasks/2"});
  CHECK(a.cluster.store.dead.empty());
}

TEST_CASE("an unreadable record that is put right while it is being buried runs") {
  Alone a;
  a.cluster.spoil<Commit>({.out = 200ms});
  a.cluster.store.put_bad("tasks/1", "{", "expected a JSON object");
  a.cluster.run_for(50ms);
  a.cluster.put("1");
  a.cluster.run_for(2s);
  CHECK(a.cluster.started == Keys{"tasks/1"});
  CHECK(a.cluster.store.dead.empty());
}

TEST_CASE("a finish whose reply was lost is not run again") {
  for (const Fault& fault : {Fault{.lose_reply = true}, Fault{.lose_request = true}}) {
    Alone a;
    a.once(fault, [](const Effect& e) { return finishes(e, "tasks/1"); });
    a.cluster.put("1");
    a.cluster.run_for(100ms);
    a.cluster.end_job(a.daemon, "tasks/1");
    a.cluster.put("2");
    a.cluster.run_for(10s);
    CHECK_FALSE(a.cluster.store.has("tasks/1"));
    CHECK(a.cluster.started == Keys{"tasks/1", "tasks/2"});
  }
}

TEST_CASE("a claim whose reply was lost is run once") {
  for (const Fault& fault : {Fault{.lose_reply = true}, Fault{.lose_request = true}}) {
    Alone a;
    a.once(fault, [](const Effect& e) { return claims(e, "tasks/1"); });
    a.cluster.put("1");
    a.cluster.run_for(2500ms);
    CHECK(a.cluster.started.empty());  // not known yet whose it is
    a.cluster.run_for(5s);
    CHECK(a.cluster.started == Keys{"tasks/1"});
    const Stamp& stamp = a.cluster.store.task("tasks/1")->stamp;
    CHECK(stamp.attempt == 1);
    CHECK(stamp.lost == 0);
  }
}

TEST_CASE("a claim that lands long after it was given up costs neither an owner nor an attempt") {
  Alone a;
  a.once(Fault{.out = 3200ms}, [](const Effect& e) { return claims(e, "tasks/1"); });
  a.cluster.put("1");
  a.cluster.run_for(10s);
  CHECK(a.cluster.started == Keys{"tasks/1"});
  CHECK(a.cluster.store.task("tasks/1")->stamp.attempt == 1);
  CHECK(a.cluster.store.task("tasks/1")->stamp.lost == 0);
}

TEST_CASE(
    "a claim that is refused after one of the same bytes was sent, and lands, costs no owner") {
  Alone a;
  a.once(Fault{.out = 4500ms}, [](const Effect& e) { return claims(e, "tasks/1"); });
  a.cluster.put("1");
  a.cluster.run_for(1s);
  a.cluster.store.no_right.insert("tasks/1");
  a.cluster.run_for(3200ms);
  CHECK(a.daemon.queue->stats().refused == 1);
  a.cluster.store.no_right.clear();
  a.cluster.run_for(10s);
  CHECK(a.cluster.started == Keys{"tasks/1"});
  CHECK(a.cluster.store.task("tasks/1")->stamp.attempt == 1);
  CHECK(a.cluster.store.task("tasks/1")->stamp.lost == 0);
}

TEST_CASE("a retry, a bury and a claim that land late change nothing") {
  Alone a;
  a.cluster.spoil<Commit>(Fault{.out = 3100ms});
  a.cluster.plan = [](const Task& task) {
    return JobPlan{10ms, task.stamp.attempt < 2 ? JobEnding::kRetry : JobEnding::kPermanent, "no"};
  };
  a.cluster.put("1");
  a.cluster.run_for(60s);
  a.cluster.heal();
  a.cluster.run_for(60s);
  CHECK(a.cluster.started.size() == 2);
  CHECK(a.cluster.store.dead.size() == 1);
}

TEST_CASE("the task of an owner that is gone is taken up, and counts an owner lost") {
  Alone a;
  a.cluster.store.put(taken(a.cluster, "1", 1, 0));
  a.cluster.run_for(100ms);
  CHECK(a.cluster.started == Keys{"tasks/1"});
  CHECK(a.cluster.store.task("tasks/1")->stamp.lost == 1);
  CHECK(a.cluster.store.task("tasks/1")->stamp.attempt == 2);
}

TEST_CASE("a task that lost its owner too often, or may run at most once, is a dead letter") {
  for (const bool once : {false, true}) {
    QueueOptions options = options_of("a");
    if (once) options.any_type->delivery = Delivery::kAtMostOnce;
    Alone a{options};
    const std::uint32_t lost = once ? 0 : 2;
    a.cluster.store.put(taken(a.cluster, "1", lost + 1, lost));
    a.cluster.run_for(100ms);
    CHECK(a.cluster.started.empty());
    CHECK(a.dead("dead/1").reason == "owner lost");
    CHECK(a.dead("dead/1").stamp.lost == lost + 1);
  }
}

TEST_CASE("during an outage the queue tries now and then, and catches up afterwards") {
  Alone a;
  a.cluster.plan = [](const Task&) { return JobPlan{1ms, JobEnding::kDone, {}}; };
  bool outage = true;
  a.cluster.spoil({.refused = true}, [&](const Daemon&, const Effect&) { return outage; });
  a.cluster.put("1");
  const std::size_t before = a.daemon.log.size();
  a.cluster.run_for(60s);
  CHECK(a.daemon.log.size() - before < 600);
  CHECK(count(a.daemon, Fact::Kind::kStoreTrouble) < 8);
  outage = false;
  a.cluster.run_for(60s);
  CHECK(a.cluster.started == Keys{"tasks/1"});
}

TEST_CASE("writes that fail while reads succeed are not tried in a tight loop") {
  Alone a;
  a.cluster.spoil<Commit>({.refused = true});
  a.cluster.put("1");
  a.cluster.run_for(10s);
  CHECK(all<Commit>(a.daemon).size() < 40);
}

TEST_CASE("replies that nobody waits for change nothing") {
  Alone a;
  a.cluster.put("1");
  a.cluster.run_for(100ms);
  const std::size_t before = a.daemon.log.size();
  const RequestId none{1'000'000};
  a.cluster.tell(a.daemon, Committed{none, Outcome::kRejected, 0, {}, {}});
  a.cluster.tell(a.daemon, LeaderRead{none, true, true, "another", "b", false, {}, 99, 99, {}});
  a.cluster.tell(a.daemon, SessionRenewed{none, SessionRenewed::Answer::kGone, {}});
  a.cluster.tell(a.daemon, TasksListed{none, true, false, true, {}, {}, 999, {}});
  a.cluster.tell(a.daemon, TasksFetched{none, true, {}, {"tasks/1"}, {}, {}, 0});
  a.cluster.tell(a.daemon, JobExited{AttemptId{77}, JobEnding::kDone, {}, {}});
  a.cluster.tell(a.daemon, UnlockReplied{none, Outcome::kApplied});
  a.cluster.run_for(1ms);
  CHECK(a.daemon.log.size() == before);
  CHECK(a.cluster.running() == 1);
}

TEST_CASE("the same seed and the same events give the same effects") {
  const auto run = [] {
    std::string text;
    Cluster cluster{7};
    cluster.on_effect = [&](const Daemon& daemon, const Effect& effect) {
      text += daemon.name + ' ' + effect_text(effect) + '\n';
    };
    Random random{9};
    cluster.fault = [&](const Daemon&, const Effect&) {
      Fault f;
      f.lose_reply = random.fraction() < 0.1;
      f.out = Duration{static_cast<Duration::rep>(1e7 * random.fraction())};
      return f;
    };
    cluster.plan = [](const Task&) { return JobPlan{5ms, JobEnding::kRetry, "no luck"}; };
    QueueOptions options = options_of("a");
    options.any_type->backoff.jitter = 0.5;
    cluster.add(options);
    options.node = "b";
    cluster.add(options);
    for (int i = 0; i < 20; ++i) cluster.put(std::to_string(i));
    cluster.run_for(60s);
    return text;
  };
  const std::string once = run();
  CHECK(once.size() > 10'000);
  CHECK(once == run());
}

TEST_CASE("a retry stamped by a clock days ahead is due when the clock is set right") {
  constexpr auto kAhead = std::chrono::hours{72};
  Alone a;
  a.all_end_after(10ms, JobEnding::kRetry);
  a.cluster.step_clock(a.daemon, kAhead);
  a.cluster.put("1");
  a.cluster.run_for(500ms);
  REQUIRE(a.cluster.started.size() == 1);
  REQUIRE(*a.cluster.store.task("tasks/1")->stamp.retry_at > a.cluster.wall() + kAhead);

  SUBCASE("under the same leader") { a.cluster.step_clock(a.daemon, -kAhead); }
  SUBCASE("under the next") {
    a.cluster.crash(a.daemon);
    a.cluster.step_clock(a.daemon, -kAhead);
    a.cluster.restart_after(a.daemon, 10ms);
  }
  CHECK(a.cluster.run_until([&] { return a.cluster.started.size() > 1; }, 2min));
}

TEST_CASE("what somebody wrote beside a claim does not come back with an old listing") {
  Alone a;
  a.cluster.put("1");
  a.cluster.run_for(100ms);
  REQUIRE(a.cluster.job("tasks/1") != nullptr);
  a.cluster.spoil<ListTasks>({.back = 3s});
  a.cluster.store.touch("tasks/1", "record 1+1");  // wakes the listing; the next one is slow
  a.cluster.run_for(500ms);
  a.cluster.store.touch("tasks/1", "record 1+2");
  a.cluster.run_for(500ms);
  a.cluster.end_job(a.daemon, "tasks/1");
  a.cluster.run_for(10s);
  CHECK(a.idle());
  CHECK(count(a.daemon, Fact::Kind::kDone) == 1);
  CHECK(count(a.daemon, Fact::Kind::kLost) == 0);
  CHECK(a.cluster.started.size() == 1);
}

TEST_CASE("after two watches that failed names are read by a quorum: Consul may be of long ago") {
  Alone a;
  int left = 2;
  a.cluster.spoil({.refused = true}, [&](const Daemon&, const Effect& effect) {
    return std::holds_alternative<ListTasks>(effect) && left-- > 0;
  });
  a.all_end_after(1ms);
  a.cluster.put("1");
  a.cluster.run_for(100ms);
  const std::size_t before = all<ListTasks>(a.daemon).size();
  a.cluster.put("2");
  CHECK(a.cluster.run_until([&] { return a.idle(); }, 5s));
  a.cluster.put("3");
  CHECK(a.cluster.run_until([&] { return a.idle(); }, 5s));
  auto lists = all<ListTasks>(a.daemon);
  lists.erase(lists.begin(), lists.begin() + static_cast<std::ptrdiff_t>(before));
  REQUIRE(lists.size() >= 3);
  CHECK(lists[0].index != 0);  // once more
  CHECK(lists[1].index == 0);
  CHECK(lists.back().index != 0);
}

TEST_SUITE_END();
