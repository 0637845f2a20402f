#include <string>

#include <doctest/doctest.h>

#include "admin/metrics.h"
#include "unit/admin/metrics_text.h"

namespace lictor::admin {
namespace {

using namespace std::chrono_literals;

Status status_of(QueueStatus::Role role, double oldest_due, double discovered) {
  QueueStatus queue;
  queue.name = "q";
  queue.role = role;
  queue.gauges = {{"oldest_due", oldest_due}, {"discovered", discovered}};
  Status status;
  status.queues = {queue};
  return status;
}

TEST_CASE("lictor_takeover_seconds has the time that the lock was free, once for each takeover") {
  Metrics metrics;
  core::Fact leading{core::Fact::Kind::kLeading, {}, {}, 40ms};
  metrics.on_fact("q", leading);
  leading.took = 20s;
  metrics.on_fact("q", leading);
  const core::Fact lock_delay{core::Fact::Kind::kLockDelay, {}, {}, 7s};
  metrics.on_fact("q", lock_delay);
  const std::string text = metrics.text(status_of(QueueStatus::Role::kLeading, 0, 0));
  CHECK(value(text, R"(lictor_takeover_seconds_count{queue="q"})") == "2");
  CHECK(value(text, R"(lictor_takeover_seconds_sum{queue="q"})") == "20.04");
  CHECK(value(text, R"(lictor_takeover_seconds_bucket{queue="q",le="0.05"})") == "1");
  CHECK(value(text, R"(lictor_takeover_seconds_bucket{queue="q",le="30"})") == "2");
  CHECK(value(text, R"(lictor_leader_changes_total{queue="q"})") == "2");
}

TEST_CASE("partitions are told with those that this daemon leads, and how they came and went") {
  Metrics metrics;
  Status status = status_of(QueueStatus::Role::kLeading, 0, 0);
  status.queues[0].partitions = 16;
  status.queues[0].leads = {0, 3, 7};
  using Kind = core::Fact::Kind;
  for (const auto kind : {Kind::kLeading, Kind::kLeading, Kind::kSteppedDown, Kind::kLeaseLost,
                          Kind::kLeading, Kind::kSteppedDown, Kind::kSteppedDown}) {
    metrics.on_fact("q", core::Fact{kind});
  }
  std::string text = metrics.text(status);
  CHECK(value(text, R"(lictor_leading{queue="q"})") == "1");
  CHECK(value(text, R"(lictor_partitions{queue="q"})") == "16");
  CHECK(value(text, R"(lictor_partitions_led{queue="q"})") == "3");
  CHECK(value(text, R"(lictor_leader_changes_total{queue="q"})") == "3");
  CHECK(value(text, R"(lictor_leases_lost_total{queue="q"})") == "1");
  CHECK(value(text, R"(lictor_partitions_released_total{queue="q"})") == "3");
  status = status_of(QueueStatus::Role::kFollowing, 0, 0);
  status.queues[0].partitions = 0;  // not known yet
  text = metrics.text(status);
  CHECK(value(text, R"(lictor_partitions{queue="q"})").empty());
  CHECK(value(text, R"(lictor_partitions_led{queue="q"})") == "0");
}

TEST_CASE("ticks are counted by what became of them, schedules by state") {
  Metrics metrics;
  core::Fact fact{core::Fact::Kind::kTickMade, "l/q/tasks/s@x"};
  fact.late = 20ms;
  metrics.on_fact("q", fact);
  fact.late = 6s;
  metrics.on_fact("q", fact);
  core::Fact missed{core::Fact::Kind::kTicksMissed, "l/q/schedules/s"};
  missed.count = 7;
  metrics.on_fact("q", missed);
  missed.kind = core::Fact::Kind::kTicksOverlap;
  metrics.on_fact("q", missed);
  auto status = status_of(QueueStatus::Role::kLeading, 0, 0);
  status.queues[0].schedules = {{"active", 3}, {"bad", 1}};
  const std::string text = metrics.text(status);
  CHECK(value(text, R"(lictor_ticks_total{outcome="made",queue="q"})") == "1");
  CHECK(value(text, R"(lictor_ticks_total{outcome="late",queue="q"})") == "1");
  CHECK(value(text, R"(lictor_ticks_total{outcome="missed",queue="q"})") == "7");
  CHECK(value(text, R"(lictor_ticks_total{outcome="overlap",queue="q"})") == "7");
  CHECK(value(text, R"(lictor_schedules{queue="q",state="active"})") == "3");
  CHECK(value(text, R"(lictor_schedules{queue="q",state="bad"})") == "1");
}

TEST_CASE("lictor_tasks_discovered_total is a counter that every daemon shows") {
  const Metrics metrics;
  for (const auto role : {QueueStatus::Role::kLeading, QueueStatus::Role::kFollowing}) {
    const std::string text = metrics.text(status_of(role, 0, 100'042));
    CHECK(value(text, R"(lictor_tasks_discovered_total{queue="q"})") == "100042");
    CHECK(text.find("# TYPE lictor_tasks_discovered_total counter") != std::string::npos);
  }
}

}  // namespace
}  // namespace lictor::admin
