// Recurring tasks of the configuration: the leader keeps the stored schedule as its configuration
// says.

#include "schedules.h"
#include "wire/schedule_record.h"

namespace lictor::core::test {
namespace {

// A schedule with all fields of its configuration.
std::shared_ptr<const Definition> worded(seconds interval, const std::string& text) {
  return every(interval, [&](Definition& definition) { definition.configured = text; });
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

void reload(Alone& a, const QueueOptions& options) {
  a.daemon.options.schedules = options.schedules;
  a.cluster.reload(a.daemon, a.daemon.options);
}

// Whether the stored schedule is that of the configuration with this text.
bool says(const Schedules& a, const std::string& text) {
  return a.stored().configured.find('"' + text + '"') != std::string::npos;
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
  Schedules a{1ms, with(wants(worded(10s, "v1")))};
  a.run_to(5s);
  CHECK(says(a, "v1"));
  CHECK(a.stored().last_tick >= kFirst);  // it counts from when it was written
  a.run_to(35s);
  CHECK(a.cluster.store.ticks.size() == 3);
  CHECK(told(a.daemon, kConfigured) == Texts{"added"});
  CHECK(told(a.daemon, Fact::Kind::kScheduleTaken).empty());
  CHECK(a.daemon.queue->schedules().active == 1);
}

TEST_CASE("a change in the configuration is written; the leader's and operator's changes stay") {
  Schedules a{1ms, with(wants(worded(10s, "v1")))};
  a.run_to(15s);
  const std::string record = a.cluster.store.find("schedules/s")->value;
  a.cluster.store.write("schedules/s", wire::with_paused(record, true));
  a.run_to(17s);
  reload(a, with(wants(worded(10s, "v2"))));
  a.run_to(20s);
  CHECK(says(a, "v2"));
  CHECK(a.stored().paused);
  CHECK(a.stored().last_tick == kFirst + 10s);
  CHECK(a.stored().last_task == schedule::tick_id("s", kFirst + 10s));
  CHECK(told(a.daemon, kConfigured) == Texts{"added", "changed"});
  reload(a, with(wants(worded(10s, "v2"), true)));
  a.run_to(25s);
  CHECK_FALSE(a.stored().paused);  // the configuration says so now
}

TEST_CASE("another rule counts from now") {
  Schedules a{1ms, with(wants(worded(10s, "v1")))};
  a.run_to(15s);
  reload(a, with(wants(worded(1s, "v2"))));
  a.run_to(18s);
  CHECK(a.cluster.store.ticks.contains(schedule::tick_id("s", kFirst + 17s)));
  CHECK_FALSE(a.cluster.store.ticks.contains(schedule::tick_id("s", kFirst + 14s)));
}

TEST_CASE("a schedule that the configuration no longer has is deleted") {
  Schedules a{{}, with(wants(worded(10s, "v1")))};
  a.cluster.store.put_schedule("other", every(10s));
  a.run_to(5s);
  reload(a, options_of("a"));
  a.run_to(8s);
  CHECK_FALSE(a.cluster.store.has("schedules/s"));
  CHECK(a.cluster.store.has("schedules/other"));
  CHECK(told(a.daemon, kConfigured) == Texts{"added", "removed"});
  CHECK(a.daemon.queue->schedules().active == 1);
}

TEST_CASE("a schedule of another client keeps its name, and the configuration's waits") {
  Schedules a{1ms};
  a.cluster.store.put_schedule("s", every(10s));
  a.run_to(2s);
  reload(a, with(wants(worded(1s, "v1"))));
  a.run_to(35s);
  CHECK(a.cluster.store.ticks.size() == 3);
  CHECK(a.stored().configured.empty());
  CHECK(told(a.daemon, Fact::Kind::kScheduleTaken).size() == 1);
  a.cluster.store.remove("schedules/s");
  a.run_to(38s);
  CHECK(says(a, "v1"));
}

TEST_CASE("a schedule that may not be written is tried again, and does not count as stored") {
  Schedules a;
  a.cluster.store.no_right.insert("schedules/s");
  reload(a, with(wants(worded(10s, "v1"))));
  a.run_to(20s);
  CHECK(count(a.daemon, Fact::Kind::kDenied) >= 1);
  CHECK(a.daemon.queue->schedules().bad == 0);
  CHECK(all<Commit>(a.daemon).size() < 20);
  a.cluster.store.no_right.clear();
  a.run_to(30s);
  CHECK(says(a, "v1"));
}

}  // namespace
}  // namespace lictor::core::test
