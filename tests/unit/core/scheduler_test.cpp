// Recurring tasks: each tick makes one task, whoever leads and whatever clocks and Consul do.

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "alone.h"

namespace lictor::core::test {
namespace {

using schedule::Definition;
using schedule::Missed;
using schedule::Overlap;
using schedule::Tick;
using std::chrono::seconds;

const Tick kFirst = std::chrono::floor<seconds>(kWallStart);  // a multiple of ten seconds

// Every `interval`, with overlap allowed, and what `change` makes of it.
std::shared_ptr<const Definition> every(seconds interval,
                                        const std::function<void(Definition&)>& change = {}) {
  auto schedule = schedule::Schedule::make({schedule::Every{interval}, nullptr, {}, {}});
  REQUIRE(schedule);
  Definition made{*std::move(schedule),
                  std::to_string(interval.count()),
                  {},
                  Overlap::kAllow,
                  {},
                  false,
                  {},
                  {},
                  {}};
  if (change) change(made);
  return std::make_shared<const Definition>(std::move(made));
}

void run_to(Cluster& cluster, Instant time) { cluster.run_for(time - cluster.now); }

std::string id(seconds after_start, const std::string& name = "s") {
  return schedule::tick_id(name, kFirst + after_start);
}

// The ids of the ticks' tasks, each made once.
std::vector<std::string> made(const Cluster& cluster) {
  std::vector<std::string> ids;
  for (const auto& [tick, count] : cluster.store.ticks) {
    CHECK_MESSAGE(count == 1, tick);
    ids.push_back(tick);
  }
  return ids;
}

std::uint64_t skipped(const Daemon& daemon, Fact::Kind kind) {
  std::uint64_t ticks = 0;
  for (const Fact& fact : all<Fact>(daemon)) ticks += fact.kind == kind ? fact.count : 0;
  return ticks;
}

Tick last_tick(const Cluster& cluster, const std::string& name = "s") {
  return cluster.store.schedule(name).last_tick.value();
}

TEST_CASE("a schedule makes a task at each tick from when it is first seen") {
  Alone a;
  a.all_end_after(1s);
  run_to(a.cluster, kStart + 3s);
  a.cluster.store.put_schedule("s", every(10s));
  run_to(a.cluster, kStart + 5s);
  CHECK(last_tick(a.cluster) >= kFirst + 3s);  // written down before its first tick
  CHECK(made(a.cluster).empty());
  run_to(a.cluster, kStart + 10s - 1ms);
  CHECK(made(a.cluster).empty());
  run_to(a.cluster, kStart + 10s + 10ms);
  CHECK(made(a.cluster) == std::vector{id(10s)});
  CHECK(last_tick(a.cluster) == kFirst + 10s);
  CHECK(a.cluster.store.schedule("s").last_task == id(10s));
  run_to(a.cluster, kStart + 45s);
  CHECK(made(a.cluster) == std::vector{id(10s), id(20s), id(30s), id(40s)});
  CHECK(a.cluster.started.size() == 4);
  CHECK(a.idle());
}

TEST_CASE("own writes have the schedules read once a second at most, an idle leader reads none") {
  Alone a;
  a.all_end_after(1ms);
  for (int i = 0; i < 100; ++i) a.cluster.store.put_schedule(std::to_string(i), every(10s));
  run_to(a.cluster, kStart + 100s);
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
  Alone a;
  a.all_end_after(1ms);
  const auto paused = [&](bool is_paused) {
    return every(600s, [&](Definition& d) {
      d.missed = missed;
      d.paused = is_paused;
    });
  };
  a.cluster.store.put_schedule("s", paused(true));
  run_to(a.cluster, kStart + 2h + 5min);  // twelve ticks, the last one five minutes ago
  CHECK(made(a.cluster).empty());
  a.cluster.store.put_schedule("s", paused(false));
  a.cluster.run_for(5s);
  CHECK(made(a.cluster).size() == expected);
  CHECK(skipped(a.daemon, Fact::Kind::kTicksMissed) == 12 - expected);
  if (expected != 0) CHECK(made(a.cluster).back() == id(2h));
  CHECK(last_tick(a.cluster) == kFirst + 2h);
  run_to(a.cluster, kStart + 2h + 11min);
  CHECK(made(a.cluster).size() == expected + 1);
}

TEST_CASE("after an upgrade no tick is made again under its new name, and an old task counts") {
  Alone a;
  const std::string old = "s@" + schedule::tick_text(kFirst + 10s);  // as older versions named it
  a.cluster.plan = [&](const Task& task) {
    return JobPlan{task.id == old ? 13s : 1s, JobEnding::kDone, {}};
  };
  run_to(a.cluster, kStart + 12s);
  a.cluster.put(old);
  a.cluster.store.put_schedule("s", every(10s, [&](Definition& d) {
                                 d.overlap = Overlap::kSkip;
                                 d.missed.policy = Missed::Policy::kAll;
                                 d.last_tick = kFirst + 10s;
                                 d.last_task = old;
                               }));
  run_to(a.cluster, kStart + 45s);
  CHECK(made(a.cluster) == std::vector{id(30s), id(40s)});  // at 20 s the old one still ran
  CHECK(a.cluster.store.schedule("s").last_task == id(40s));
}

TEST_CASE("with overlap skip a tick makes no task while the last one waits or runs") {
  Alone a;
  a.all_end_after(25s);
  a.cluster.store.put_schedule("s", every(10s, [](Definition& d) { d.overlap = Overlap::kSkip; }));
  run_to(a.cluster, kStart + 65s);
  CHECK(made(a.cluster) == std::vector{id(10s), id(40s)});
  CHECK(skipped(a.daemon, Fact::Kind::kTicksOverlap) == 4);
  CHECK(last_tick(a.cluster) == kFirst + 60s);

  // The next leader knows what the last task was.
  Two two;
  two.cluster.plan = [](const Task&) { return JobPlan{1h, JobEnding::kDone, {}}; };
  two.cluster.store.put_schedule("s",
                                 every(10s, [](Definition& d) { d.overlap = Overlap::kSkip; }));
  run_to(two.cluster, kStart + 15s);
  two.cluster.crash(two.a);
  run_to(two.cluster, kStart + 3min);
  CHECK(two.b->queue->leading(two.cluster.now));
  CHECK(made(two.cluster) == std::vector{id(10s)});
}

TEST_CASE(
    "a schedule that is rewritten without lastTick goes on, and counts again with a new rule") {
  Alone a;
  a.all_end_after(1ms);
  const auto missed = [](Definition& d) { d.missed = {Missed::Policy::kAll, 50, 24h}; };
  a.cluster.store.put_schedule("s", every(60s, missed));
  run_to(a.cluster, kStart + 60s + 100ms);
  REQUIRE(made(a.cluster).size() == 1);
  a.cluster.store.put_schedule("s", every(60s, missed));
  run_to(a.cluster, kStart + 90s);
  CHECK(made(a.cluster).size() == 1);
  CHECK(last_tick(a.cluster) == kFirst + 60s);

  a.cluster.store.put_schedule("s", every(10s, missed));
  run_to(a.cluster, kStart + 95s);
  CHECK(made(a.cluster).size() == 1);
  run_to(a.cluster, kStart + 105s);
  CHECK(made(a.cluster).back() == id(100s));

  // With the lastTick that it had: no ticks of the new rule before now.
  const Tick last = last_tick(a.cluster);
  a.cluster.store.put_schedule("s", every(1s, [&](Definition& d) {
                                 missed(d);
                                 d.last_tick = last;
                               }));
  run_to(a.cluster, kStart + 105s + 1ms);
  const std::size_t before = made(a.cluster).size();
  run_to(a.cluster, kStart + 108s + 500ms);
  CHECK(made(a.cluster).size() <= before + 4);
  CHECK_FALSE(a.cluster.store.ticks.contains(id(103s)));
}

TEST_CASE("a note keeps the last task, also where no listing has shown it") {
  Alone a;
  a.cluster.store.put_schedule("s", every(5s, [](Definition& d) { d.overlap = Overlap::kSkip; }));
  run_to(a.cluster, kStart + 4s);
  a.cluster.spoil<ListSchedules>({.lose_reply = true});
  run_to(a.cluster, kStart + 11s);
  CHECK(made(a.cluster) == std::vector{id(5s)});
  CHECK(last_tick(a.cluster) == kFirst + 10s);
  CHECK(a.cluster.store.schedule("s").last_task == id(5s));
}

TEST_CASE("a last task that no listing shows yet is read alone, and counts") {
  Alone a;
  a.cluster.store.put_schedule("s", every(5s, [](Definition& d) { d.overlap = Overlap::kSkip; }));
  run_to(a.cluster, kStart + 4s);
  a.cluster.spoil<ListTasks>({.lose_reply = true});
  run_to(a.cluster, kStart + 31s);
  CHECK(made(a.cluster) == std::vector{id(5s)});
  CHECK(a.cluster.started.size() == 1);
  CHECK(skipped(a.daemon, Fact::Kind::kTicksOverlap) == 5);
}

TEST_CASE(
    "a schedule is run by hand before it is known here, while no names come: no task beside it") {
  Alone a;
  a.cluster.spoil<ListTasks>({.lose_reply = true});
  a.cluster.put("0");  // the query for names that waits already is answered with this
  a.cluster.run_for(100ms);
  a.cluster.end_job(a.daemon, "tasks/0");
  const std::string by_hand = schedule::tick_id("s", kFirst + 1s);
  a.cluster.store.put(a.cluster.make(by_hand));
  a.cluster.store.put_schedule("s", every(5s, [&](Definition& d) {
                                 d.overlap = Overlap::kSkip;
                                 d.last_tick = kFirst;
                                 d.last_task = by_hand;
                               }));
  run_to(a.cluster, kStart + 31s);
  CHECK(made(a.cluster).empty());
  CHECK(a.cluster.started.back() == "tasks/" + by_hand);
}

TEST_CASE("a lastTick that a user sets counts: ticks after it are missed") {
  Alone a;
  a.all_end_after(1ms);
  run_to(a.cluster, kStart + 1h + 30s);
  a.cluster.store.put_schedule("s", every(600s, [](Definition& d) {
                                 d.missed = {Missed::Policy::kAll, 50, 24h};
                                 d.last_tick = kFirst + 30min;
                               }));
  a.cluster.run_for(2s);
  CHECK(made(a.cluster) == std::vector{id(40min), id(50min), id(60min)});
}

TEST_CASE("a clock that is set back across a tick makes no second task") {
  Alone a;
  a.all_end_after(1ms);
  a.cluster.store.put_schedule("s", every(60s));
  run_to(a.cluster, kStart + 61s);
  REQUIRE(made(a.cluster) == std::vector{id(60s)});
  a.cluster.step_clock(a.daemon, -30s);
  run_to(a.cluster, kStart + 120s);  // 90 s by its clock
  CHECK(made(a.cluster) == std::vector{id(60s)});
  run_to(a.cluster, kStart + 151s);
  CHECK(made(a.cluster) == std::vector{id(60s), id(120s)});

  // A clock that was wrong by a year: what it wrote is told.
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
}

TEST_CASE("times that are centuries away are reported as a century at most") {
  using std::chrono::hours;
  constexpr hours kCentury{24 * 365 * 100};
  Alone a;
  a.all_end_after(1ms);
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
  Alone a;
  a.all_end_after(1ms);
  a.cluster.store.put_schedule("s", every(10s));
  a.cluster.store.put_schedule("t", every(10s));
  run_to(a.cluster, kStart + 15s);
  a.cluster.store.remove("schedules/s");
  run_to(a.cluster, kStart + 25s);
  CHECK(made(a.cluster) == std::vector{id(10s), id(10s, "t"), id(20s, "t")});

  a.cluster.store.unreadable = {"schedules/", "tasks/"};  // the folder keys, too
  a.cluster.store.put_schedule("u", every(10s));
  run_to(a.cluster, kStart + 45s);
  CHECK(a.cluster.store.ticks.contains(id(40s, "t")));
}

TEST_CASE("after a reload the schedules are read again, for time zones may have changed") {
  Alone a;
  a.all_end_after(1ms);
  a.cluster.store.put_schedule("s", every(600s));
  run_to(a.cluster, kStart + 5s);
  // The same version of the record, with other ticks.
  Definition moved = a.cluster.store.schedule("s");
  moved.schedule = every(10s)->schedule;
  a.cluster.store.updated["s"] = std::make_shared<const Definition>(std::move(moved));
  run_to(a.cluster, kStart + 15s);
  CHECK(made(a.cluster).empty());
  a.cluster.reload(a.daemon, a.daemon.options);
  run_to(a.cluster, kStart + 25s);
  CHECK(made(a.cluster) == std::vector{id(10s), id(20s)});
}

TEST_CASE("a schedule that cannot be read is reported once, and holds up no other") {
  Alone a;
  a.all_end_after(1ms);
  a.cluster.store.put_schedule("bad", nullptr);
  a.cluster.store.put_schedule("s", every(10s));
  run_to(a.cluster, kStart + 35s);
  CHECK(made(a.cluster).size() == 3);
  CHECK(count(a.daemon, Fact::Kind::kScheduleFault) == 1);
  CHECK(a.daemon.queue->schedules().bad == 1);
  a.cluster.store.put_schedule("bad", every(10s));
  run_to(a.cluster, kStart + 45s);
  CHECK(a.cluster.store.ticks.contains(id(40s, "bad")));
  CHECK(a.daemon.queue->schedules().active == 2);
}

TEST_CASE("where another client wrote the tick's task, the schedule goes on without a second") {
  Alone a;
  a.all_end_after(1h);
  a.cluster.put(id(10s));
  a.cluster.store.put_schedule("s", every(10s));
  run_to(a.cluster, kStart + 25s);
  CHECK(count(a.daemon, Fact::Kind::kTickExists) == 1);
  CHECK(made(a.cluster) == std::vector{id(20s)});
  CHECK(last_tick(a.cluster) == kFirst + 20s);
}

TEST_CASE("a schedule that may not be written is tried again, and holds up no other") {
  Alone a;
  a.all_end_after(1ms);
  a.cluster.store.put_schedule("s", every(10s));
  a.cluster.store.put_schedule("t", every(10s));
  run_to(a.cluster, kStart + 5s);
  a.cluster.store.no_right.insert("schedules/s");
  run_to(a.cluster, kStart + 25s);
  CHECK(count(a.daemon, Fact::Kind::kDenied) >= 1);
  CHECK(made(a.cluster) == std::vector{id(10s, "t"), id(20s, "t")});
  const std::size_t tries = all<Commit>(a.daemon).size();
  CHECK(tries < 40);
  a.cluster.store.no_right.clear();
  run_to(a.cluster, kStart + 35s);
  CHECK(a.cluster.store.ticks.size() == 6);  // s has caught up
}

TEST_CASE("a daemon that stands still after it read the clock is not behind by as long") {
  Alone a;
  a.all_end_after(1ms);
  a.cluster.store.put_schedule("s", every(10s));
  run_to(a.cluster, kStart + 5s);
  // The reading is in the inbox when the process stops.
  a.cluster.tell(a.daemon, a.cluster.clock_of(a.daemon));
  a.cluster.pause(a.daemon, 3s);
  run_to(a.cluster, kStart + 10s + 100ms);
  CHECK(made(a.cluster) == std::vector{id(10s)});
}

TEST_CASE("nothing is made while the leader drains; a paused queue's ticks wait as its tasks do") {
  Alone a;
  a.cluster.store.put_schedule("s", every(10s));
  run_to(a.cluster, kStart + 5s);
  a.cluster.store.control(true, "");
  run_to(a.cluster, kStart + 25s);
  CHECK(made(a.cluster).size() == 2);
  CHECK(a.cluster.started.empty());
  a.cluster.store.control(false, "");
  run_to(a.cluster, kStart + 28s);
  CHECK(a.cluster.started.size() == 1);  // it runs until it is stopped
  a.cluster.tell(a.daemon, StopRequested{});
  run_to(a.cluster, kStart + 45s);
  CHECK(made(a.cluster).size() == 2);
}

}  // namespace
}  // namespace lictor::core::test
