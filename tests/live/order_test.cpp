// Tasks run one after the other, in order, each version once, whatever others write meanwhile.

#include <algorithm>
#include <map>
#include <numeric>
#include <random>

#include "world.h"

namespace lictor::live {

TEST_CASE("five hundred tasks run in the order of their time, and urgent ones go to the front") {
  World world;
  std::vector<int> places(500);
  std::iota(places.begin(), places.end(), 0);
  std::shuffle(places.begin(), places.end(), std::mt19937{42});
  for (const int place : places) {
    // Two of each time: the one that was created first is the first. Those are the shuffled ones,
    // so the second of a pair is written here only after the first.
    if (place % 2 != 0) continue;
    const long time = 1'445'000'000 + place;
    world.submit("t" + std::to_string(place), time, {{"version", std::to_string(place)}});
    world.submit("t" + std::to_string(place + 1), time, {{"version", std::to_string(place + 1)}});
  }
  const auto daemon = world.daemon("a");
  // While they run, somebody writes tasks that go before all of them.
  for (int i = 0; i < 20; ++i) {
    const auto begun = static_cast<std::size_t>(i) * 10;
    REQUIRE(eventually([&] { return world.journal.order().size() > begun; }));
    world.submit("urgent" + std::to_string(i), 1000 + i);
  }
  REQUIRE(eventually([&] { return world.all_done(); }));

  std::vector<std::string> order = world.journal.order();
  CHECK(order.size() == 520);
  const auto last_urgent = std::find(order.begin(), order.end(), "urgent19") - order.begin();
  CHECK(last_urgent < 519);  // at least it went before somebody
  std::vector<std::string> urgent;
  std::vector<std::string> ordinary;
  for (const std::string& task : order) {
    (task.starts_with("urgent") ? urgent : ordinary).push_back(task);
  }
  std::vector<std::string> expected;
  for (int i = 0; i < 500; ++i) expected.push_back("t" + std::to_string(i));
  CHECK(ordinary == expected);
  expected.clear();
  for (int i = 0; i < 20; ++i) expected.push_back("urgent" + std::to_string(i));
  CHECK(urgent == expected);
  CHECK(world.journal.overlaps() == std::vector<std::string>{});
  CHECK(world.journal.falling_tokens() == std::vector<std::string>{});
}

// A claim names the version that it was made from: if somebody wrote after that version was read,
// Consul refuses the claim. So the run under token t has the last version before t, and the last
// version of all runs, whatever happens between.
TEST_CASE("while a writer changes tasks all the time, no old version runs and no task is lost") {
  World world;
  const auto daemon = world.leading_daemon("a", {{"concurrency", 4}}, "task");

  constexpr int kTasks = 40;
  constexpr int kRounds = 25;
  std::vector<std::map<std::uint64_t, int>> written(kTasks);  // by ModifyIndex
  for (int round = 1; round <= kRounds; ++round) {
    for (int i = 0; i < kTasks; ++i) {
      const json record{{"taskType", "Record"},
                        {"taskTime", 1000 + i},
                        {"taskPara", {{"version", round}, {"sleep", i % 5}}}};
      if ((round + i) % 7 == 0) world.kv.remove(world.task_key("t" + std::to_string(i)));
      const std::uint64_t index =
          world.kv.set(world.task_key("t" + std::to_string(i)), record.dump());
      written[static_cast<std::size_t>(i)][index] = round;
    }
  }
  REQUIRE(eventually([&] { return world.all_done(); }));
  CHECK(world.dead() == 0);

  std::size_t runs = 0;
  for (int i = 0; i < kTasks; ++i) {
    const auto& versions = written[static_cast<std::size_t>(i)];
    const std::vector<Run> all = world.journal.runs_of("t" + std::to_string(i));
    CAPTURE(i);
    REQUIRE_FALSE(all.empty());
    CHECK(all.back().version == std::to_string(kRounds));
    CHECK(all.back().ended);
    std::map<std::string, int> times;
    for (const Run& run : all) {
      CAPTURE(run.token);
      const auto after = versions.lower_bound(run.token);
      REQUIRE(after != versions.begin());
      CHECK(run.version == std::to_string(std::prev(after)->second));
      CHECK(run.attempt == 1);
      CHECK(++times[run.version] == 1);
    }
    runs += all.size();
  }
  MESSAGE("of " << kTasks * kRounds << " versions " << runs << " were run, "
                << count_of("before it was claimed", daemon->log())
                << " were rewritten between being read and claimed");
  // Here each task has its own lock, so only the locks show overlaps.
  std::vector<std::string> overlaps = world.journal.overlaps();
  std::erase_if(overlaps, [](const std::string& text) { return !contains(text, "beside"); });
  CHECK(overlaps == std::vector<std::string>{});
}

}  // namespace lictor::live
