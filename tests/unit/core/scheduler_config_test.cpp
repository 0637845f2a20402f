// Recurring tasks of the configuration: the leader keeps what is stored as its configuration has
// it.

#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "alone.h"
#include "wire/schedule_record.h"

namespace lictor::core::test {
namespace {

using schedule::Definition;
using schedule::Tick;
using std::chrono::seconds;

const Tick kFirstTick = std::chrono::floor<seconds>(kWallStart);  // a multiple of ten seconds

// Every `interval`; `text` is all that the configuration says, empty for another client's.
std::shared_ptr<const Definition> every(seconds interval, std::string text, bool paused = false) {
  auto schedule = schedule::Schedule::make({schedule::Every{interval}, nullptr, {}, {}});
  REQUIRE(schedule);
  return std::make_shared<const Definition>(Definition{*std::move(schedule),
                                                       std::to_string(interval.count()),
                                                       {},
                                                       schedule::Overlap::kAllow,
                                                       {},
                                                       paused,
                                                       {},
                                                       {},
                                                       {},
                                                       std::move(text)});
}

ConfiguredSchedule wants(const std::shared_ptr<const Definition>& definition,
                         bool sets_paused = false) {
  return configured("s", *definition, sets_paused);
}

QueueOptions with(ConfiguredSchedule schedule) {
  QueueOptions options = options_of("a");
  options.schedules.emplace("s", std::move(schedule));
  return options;
}

void reload(Cluster& cluster, Daemon& daemon, QueueOptions options) {
  options.costs = daemon.options.costs;
  daemon.options.schedules = options.schedules;
  cluster.reload(daemon, daemon.options);
}

void run_to(Cluster& cluster, Duration since_start) {
  cluster.run_for(kStart + since_start - cluster.now);
}

Definition stored(const Cluster& cluster) { return cluster.store.schedule("s"); }

// That it is as the configuration with this text has it.
bool says(const Cluster& cluster, const std::string& text) {
  return stored(cluster).configured.find('"' + text + '"') != std::string::npos;
}

std::vector<std::string> told(const Daemon& daemon, Fact::Kind kind) {
  std::vector<std::string> texts;
  for (const Fact& fact : all<Fact>(daemon)) {
    if (fact.kind == kind) texts.push_back(fact.text);
  }
  return texts;
}

using Texts = std::vector<std::string>;
constexpr auto kConfigured = Fact::Kind::kScheduleConfigured;

TEST_CASE("a schedule of the configuration is written once, and makes its ticks") {
  Alone a{with(wants(every(10s, "v1")))};
  a.all_end_after(1ms);
  run_to(a.cluster, 5s);
  CHECK(says(a.cluster, "v1"));
  CHECK(stored(a.cluster).last_tick >= kFirstTick);  // it counts from when it was written
  run_to(a.cluster, 35s);
  CHECK(a.cluster.store.ticks.size() == 3);
  CHECK(told(a.daemon, kConfigured) == Texts{"added"});
  CHECK(a.daemon.queue->schedules().active == 1);
}

TEST_CASE("a change in the configuration is written; what leader and operator did stays") {
  Alone a{with(wants(every(10s, "v1")))};
  a.all_end_after(1ms);
  run_to(a.cluster, 15s);
  const std::string record = a.cluster.store.find("schedules/s")->value;
  a.cluster.store.write("schedules/s", wire::with_paused(record, true));
  run_to(a.cluster, 17s);
  reload(a.cluster, a.daemon, with(wants(every(10s, "v2"))));
  run_to(a.cluster, 20s);
  CHECK(says(a.cluster, "v2"));
  CHECK(stored(a.cluster).paused);
  CHECK(stored(a.cluster).last_tick == kFirstTick + 10s);
  CHECK(stored(a.cluster).last_task == schedule::tick_id("s", kFirstTick + 10s));
  CHECK(told(a.daemon, kConfigured) == Texts{"added", "changed"});
  reload(a.cluster, a.daemon, with(wants(every(10s, "v2"), true)));
  run_to(a.cluster, 25s);
  CHECK_FALSE(stored(a.cluster).paused);  // the configuration says so now
}

TEST_CASE("another rule counts from now") {
  Alone a{with(wants(every(10s, "v1")))};
  a.all_end_after(1ms);
  run_to(a.cluster, 15s);
  reload(a.cluster, a.daemon, with(wants(every(1s, "v2"))));
  run_to(a.cluster, 18s);
  CHECK(a.cluster.store.ticks.contains(schedule::tick_id("s", kFirstTick + 17s)));
  CHECK_FALSE(a.cluster.store.ticks.contains(schedule::tick_id("s", kFirstTick + 14s)));
}

TEST_CASE("what the configuration has no longer is deleted") {
  Alone a{with(wants(every(10s, "v1")))};
  a.cluster.store.put_schedule("other", every(10s, ""));
  run_to(a.cluster, 5s);
  reload(a.cluster, a.daemon, options_of("a"));
  run_to(a.cluster, 8s);
  CHECK_FALSE(a.cluster.store.has("schedules/s"));
  CHECK(a.cluster.store.has("schedules/other"));
  CHECK(told(a.daemon, kConfigured) == Texts{"added", "removed"});
  CHECK(a.daemon.queue->schedules().active == 1);
}

TEST_CASE("a schedule of another client keeps its name, and the configuration's waits") {
  Alone a;
  a.all_end_after(1ms);
  a.cluster.store.put_schedule("s", every(10s, ""));
  run_to(a.cluster, 2s);
  reload(a.cluster, a.daemon, with(wants(every(1s, "v1"))));
  run_to(a.cluster, 35s);
  CHECK(a.cluster.store.ticks.size() == 3);
  CHECK(stored(a.cluster).configured.empty());
  CHECK(told(a.daemon, Fact::Kind::kScheduleTaken).size() == 1);
  a.cluster.store.remove("schedules/s");
  run_to(a.cluster, 38s);
  CHECK(says(a.cluster, "v1"));
}

TEST_CASE("one that may not be written is tried again, and does not count as stored") {
  Alone a;
  a.cluster.store.no_right.insert("schedules/s");
  reload(a.cluster, a.daemon, with(wants(every(10s, "v1"))));
  run_to(a.cluster, 20s);
  CHECK(count(a.daemon, Fact::Kind::kDenied) >= 1);
  CHECK(a.daemon.queue->schedules().bad == 0);
  CHECK(all<Commit>(a.daemon).size() < 20);
  a.cluster.store.no_right.clear();
  run_to(a.cluster, 30s);
  CHECK(says(a.cluster, "v1"));
}

}  // namespace
}  // namespace lictor::core::test
