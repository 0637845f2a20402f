#pragma once

#include <chrono>
#include <optional>

#include "lictor/time.h"

namespace lictor::runtime {

/// Wall clock against monotonic clock. NTP's slewing moves both alike, so they part only where one
/// of them is set, or stands still.
class ClockOffset {
 public:
  /// Whether they have parted since the last call. Both are to be read one right after the other.
  [[nodiscard]] bool stepped(Instant boot, WallTime wall) {
    const auto offset = wall.time_since_epoch() -
                        std::chrono::floor<std::chrono::milliseconds>(boot.time_since_epoch());
    const bool first = !offset_;
    if (!first && std::chrono::abs(offset - *offset_) < kLeast) return false;
    offset_ = offset;
    return !first;
  }

 private:
  // Above what lies between two readings.
  static constexpr std::chrono::milliseconds kLeast{20};
  std::optional<std::chrono::milliseconds> offset_;
};

}  // namespace lictor::runtime
