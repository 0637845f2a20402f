#pragma once

#include <string>

#include "app/config.h"
#include "app/config_reader.h"
#include "lictor/result.h"

namespace lictor::app {

/// The queue `name` with every default, its paths below `root`.
[[nodiscard]] QueueConfig default_queue(const std::string& name, const std::string& root,
                                        const std::string& node);

/// Reads "queues". `place` is its place. What is not set is derived: paths from root and name,
/// renew_interval from session_ttl, margin from lock_delay.
[[nodiscard]] Result<std::vector<QueueConfig>> read_queues(const Place& place, Mode mode,
                                                           const std::string& root,
                                                           const std::string& node);

}  // namespace lictor::app
