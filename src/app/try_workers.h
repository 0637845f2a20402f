#pragma once

#include <vector>

#include "app/config.h"
#include "cli/check.h"

namespace lictor::app {

/// Starts a process of each worker, waits until it is ready, and ends it: by a warden of its own,
/// as the daemon would, and for root as the owner of state_dir, whom the daemon runs as. Call it
/// while this process has no other thread. Blocks for each worker's start_timeout at most, and for
/// its kill_grace.
[[nodiscard]] std::vector<cli::CheckOptions::Worker> try_workers(const Config& config);

}  // namespace lictor::app
