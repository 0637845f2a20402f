#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "cluster.h"

namespace lictor::core::test {

/// So many tasks of a kilobyte, named by numbers from `first` on: a long list.
inline void put_for_tomorrow(Cluster& cluster, int first, int count) {
  for (int i = 0; i < count; ++i) {
    Task& task = cluster.make(std::to_string(first + i));
    task.execute_at = cluster.wall() + 24h;
    task.record = std::make_shared<const std::string>(std::to_string(i) + std::string(1'000, '.'));
    cluster.store.put(task);
  }
}

/// Writes a task that has lost so many owners, and now another one.
inline void put_lost(Cluster& cluster, const std::string& id, std::uint32_t lost) {
  cluster.put(id, [=](Task& task) {
    task.stamp.taken = true;
    task.stamp.attempt = lost + 1;
    task.stamp.lost = lost;
  });
}

/// At the end its checks hold.
struct CheckedCluster : Cluster {
  using Cluster::Cluster;
  ~CheckedCluster() {
    const auto& found = violations();
    CHECK_MESSAGE(found.empty(), (found.empty() ? std::string{} : found.front()));
  }
};

/// One daemon that leads; jobs run until the test ends them.
struct Alone {
  explicit Alone(QueueOptions options = options_of("a")) : daemon(cluster.add(std::move(options))) {
    REQUIRE(cluster.run_until([&] { return cluster.leader() != nullptr; }, 1s));
    cluster.run_for(100ms);
  }
  void all_end_after(Duration duration, JobEnding ending = JobEnding::kDone) {
    cluster.plan = [=](const Task&) { return JobPlan{duration, ending, "no luck"}; };
  }
  // A job ends, and then time passes.
  void end_and_run(const std::string& key, Duration duration, JobEnding ending = JobEnding::kDone) {
    cluster.end_job(daemon, key, ending, "no luck");
    cluster.run_for(duration);
  }
  void put(const std::string& id, const std::string& type, const std::string& serial_key = {}) {
    cluster.put(id, [&](Task& task) {
      task.type = type;
      task.serial_key = serial_key;
    });
  }
  bool idle() { return !cluster.store.has_tasks(); }
  std::vector<Reason> why(const std::string& id) {
    return daemon.queue->why(cluster.now, "tasks/" + id);
  }
  // When its job started first.
  std::optional<Instant> started_at(const std::string& key) {
    for (const auto& logged : daemon.log) {
      const auto* start = std::get_if<StartJob>(&logged.effect);
      if (start != nullptr && start->task->key == key) return logged.at;
    }
    return std::nullopt;
  }
  const BuryOp& dead(const std::string& key) {
    REQUIRE(cluster.store.dead.contains(key));
    return cluster.store.dead.at(key);
  }
  // The first effect that `which` picks suffers `fault`.
  void once(Fault fault, std::function<bool(const Effect&)> which) {
    cluster.spoil(fault, [=, left = 1](const Daemon&, const Effect& effect) mutable {
      return left > 0 && which(effect) && left-- > 0;
    });
  }

  CheckedCluster cluster;
  Daemon& daemon;
};

/// Two daemons over one store: the first leads, the other waits.
struct Two {
  explicit Two(QueueOptions options = options_of("a")) : a(cluster.add(options)) {
    REQUIRE(cluster.run_until([&] { return cluster.leader() == &a; }, 1s));
    options.node = std::string{"b"};
    b = &cluster.add(options);
    cluster.run_for(100ms);
    cluster.spoil({.lose_request = true, .lose_reply = true},
                  [this](const Daemon& daemon, const Effect&) { return cut_off == &daemon; });
  }
  Duration until_leader(Daemon& daemon) {
    const Instant from = cluster.now;
    CHECK(cluster.run_until([&] { return cluster.leader() == &daemon; }, 5min));
    return cluster.now - from;
  }

  CheckedCluster cluster;
  Daemon& a;
  Daemon* b = nullptr;
  const Daemon* cut_off = nullptr;
};

}  // namespace lictor::core::test
