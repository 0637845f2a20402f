// Recurring tasks on a real Consul: each tick once, while leaders are killed on the tick.

#include "schedule/ticks.h"

#include <map>
#include <optional>
#include <set>
#include <thread>

#include "world.h"

namespace lictor::live {
namespace {

using schedule::Tick;
using std::chrono::floor;
using std::chrono::seconds;
using std::chrono::system_clock;

json every_second() {
  return {{"every", "1s"},
          {"overlap", "allow"},
          {"task", {{"taskType", "Record"}, {"taskPara", {{"sleep", 1}, {"at", "{tick}"}}}}}};
}

// Waits until shortly before or after the next second, in turn.
void wait_for_tick(int turn) {
  const auto next = floor<seconds>(system_clock::now()) + seconds{1};
  std::this_thread::sleep_until(next + std::chrono::milliseconds{turn * 3 - 6});
}

TEST_CASE("each tick makes one task while its leader is killed on the tick, again and again") {
  World world;
  const std::string key = world.root + "default/schedules/s";
  auto leader = world.leading_daemon("a", {{"history", {{"keep", 10'000}}}});
  world.kv.put_json(key, every_second());
  REQUIRE(eventually([&] { return world.journal.runs().size() >= 2; }));
  for (int turn = 0; turn < 5; ++turn) {
    auto next = world.standby_daemon("b" + std::to_string(turn), {{"history", {{"keep", 10'000}}}});
    wait_for_tick(turn);
    leader->kill();
    REQUIRE(eventually([&] { return world.leads(*next); }));
    leader = std::move(next);
  }
  const std::size_t now = world.journal.runs().size();
  REQUIRE(eventually([&] { return world.journal.runs().size() >= now + 2; }));
  json record = world.kv.get_json(key);
  record["paused"] = true;
  world.kv.put_json(key, record);
  REQUIRE(eventually(
      [&] { return world.kv.get_json(key).value("paused", false) && world.all_done(); }));
  // A task that is made again begins with attempt 1. A claim of a dead daemon counts as an attempt.
  std::map<std::string, std::set<int>> attempts;
  for (const Run& run : world.journal.runs()) {
    CHECK_MESSAGE(attempts[run.task].insert(run.attempt).second, run.task);
  }
  const auto done = world.kv.list(world.root + "default/done/");
  REQUIRE(done.size() >= 6);
  CHECK(attempts.size() == done.size());
  std::optional<Tick> last;
  for (const KvEntry& entry : done) {
    const std::string id = entry.key.substr((world.root + "default/done/").size());
    const auto made = schedule::parse_tick_id(id).value();
    CHECK(made.schedule_name == "s");
    if (last) CHECK_MESSAGE(made.tick == *last + seconds{1}, id);  // none is lost
    last = made.tick;
    // The journal has words without slashes.
    CHECK_MESSAGE(attempts.contains("s%2F" + id.substr(2)), id);
    CHECK(json::parse(entry.value)["record"]["taskPara"]["at"] == schedule::tick_text(*last));
  }
  CHECK(schedule::parse_tick(world.kv.get_json(key).value("lastTick", "")) >= last);
  CHECK(world.dead() == 0);
}

}  // namespace
}  // namespace lictor::live
