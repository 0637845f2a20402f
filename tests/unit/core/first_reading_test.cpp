// A new leader reads everything before it claims anything: a long list batch by batch.

#include <algorithm>
#include <utility>

#include <doctest/doctest.h>

#include "alone.h"

using namespace lictor;
using namespace lictor::core;
using namespace lictor::core::test;

namespace {

constexpr int kList = 500;

// Waits for a leader, which is to read a long list.
struct Long {
  Long() {
    cluster.plan = [](const Task&) { return JobPlan{.after = 1ms, .error = {}}; };
    put_for_tomorrow(cluster, 1'000, kList);
    daemon = &cluster.add(options_of("a"));
  }
  ~Long() { CHECK(cluster.violations().empty()); }

  // A task that is due, the oldest first.
  void due(const std::string& id, std::chrono::seconds age) {
    cluster.put(id, [&](Task& task) { task.execute_at = cluster.wall() - age; });
  }
  // Each reading takes so long.
  void slow(Duration duration) {
    cluster.fault = [duration](const Daemon&, const Effect& effect) {
      return std::holds_alternative<FetchTasks>(effect) ? Fault{.back = duration} : Fault{};
    };
  }
  bool lead() {
    return cluster.run_until([&] { return cluster.leader() != nullptr; }, 1s);
  }
  std::vector<FetchTasks> parts() { return all<FetchTasks>(*daemon); }
  std::size_t known() {
    const auto held = daemon->queue->stats();
    return held.tasks + held.distant;
  }

  Cluster cluster;
  Daemon* daemon = nullptr;
};

}  // namespace

TEST_SUITE_BEGIN("core");

TEST_CASE("a long list is read in batches, all of it before anything starts") {
  Long l;
  std::string oldest = "1001-first", other = "1498-last";  // in the first part and in the last
  SUBCASE("the oldest is in the first") {}
  SUBCASE("the oldest is in the last") { std::swap(oldest, other); }
  l.due(oldest, 2s);
  l.due(other, 1s);
  l.slow(10ms);
  REQUIRE(l.lead());
  CHECK(l.cluster.run_until([&] { return !l.cluster.started.empty(); }, 2s));
  const auto parts = l.parts();
  CHECK(parts.size() > 4);
  for (const FetchTasks& part : parts) CHECK(part.keys.size() <= limits::kMostOperations);
  l.cluster.run_for(2s);
  CHECK(l.cluster.started == Keys{"tasks/" + oldest, "tasks/" + other});
  CHECK(l.known() == kList);
}

TEST_CASE("what comes, goes or changes while a long list is read is seen") {
  Long l;
  l.slow(20ms);
  REQUIRE(l.lead());
  REQUIRE(l.cluster.run_until([&] { return l.parts().size() == 3; }, 5s));
  REQUIRE(l.cluster.started.empty());
  REQUIRE_FALSE(l.daemon->queue->drained());
  l.cluster.store.remove("tasks/1001");
  l.cluster.store.remove("tasks/1450");
  l.due("1002", 3s);
  l.due("1451", 2s);
  l.due("12345", 1s);
  CHECK(l.cluster.run_until([&] { return l.cluster.started.size() == 3; }, 5s));
  auto started = l.cluster.started;
  std::sort(started.begin(), started.end());
  CHECK(started == Keys{"tasks/1002", "tasks/12345", "tasks/1451"});
  l.cluster.run_for(1s);
  CHECK(l.known() == kList - 4);
}

TEST_CASE("a batch that is not answered is asked for again") {
  Long l;
  l.due("0", 1s);
  int lost = 0;
  l.cluster.spoil({.lose_reply = true}, [&](const Daemon&, const Effect& effect) {
    return std::holds_alternative<FetchTasks>(effect) && ++lost % 3 == 1;
  });
  REQUIRE(l.lead());
  CHECK(l.cluster.run_until([&] { return l.cluster.started == Keys{"tasks/0"}; }, 120s));
  l.cluster.run_for(1s);
  CHECK(l.known() == kList);
  CHECK(lost > 3);
}

TEST_CASE("after an outage what went meanwhile is forgotten, and what changed is read") {
  Long l;
  REQUIRE(l.lead());
  l.cluster.run_for(2s);
  REQUIRE(l.known() == kList);
  l.daemon->log.clear();
  l.cluster.spoil<ListTasks>({.refused = true});
  for (int i = 0; i < 100; ++i) l.cluster.store.remove("tasks/" + std::to_string(1'000 + i));
  l.due("1200", 1s);
  l.cluster.run_for(5s);
  l.cluster.heal();
  l.cluster.run_for(3s);
  CHECK(l.cluster.started == Keys{"tasks/1200"});
  CHECK(l.known() == kList - 101);
}
