// The gauges of routes.h, a row each. read_gauges() runs on the loop's thread, since it reads the
// core.

#include "admin/routes.h"
#include "core/queue.h"

namespace lictor::admin {
namespace {

double in_seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

std::span<const Gauge> gauges() {
  using enum Gauge::Kind;
  using enum Gauge::Known;
  using Queue = const core::Queue&;
  static constexpr Gauge kGauges[] = {
      {"paused", "lictor_paused", "1 while the queue is paused; only leaders know.", kFlag,
       kByLeader, [](Queue queue, Instant) { return queue.paused() ? 1.0 : 0.0; }},
      {"lease_left", "lictor_lease_remaining_seconds",
       "How long this leader's jobs may run without another proof of leadership; of several "
       "partitions the shortest.",
       kSeconds, kByLeader,
       [](Queue queue, Instant now) { return in_seconds(queue.lease_left(now)); }},
      {"oldest_due", "lictor_oldest_due_seconds",
       "How long the first waiting task of this leader that has an executor has been due. Take "
       "the max over hosts.",
       kSeconds, kByLeader,
       [](Queue queue, Instant now) { return in_seconds(queue.oldest_due(now)); }},
      {"longest_running", nullptr, nullptr, kSeconds, kByLeader,
       [](Queue queue, Instant now) { return in_seconds(queue.longest_running(now)); }},
      {"waiting", nullptr, nullptr, kCount, kByLeader,
       [](Queue queue, Instant) { return static_cast<double>(queue.waiting()); }},
      {"claimed_ahead", "lictor_claims_ahead",
       "Tasks that this leader has claimed and not started yet.", kCount, kByLeader,
       [](Queue queue, Instant) { return static_cast<double>(queue.claimed_ahead()); }},
      {"unacked", "lictor_unacked", "Jobs that ended and whose end is not in Consul yet.", kCount,
       kByLeader,
       [](Queue queue, Instant) {
         return static_cast<double>(queue.count(core::TaskState::kEnding));
       }},
      {"running", "lictor_jobs_running", "Jobs that run on this host.", kCount, kAlways,
       [](Queue queue, Instant) { return static_cast<double>(queue.running()); }},
      {"states", "lictor_tasks",
       "Tasks of the partitions that this daemon leads, by state; the sum over hosts is the "
       "queue's.",
       kByState, kByLeader, nullptr, &QueueStatus::states},
      {"schedules", "lictor_schedules",
       "Recurring tasks, by state; a bad one makes no tasks until it is corrected. Only the leader "
       "of partition 0 knows any: the sum over hosts is the queue's.",
       kByState, kByLeader, nullptr, &QueueStatus::schedules},
      {"discovered", "lictor_tasks_discovered_total",
       "Keys that became known to this leader, those that it found at its takeover included. Each "
       "leader gets to know all keys of the queue: take the max over hosts.",
       kCounter, kAlways,
       [](Queue queue, Instant) { return static_cast<double>(queue.discovered()); }},
  };
  return kGauges;
}

bool Gauge::is_known(const QueueStatus& queue) const {
  return known == Known::kAlways || queue.role != QueueStatus::Role::kFollowing;
}

std::string Gauge::field() const {
  return std::string{name} + (kind == Kind::kSeconds ? "_ms" : "");
}

// Gauges that only a leader knows are left out on a follower.
void read_gauges(const core::Queue& core, Instant now, QueueStatus& queue) {
  for (const Gauge& gauge : gauges()) {
    if (gauge.read != nullptr && gauge.is_known(queue)) {
      queue.gauges[gauge.name] = gauge.read(core, now);
    }
  }
}

}  // namespace lictor::admin
