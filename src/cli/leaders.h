#pragma once

// "lictor leader" in a queue of several partitions.

#include "cli/commands.h"
#include "client/locks.h"

namespace lictor::cli {

/// Prints who leads each partition. Errors: kNotFound, nobody leads some.
[[nodiscard]] Result<int> show_leaders(const Client& client, const client::Locks& locks);

/// Asks all leaders to hand over, and waits until each partition that was led has changed hands.
/// Errors: kNotFound, nobody leads any; kFailed, not all did.
[[nodiscard]] Result<int> step_down_all(const Client& client, const client::Locks& locks,
                                        const LeaderOptions& options);

}  // namespace lictor::cli
