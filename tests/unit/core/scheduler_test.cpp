// Recurring tasks: each tick makes one task, whoever leads and whatever clocks and Consul do.

#include <algorithm>

#include "schedules.h"

namespace lictor::core::test {
namespace {

using schedule::Missed;

std::string id(seconds after_start, const std::string& name = "s") {
  return schedule::tick_id(name, kFirst + after_start);
}

void no_overlap(Definition& definition) { definition.overlap = schedule::Overlap::kSkip; }

TEST_CASE("a schedule makes a task at each tick from when it is first seen") {
  Schedules a{1s};
  a.run_to(3s);
  a.put_and_run_to("s", every(10s), 5s);
  CHECK(a.last_tick() >= kFirst + 3s);  // written down before its first tick
  CHECK(a.made().empty());
  a.run_to(10s - 1ms);
  CHECK(a.made().empty());
  a.run_to(10s + 10ms);
  CHECK(a.made() == std::vector{id(10s)});
  CHECK(a.last_tick() == kFirst + 10s);
  CHECK(a.stored().last_task == id(10s));
  a.run_to(45s);
  CHECK(a.made() == std::vector{id(10s), id(20s), id(30s), id(40s)});
  CHECK(a.cluster.started.size() == 4);
  CHECK(a.idle());
}

TEST_CASE("after a restore of a snapshot ticks go on from the version that it brought back") {
  Schedules a{1ms};
  a.put_and_run_to("s", every(10s), 25s);
  const dev::KvRecord older = *a.cluster.store.find("schedules/s");
  a.run_to(45s);
  a.cluster.store.restore(older);
  const std::size_t before = all<Commit>(a.daemon).size();
  a.run_to(105s);
  CHECK(a.cluster.store.ticks.contains(id(100s)));
  CHECK(all<Commit>(a.daemon).size() - before < 60);
}

TEST_CASE("own writes have the schedules read once a second at most, an idle leader reads none") {
  Schedules a{1ms};
  for (int i = 0; i < 100; ++i) a.cluster.store.put_schedule(std::to_string(i), every(10s));
  a.run_to(100s);
  CHECK(a.cluster.store.ticks.size() == 900);
  const std::size_t readings = all<ListSchedules>(a.daemon).size();
  CHECK(readings <= 101);
  CHECK(readings >= 9);

  Alone idle;
  for (int i = 0; i < 10'000; ++i) idle.cluster.store.put_schedule(std::to_string(i), every(24h));
  idle.cluster.run_for(10s);
  const std::size_t before = all<ListSchedules>(idle.daemon).size();
  const std::size_t commits = all<Commit>(idle.daemon).size();
  idle.cluster.run_for(10min);
  CHECK(all<ListSchedules>(idle.daemon).size() <= before + 11);  // as blocking queries end
  CHECK(all<Commit>(idle.daemon).size() == commits);
}

TEST_CASE("ticks that nobody made in time are skipped, or made up for as the schedule says") {
  Missed missed;
  std::size_t expected = 0;
  SUBCASE("skip") { expected = 0; }
  SUBCASE("once") {
    missed.policy = Missed::Policy::kOnce;
    expected = 1;
  }
  SUBCASE("all, up to a limit") {
    missed = {Missed::Policy::kAll, 5, 24h};
    expected = 5;
  }
  Schedules a{1ms};
  const auto paused = [&](bool is_paused) {
    return every(600s, [&](Definition& d) {
      d.missed = missed;
      d.paused = is_paused;
    });
  };
  a.put_and_run_to("s", paused(true), 2h + 5min);  // twelve ticks, the last one five minutes ago
  CHECK(a.made().empty());
  a.cluster.store.put_schedule("s", paused(false));
  a.cluster.run_for(5s);
  CHECK(a.made().size() == expected);
  CHECK(a.skipped(Fact::Kind::kTicksMissed) == 12 - expected);
  if (expected != 0) CHECK(a.made().back() == id(2h));
  CHECK(a.last_tick() == kFirst + 2h);
  a.run_to(2h + 11min);
  CHECK(a.made().size() == expected + 1);
}

TEST_CASE("after an upgrade no tick is made again under its new name, and an old task counts") {
  Schedules a;
  const std::string old = "s@" + schedule::tick_text(kFirst + 10s);  // as older versions named it
  a.cluster.plan = [&](const Task& task) {
    return JobPlan{task.id == old ? 13s : 1s, JobEnding::kDone, {}};
  };
  a.run_to(12s);
  a.cluster.put(old);
  a.cluster.store.put_schedule("s", every(10s, [&](Definition& d) {
                                 d.overlap = schedule::Overlap::kSkip;
                                 d.missed.policy = Missed::Policy::kAll;
                                 d.last_tick = kFirst + 10s;
                                 d.last_task = old;
                               }));
  a.run_to(45s);
  CHECK(a.made() == std::vector{id(30s), id(40s)});  // at 20 s the old one still ran
  CHECK(a.stored().last_task == id(40s));
}

TEST_CASE("with overlap skip a tick makes no task while the last one waits or runs") {
  Schedules a{25s};
  a.put_and_run_to("s", every(10s, no_overlap), 65s);
  CHECK(a.made() == std::vector{id(10s), id(40s)});
  CHECK(a.skipped(Fact::Kind::kTicksOverlap) == 4);
  CHECK(a.last_tick() == kFirst + 60s);
  // The next leader knows what the last task was.
  Two two;
  two.cluster.plan = [](const Task&) { return JobPlan{1h, JobEnding::kDone, {}}; };
  two.cluster.store.put_schedule("s", every(10s, no_overlap));
  two.cluster.run_for(kStart + 15s - two.cluster.now);
  two.cluster.crash(two.a);
  two.cluster.run_for(kStart + 3min - two.cluster.now);
  CHECK(two.b->queue->leading(two.cluster.now));
  CHECK(made(two.cluster) == std::vector{id(10s)});
}

TEST_CASE("a schedule rewritten without lastTick goes on, and counts again with a new rule") {
  Schedules a{1ms};
  const auto missed = [](Definition& d) { d.missed = {Missed::Policy::kAll, 50, 24h}; };
  a.put_and_run_to("s", every(60s, missed), 60s + 100ms);
  REQUIRE(a.made().size() == 1);
  a.put_and_run_to("s", every(60s, missed), 90s);
  CHECK(a.made().size() == 1);
  CHECK(a.last_tick() == kFirst + 60s);

  a.put_and_run_to("s", every(10s, missed), 95s);
  CHECK(a.made().size() == 1);
  a.run_to(105s);
  CHECK(a.made().back() == id(100s));
  // With the lastTick that it had: no ticks of the new rule before now.
  const Tick last = a.last_tick();
  a.cluster.store.put_schedule("s", every(1s, [&](Definition& d) {
                                 missed(d);
                                 d.last_tick = last;
                               }));
  a.run_to(105s + 1ms);
  const std::size_t before = a.made().size();
  a.run_to(108s + 500ms);
  CHECK(a.made().size() <= before + 4);
  CHECK_FALSE(a.cluster.store.ticks.contains(id(103s)));
}

TEST_CASE("a last task that no listing shows is kept in a note, is read alone, and counts") {
  Schedules a;
  a.put_and_run_to("s", every(5s, no_overlap), 4s);
  a.cluster.spoil<ListSchedules>({.lose_reply = true});
  a.cluster.spoil<ListTasks>({.lose_reply = true});
  a.run_to(11s);
  CHECK(a.last_tick() == kFirst + 10s);
  CHECK(a.stored().last_task == id(5s));
  a.run_to(31s);
  CHECK(a.made() == std::vector{id(5s)});
  CHECK(a.cluster.started.size() == 1);
  CHECK(a.skipped(Fact::Kind::kTicksOverlap) == 5);
}

TEST_CASE("a listing of the schedules that fails, or whose index went back, is asked for again") {
  for (const Fault& fault :
       {Fault{.no_leader = true}, Fault{.tampering = {Tamper::kRewound, 0.5}}}) {
    Schedules a{1ms};
    a.run_to(2s);
    a.once(fault, [](const Effect& e) { return std::holds_alternative<ListSchedules>(e); });
    a.put_and_run_to("t", every(24h), 5s);
    a.put_and_run_to("s", every(10s), 25s);
    CHECK(a.made() == std::vector{id(10s), id(20s)});
    a.cluster.spoil<ListSchedules>(fault);
    a.run_to(55s);
    CHECK(all<ListSchedules>(a.daemon).size() < 60);
    CHECK(a.cluster.store.ticks.size() == 5);
  }
}

TEST_CASE("a schedule run by hand before it is known, while no names come: no task beside it") {
  Schedules a;
  a.cluster.spoil<ListTasks>({.lose_reply = true});
  a.cluster.put("0");  // the query for names that waits already is answered with this
  a.cluster.run_for(100ms);
  a.cluster.end_job(a.daemon, "tasks/0");
  const std::string by_hand = schedule::tick_id("s", kFirst + 1s);
  a.cluster.store.put(a.cluster.make(by_hand));
  a.cluster.store.put_schedule("s", every(5s, [&](Definition& d) {
                                 d.overlap = schedule::Overlap::kSkip;
                                 d.last_tick = kFirst;
                                 d.last_task = by_hand;
                               }));
  a.run_to(31s);
  CHECK(a.made().empty());
  CHECK(a.cluster.started.back() == "tasks/" + by_hand);
}

TEST_CASE("a lastTick that a user sets counts: ticks after it are missed") {
  Schedules a{1ms};
  a.run_to(1h + 30s);
  a.cluster.store.put_schedule("s", every(600s, [](Definition& d) {
                                 d.missed = {Missed::Policy::kAll, 50, 24h};
                                 d.last_tick = kFirst + 30min;
                               }));
  a.cluster.run_for(2s);
  CHECK(a.made() == std::vector{id(40min), id(50min), id(60min)});
}

TEST_CASE("a clock that is set back across a tick makes no second task") {
  Schedules a{1ms};
  a.put_and_run_to("s", every(60s), 61s);
  REQUIRE(a.made() == std::vector{id(60s)});
  a.cluster.step_clock(a.daemon, -30s);
  a.run_to(120s);  // 90 s by its clock
  CHECK(a.made() == std::vector{id(60s)});
  a.run_to(151s);
  CHECK(a.made() == std::vector{id(60s), id(120s)});
  // A clock was wrong by a year: a fact reports its lastTick.
  a.cluster.store.put_schedule(
      "t", every(60s, [](Definition& d) { d.last_tick = kFirst + std::chrono::hours{24 * 365}; }));
  a.cluster.run_for(5min);
  CHECK(count(a.daemon, Fact::Kind::kScheduleAhead) == 1);
  CHECK_FALSE(a.cluster.store.ticks.contains(id(240s, "t")));
  CHECK(a.cluster.store.ticks.contains(id(240s)));
  a.cluster.remove_and_run("schedules/t", 2s);
  a.cluster.store.put_schedule("t", every(60s));
  a.cluster.run_for(2min);
  CHECK(std::any_of(a.cluster.store.ticks.begin(), a.cluster.store.ticks.end(),
                    [](const auto& tick) { return tick.first.starts_with("t/"); }));
  // A clock that is set back by much is reported, too: both wait until it has caught up.
  a.cluster.step_clock(a.daemon, -1h);
  a.cluster.run_for(1s);
  CHECK(count(a.daemon, Fact::Kind::kScheduleAhead) == 3);
}

TEST_CASE("times that are centuries away are reported as a century at most") {
  using std::chrono::hours;
  constexpr hours kCentury{24 * 365 * 100};
  Schedules a{1ms};
  a.cluster.store.put_schedule(
      "far", every(60s, [](Definition& d) { d.last_tick = schedule::kLastTick; }));
  auto plan =
      schedule::Schedule::make({schedule::At{{Tick{} - hours{24 * 365 * 300}}}, nullptr, {}, {}});
  REQUIRE(plan);
  Definition past = *every(60s, [](Definition& d) {
    d.missed.policy = Missed::Policy::kOnce;
    d.last_tick = schedule::kFirstTick;
  });
  past.schedule = *std::move(plan);
  a.cluster.store.put_schedule("past", std::make_shared<const Definition>(past));
  a.cluster.run_for(2s);
  bool ahead = false, late = false, started = false;
  for (const Fact& fact : all<Fact>(a.daemon)) {
    ahead |= fact.kind == Fact::Kind::kScheduleAhead && fact.took == kCentury;
    if (!fact.key.starts_with("tasks/past/") || fact.late != kCentury) continue;
    late |= fact.kind == Fact::Kind::kTickMade;
    started |= fact.kind == Fact::Kind::kStarted;
  }
  CHECK(ahead);
  CHECK(late);
  CHECK(started);
}

TEST_CASE("a schedule that is removed makes no more tasks; one that may not be read goes on") {
  Schedules a{1ms};
  a.cluster.store.put_schedule("s", every(10s));
  a.put_and_run_to("t", every(10s), 15s);
  a.cluster.store.remove("schedules/s");
  a.run_to(25s);
  CHECK(a.made() == std::vector{id(10s), id(10s, "t"), id(20s, "t")});

  a.cluster.store.unreadable = {"schedules/", "tasks/"};  // the folder keys, too
  a.put_and_run_to("u", every(10s), 45s);
  CHECK(a.cluster.store.ticks.contains(id(40s, "t")));
}

TEST_CASE("after a reload the schedules are read again, for time zones may have changed") {
  Schedules a{1ms};
  a.put_and_run_to("s", every(600s), 5s);
  // The same version of the record, with other ticks.
  Definition moved = a.stored();
  moved.schedule = every(10s)->schedule;
  a.cluster.store.updated["s"] = std::make_shared<const Definition>(std::move(moved));
  a.run_to(15s);
  CHECK(a.made().empty());
  a.cluster.reload(a.daemon, a.daemon.options);
  a.run_to(25s);
  CHECK(a.made() == std::vector{id(10s), id(20s)});
}

TEST_CASE(
    "a schedule that cannot be read, or is too large, is reported once and holds up no other") {
  Schedules a{1ms};
  const std::string task = R"({"taskType":"T","taskPara":{"data":")" + std::string(300'000, 'x');
  a.cluster.store.write("schedules/large", R"({"every":"10s","task":)" + task + "\"}}}");
  a.cluster.store.put_schedule("bad", nullptr);
  a.put_and_run_to("s", every(10s), 35s);
  CHECK(a.made() == std::vector{id(10s), id(20s), id(30s)});
  CHECK(count(a.daemon, Fact::Kind::kScheduleFault) == 2);
  CHECK(a.daemon.queue->schedules().bad == 2);
  a.put_and_run_to("bad", every(10s), 45s);
  CHECK(a.cluster.store.ticks.contains(id(40s, "bad")));
  CHECK(a.daemon.queue->schedules().active == 2);
}

TEST_CASE("a tick of the pause is missed, however soon the schedule is resumed") {
  Schedules a{1ms};
  const auto paused = [&](bool is_paused) {
    return every(10s, [&](Definition& d) { d.paused = is_paused; });
  };
  a.put_and_run_to("s", paused(true), 42s);
  a.put_and_run_to("s", paused(false), 45s);
  CHECK(a.made().empty());
  CHECK(a.skipped(Fact::Kind::kTicksMissed) == 4);
  a.run_to(52s);
  CHECK(a.made() == std::vector{id(50s)});
  // A tick that is due as the pause ends is made.
  a.put_and_run_to("s", paused(true), 59s + 950ms);
  a.put_and_run_to("s", paused(false), 62s);
  CHECK(a.made() == std::vector{id(50s), id(60s)});
}

TEST_CASE("if another client wrote the tick's task, the schedule goes on without a second") {
  Schedules a{1h};
  a.cluster.put(id(10s));
  a.put_and_run_to("s", every(10s), 25s);
  CHECK(count(a.daemon, Fact::Kind::kTickExists) == 1);
  CHECK(a.made() == std::vector{id(20s)});
  CHECK(a.last_tick() == kFirst + 20s);
}

TEST_CASE("a schedule that may not be written is tried again, and holds up no other") {
  Schedules a{1ms};
  a.cluster.store.put_schedule("s", every(10s));
  a.put_and_run_to("t", every(10s), 5s);
  a.cluster.store.no_right.insert("schedules/s");
  a.run_to(25s);
  CHECK(count(a.daemon, Fact::Kind::kDenied) >= 1);
  CHECK(a.made() == std::vector{id(10s, "t"), id(20s, "t")});
  const std::size_t tries = all<Commit>(a.daemon).size();
  CHECK(tries < 40);
  a.cluster.store.no_right.clear();
  a.run_to(35s);
  CHECK(a.cluster.store.ticks.size() == 6);  // s has caught up
}

TEST_CASE("a daemon that stands still after it read the clock is not behind by as long") {
  Schedules a{1ms};
  a.put_and_run_to("s", every(10s), 5s);
  // The reading is in the inbox when the process stops.
  a.cluster.tell(a.daemon, a.cluster.clock_of(a.daemon));
  a.cluster.pause(a.daemon, 3s);
  a.run_to(10s + 100ms);
  CHECK(a.made() == std::vector{id(10s)});
}

TEST_CASE("nothing is made while the leader drains; a paused queue's ticks wait as its tasks do") {
  Schedules a;
  a.put_and_run_to("s", every(10s), 5s);
  a.cluster.store.control(true, "");
  a.run_to(25s);
  CHECK(a.made().size() == 2);
  CHECK(a.cluster.started.empty());
  a.cluster.store.control(false, "");
  a.run_to(28s);
  CHECK(a.cluster.started.size() == 1);  // it runs until it is stopped
  a.cluster.tell(a.daemon, StopRequested{});
  a.run_to(45s);
  CHECK(a.made().size() == 2);
}

}  // namespace
}  // namespace lictor::core::test
