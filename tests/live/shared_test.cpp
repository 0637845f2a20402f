// A queue of several partitions, whose tasks several daemons run at the same time.

#include <algorithm>
#include <map>
#include <set>

#include "world.h"

namespace lictor::live {
namespace {

constexpr int kKeys = 12;

json settings_of(int partitions) {
  return {{"partitions", partitions}, {"concurrency", 3}, {"max_losses", 1000}};
}

class Shared {
 public:
  [[nodiscard]] std::unique_ptr<LictorDaemon> daemon(const std::string& node, int partitions) {
    return world.daemon(node, settings_of(partitions), "task");
  }
  void submit(int count, int sleep_ms = 20) {
    for (int i = 0; i < count; ++i, ++submitted) {
      const std::string id = "t" + std::to_string(100'000 + submitted);
      const std::string key = "key" + std::to_string(submitted % kKeys);
      json record{{"taskType", "Record"},
                  {"taskTime", 1000 + submitted},
                  {"taskPara", {{"sleep", sleep_ms}, {"key", key}}}};
      if (with_keys) record["serialKey"] = key;
      world.kv.put_json(world.task_key(id), record);
    }
  }
  [[nodiscard]] std::map<std::string, int> shares(int partitions) {
    return shares_of(world.kv, world.leader_key(), partitions);
  }
  [[nodiscard]] bool led_by(int partitions, std::size_t nodes) {
    return eventually([&] { return shares(partitions).size() == nodes; });
  }
  /// All partitions have a leader, and the shares of the nodes differ by one at most.
  [[nodiscard]] bool led_evenly(int partitions, std::size_t nodes) {
    return eventually([&] {
      const auto all = shares(partitions);
      const auto [least, most] = std::minmax_element(
          all.begin(), all.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
      return all.size() == nodes && most->second - least->second <= 1;
    });
  }
  // No two tasks of a lane ran at the same time: task n is in lane n modulo `lanes`.
  void check(int lanes = kKeys) {
    REQUIRE(eventually([&] { return world.all_done(); }));
    CHECK(world.dead() == 0);
    CHECK(world.journal.tasks() == static_cast<std::size_t>(submitted));
    CHECK(world.journal.lane_faults([lanes](const Run& run) {
      return std::atoi(run.task.c_str() + 1) % lanes;
    }) == std::vector<std::string>{});
  }
  [[nodiscard]] std::set<std::string> hosts() const {
    std::set<std::string> hosts;
    for (const Run& run : world.journal.runs()) hosts.insert(run.host);
    return hosts;
  }

  World world;
  int submitted = 0;
  bool with_keys = true;  // "serialKey" in the records
};

constexpr int kLanePerTask = 1'000'000;

TEST_CASE("daemons share the partitions of a queue, and a dead one's are taken at once") {
  Shared shared;
  const auto a = shared.daemon("a", 8);
  REQUIRE(shared.led_by(8, 1));
  const auto b = shared.daemon("b", 8);
  const auto c = shared.daemon("c", 8);
  shared.submit(200);
  REQUIRE(shared.led_evenly(8, 3));
  shared.submit(200);
  REQUIRE(eventually([&] { return shared.hosts().size() == 3; }));
  const std::int64_t begin = monotonic_ns();
  b->kill();
  REQUIRE(shared.led_by(8, 2));
  MESSAGE("taken over within " << seconds_between(begin, monotonic_ns()) << " s");
  // With lock-delay it would have taken 30 s.
  CHECK(seconds_between(begin, monotonic_ns()) < 20);
  shared.check();
}

TEST_CASE("the number of partitions changes while tasks run, from one and back to one") {
  Shared shared;
  std::vector<std::unique_ptr<LictorDaemon>> daemons;
  for (const char* node : {"a", "b", "c"}) daemons.push_back(shared.daemon(node, 1));
  REQUIRE(eventually([&] { return !shared.world.leader().empty(); }));
  const auto change_to = [&](int partitions) {
    for (const auto& daemon : daemons) daemon->reload(settings_of(partitions));
  };
  shared.submit(150);
  REQUIRE(eventually([&] { return shared.world.journal.tasks() > 20; }));
  // Nothing changes until all daemons ask for it.
  daemons[0]->reload(settings_of(6));
  REQUIRE(eventually([&] { return daemons[0]->logged("not divided until all members want it"); }));
  daemons[0]->reload(settings_of(1));
  REQUIRE(eventually([&] { return shared.world.journal.tasks() > 60; }));
  change_to(6);
  shared.submit(150);
  REQUIRE(shared.led_evenly(6, 3));  // though all daemons are new to the six partitions
  shared.submit(150);
  change_to(4);
  shared.submit(100);
  REQUIRE(eventually([&] { return !shared.shares(4).empty(); }));
  shared.submit(100);
  change_to(1);
  REQUIRE(eventually([&] { return !shared.world.leader().empty(); }));
  CHECK_FALSE(shared.world.kv.has(shared.world.root + "default/partitions"));
  shared.check();
}

TEST_CASE("a number of partitions that another client writes runs no task twice at a time") {
  Shared shared;
  const auto a = shared.daemon("a", 1);
  REQUIRE(eventually([&] { return !shared.world.leader().empty(); }));
  const auto b = shared.daemon("b", 1);
  REQUIRE(eventually([&] { return b->logged("session created"); }));  // it serves one partition
  b->reload(settings_of(4));
  REQUIRE(eventually([&] { return b->logged("not divided until all members want it"); }));
  const std::string number = shared.world.root + "default/partitions";
  // None before, so that no transaction of the leader checks it; then one partition, and several.
  for (const char* written : {"7", "1", "3"}) {
    CAPTURE(written);
    shared.submit(6, 1500);
    const std::size_t before = shared.world.journal.runs().size();
    REQUIRE(eventually([&] { return shared.world.journal.runs().size() > before + 1; }));
    shared.world.kv.put(number, written);
    const int count = std::atoi(written);
    REQUIRE(eventually([&] {
      return count == 1 ? !shared.world.leader().empty() : !shared.shares(count).empty();
    }));
    REQUIRE(eventually([&] { return shared.world.all_done(); }));
  }
  shared.check(kLanePerTask);
}

TEST_CASE("a rolling restart that changes serialize_by runs no task twice at a time") {
  Shared shared;
  shared.with_keys = false;
  json changed = settings_of(4);
  changed["serialize_by"] = "/taskPara/key";
  auto a = shared.daemon("a", 4);
  auto b = shared.daemon("b", 4);
  REQUIRE(shared.led_evenly(4, 2));
  shared.submit(100, 300);
  a->stop();
  a = shared.world.daemon("a", changed, "task");
  REQUIRE(
      eventually([&] { return a->logged("serialize_by is not that of the daemons that lead"); }));
  const std::size_t tasks = shared.world.journal.tasks();  // the other one does the work meanwhile
  CHECK(shared.led_by(4, 1));
  CHECK(eventually([&] { return shared.world.journal.tasks() > tasks; }));
  b->stop();
  b = shared.world.daemon("b", changed, "task");
  CHECK(shared.led_evenly(4, 2));
  shared.submit(100, 50);
  shared.check(kLanePerTask);
}

}  // namespace
}  // namespace lictor::live
