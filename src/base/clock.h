#pragma once

#include <optional>

#include "lictor/time.h"

namespace lictor {

/// CLOCK_BOOTTIME now. Not for src/core, which is told the time.
[[nodiscard]] Instant boot_now() noexcept;

/// The wall clock now, to the millisecond.
[[nodiscard]] WallTime wall_now() noexcept;

/// `deadline` on the wall clock as it stands now; nothing for Instant::max(), which means never.
[[nodiscard]] std::optional<WallTime> to_wall_time(Instant deadline) noexcept;

}  // namespace lictor
