#pragma once

#include <chrono>
#include <optional>

#include "lictor/time.h"

namespace lictor::runtime {

/// The offset between wall clock and monotonic clock. NTP slews both alike, so the offset changes
/// only when a clock is set or stops.
class ClockOffset {
 public:
  /// Whether the offset has changed since the last call. Read both clocks in direct succession.
  [[nodiscard]] bool stepped(Instant boot, WallTime wall) {
    const auto offset = wall.time_since_epoch() -
                        std::chrono::floor<std::chrono::milliseconds>(boot.time_since_epoch());
    const bool first = !offset_;
    if (!first && std::chrono::abs(offset - *offset_) < kLeast) return false;
    offset_ = offset;
    return !first;
  }

 private:
  // More than the time between the two readings.
  static constexpr std::chrono::milliseconds kLeast{20};
  std::optional<std::chrono::milliseconds> offset_;
};

}  // namespace lictor::runtime
