#pragma once

#include "lictor/time.h"

namespace lictor {

/// CLOCK_BOOTTIME now. Not for src/core, which is told the time.
[[nodiscard]] Instant boot_now() noexcept;

/// The wall clock now, to the millisecond.
[[nodiscard]] WallTime wall_now() noexcept;

}  // namespace lictor
