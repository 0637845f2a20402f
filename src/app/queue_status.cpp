#include "app/queue_status.h"

#include <utility>

#include "base/clock.h"

namespace lictor::app {

admin::QueueStatus status_of(const runtime::QueueSupervisor& queue, bool stopping,
                             std::vector<std::string> types, const exec::ActiveLogs& logs) {
  using Role = admin::QueueStatus::Role;
  const Instant now = boot_now();
  admin::QueueStatus told;
  told.name = queue.name();
  told.types = std::move(types);
  told.log_error = logs.newest_error();
  told.partitions = queue.partitions();
  const runtime::QueueDriver* driver = queue.driver();
  if (driver == nullptr) return told;
  const core::Queue& core = driver->core();
  if (core.leading(now)) told.role = stopping ? Role::kDraining : Role::kLeading;
  for (std::uint32_t i = 0; i < told.partitions; ++i) {
    if (core.leading(now, i)) told.leads.push_back(i);
  }
  told.waiting = core.waiting();
  told.claimed_ahead = core.claimed_ahead();
  told.running = core.running();
  told.paused = core.paused();
  told.cannot_start = core.cannot_start();
  told.longest_running = core.longest_running(now);
  told.discovered = core.discovered();
  if (told.role == Role::kFollowing) return told;
  told.lease_left = core.lease_left(now);
  told.oldest_due = core.oldest_due(now);
  told.unacked = core.count(core::TaskState::kEnding);
  for (std::size_t i = 0; i < core::kTaskStates; ++i) {
    const auto state = static_cast<core::TaskState>(i);
    // No longer a task, or another host's.
    if (state == core::TaskState::kDeleted || state == core::TaskState::kForeign) continue;
    // A key that cannot be read is of no partition, and every host knows it.
    if (state == core::TaskState::kUnnameable && !core.leading(now, 0)) continue;
    told.states.emplace_back(core::name_of(state), core.count(state));
  }
  const core::Scheduler::Stats schedules = core.schedules();
  told.schedules = {
      {"active", schedules.active}, {"paused", schedules.paused}, {"bad", schedules.bad}};
  return told;
}

}  // namespace lictor::app
