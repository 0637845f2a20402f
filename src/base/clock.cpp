#include "base/clock.h"

#include <ctime>

namespace lictor {

Instant boot_now() noexcept {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return Instant{std::chrono::seconds{now.tv_sec} + std::chrono::nanoseconds{now.tv_nsec}};
}

WallTime wall_now() noexcept {
  return std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
}

std::optional<WallTime> to_wall_time(Instant deadline) noexcept {
  if (deadline == Instant::max()) return std::nullopt;
  return wall_now() + std::chrono::round<std::chrono::milliseconds>(deadline - boot_now());
}

}  // namespace lictor
