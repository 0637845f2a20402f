#pragma once

#include <string>
#include <vector>

#include "app/config.h"

namespace lictor::app {

/// What differs in `next` and takes a restart: names, places and the timing that leases are built
/// on. Empty: all that differs can be taken over while running (executors, limits, log.level).
[[nodiscard]] std::vector<std::string> needs_restart(const Config& running, const Config& next);

}  // namespace lictor::app
