#pragma once

#include "app/config.h"
#include "app/config_reader.h"
#include "core/options.h"
#include "lictor/result.h"

namespace lictor::app {

/// The settings that a queue gives as defaults and an executor may give itself.
[[nodiscard]] Settings policy_settings(core::TypePolicy& policy);

/// Reads "executors" into queue.executors and, starting each from `defaults`, into the policies of
/// queue.options. For the daemon, programs, folders and users must be there on this host.
[[nodiscard]] Result<void> read_executors(const Place& place, Mode mode,
                                          const core::TypePolicy& defaults, QueueConfig& queue);

}  // namespace lictor::app
