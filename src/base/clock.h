#pragma once

#include <chrono>
#include <ctime>
#include <optional>

#include "lictor/time.h"

namespace lictor {

/// CLOCK_BOOTTIME now. Not for src/core, which is handed the time.
[[nodiscard]] inline Instant boot_now() noexcept {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return Instant{std::chrono::seconds{now.tv_sec} + std::chrono::nanoseconds{now.tv_nsec}};
}

/// The wall clock now, to the millisecond.
[[nodiscard]] inline WallTime wall_now() noexcept {
  return std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
}

/// `deadline` on the present wall clock; std::nullopt for Instant::max(), "never".
[[nodiscard]] inline std::optional<WallTime> to_wall_time(Instant deadline) noexcept {
  if (deadline == Instant::max()) return std::nullopt;
  return wall_now() + std::chrono::round<std::chrono::milliseconds>(deadline - boot_now());
}

}  // namespace lictor
