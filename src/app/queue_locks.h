#pragma once

// The locks of a daemon's queues: where Consul has them, under which leases their jobs run, and how
// the warden releases them when the daemon is dead.

#include <cstddef>

#include "app/config.h"
#include "core/partition.h"
#include "exec/lease_board.h"
#include "exec/lock_keeper.h"
#include "wire/consul.h"

namespace lictor::app {

/// Makes a binding without leader_value.
[[nodiscard]] wire::Binding make_binding(const Config& config, const QueueConfig& queue);

/// The lease of partition 0 of the `index`-th queue; for `index` = number of queues, the number of
/// leases. Each queue has as many as it may get partitions while the daemon runs.
[[nodiscard]] inline exec::LeaseSlot first_slot(std::size_t index) {
  return static_cast<exec::LeaseSlot>(index) * core::kMostPartitions;
}

/// Runs in a child of the warden, which is forked from this process as it is now. `config` must
/// outlive it.
[[nodiscard]] exec::ReleaseLocks release_locks(const Config& config);
/// How long the warden of a dead daemon may take to end its jobs and release its locks.
[[nodiscard]] Duration longest_lock_release(const Config& config);

}  // namespace lictor::app
