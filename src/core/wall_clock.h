#pragma once

#include <algorithm>
#include <chrono>

#include "lictor/time.h"

namespace lictor::core {

/// The wall clock's time, counted on from the last reading.
class WallClock {
 public:
  /// Returns whether the clock stepped against the monotonic clock since the last reading.
  bool set(Instant now, WallTime wall) {
    const bool stepped = is_set_ && std::chrono::abs(wall - at(now)) >= kLeastStep;
    is_set_ = true;
    base_ = wall;
    base_at_ = now;
    return stepped;
  }
  [[nodiscard]] WallTime at(Instant now) const {
    return base_ + std::chrono::floor<std::chrono::milliseconds>(now - base_at_);
  }
  /// How long ago the clock read `time`, at most a century; negative: that is still to come.
  [[nodiscard]] Duration since(Instant now, WallTime time) const {
    return std::clamp(at(now) - time, -kFar, kFar);
  }
  /// When the clock will read `time`; Instant::max(): more than a century away.
  [[nodiscard]] Instant when(WallTime time) const {
    if (time <= base_) return base_at_;
    return time - base_ > kFar ? Instant::max() : base_at_ + (time - base_);
  }

 private:
  // A century: nanoseconds hold 292 years.
  static constexpr std::chrono::milliseconds kFar = std::chrono::hours{24 * 365 * 100};
  // The clock is read to the millisecond, and the reading arrives some time later.
  static constexpr std::chrono::milliseconds kLeastStep{10};

  bool is_set_ = false;
  WallTime base_{};
  Instant base_at_{};
};

}  // namespace lictor::core
