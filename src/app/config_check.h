#pragma once

#include <vector>

#include "app/config.h"
#include "app/config_reader.h"
#include "lictor/result.h"

namespace lictor::app {

/// For scheduling delays, and for clocks that drift by up to 1% against each other, each by its own
/// share: max(1s, 2% of lock_delay).
[[nodiscard]] Duration margin_for(Duration lock_delay);

/// Whether a queue's settings fit together: renewals into the session's TTL, the kill of all jobs
/// and two tries of a proof into the lock-delay, the jobs into max_unacked. `place` is the queue's.
/// Errors: kInvalid, naming the settings, their values and what to change.
[[nodiscard]] Result<void> check_relations(const Place& place, const core::QueueOptions& options);

/// Whether each KV path of the queues has a place of its own, and each queue a name of its own.
/// `place` is that of "queues", in the order of `queues`.
[[nodiscard]] Result<void> check_layout(const Place& place, const std::vector<QueueConfig>& queues);

}  // namespace lictor::app
