#pragma once

#include <string>

#include "core/effect.h"

namespace lictor::runtime {

/// Words what the core found worth saying of `queue` as a line of the log.
void log_fact(const std::string& queue, const core::Fact& fact);

}  // namespace lictor::runtime
