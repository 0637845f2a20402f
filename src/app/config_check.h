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

/// A third of the shortest session_ttl, so that a daemon that hangs is replaced before its session
/// would end; half of the shortest lease, where that is less.
[[nodiscard]] Duration default_hang_timeout(const std::vector<QueueConfig>& queues);

/// Whether a hang_timeout that is set and not 0 is less than each lease, at whose end the jobs of a
/// daemon that hangs are ended anyway. `place` is that of the whole file.
[[nodiscard]] Result<void> check_hang_timeout(const Place& place, Duration hang_timeout,
                                              const std::vector<QueueConfig>& queues);

}  // namespace lictor::app
