#pragma once

#include "app/config.h"
#include "app/config_reader.h"
#include "core/options.h"
#include "lictor/result.h"

namespace lictor::app {

/// The settings that a queue gives as defaults and an executor may give itself.
[[nodiscard]] Settings policy_settings(core::TypePolicy& policy);

/// What may run at most once is not tried again after a failure either, unless somebody said how
/// often: `counts_attempts`. A record cannot ask for more.
void limit_at_most_once(core::TypePolicy& policy, bool counts_attempts);

/// Reads "executors" into queue.executors and, starting each from `defaults`, into the policies of
/// queue.options; `counts_attempts`: the queue says max_attempts. For the daemon, programs, folders
/// and users must be there on this host.
[[nodiscard]] Result<void> read_executors(const Place& place, Mode mode,
                                          const core::TypePolicy& defaults, bool counts_attempts,
                                          QueueConfig& queue);

}  // namespace lictor::app
