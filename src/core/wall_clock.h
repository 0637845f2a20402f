#pragma once

#include <algorithm>
#include <chrono>

#include "lictor/time.h"

namespace lictor::core {

/// What the wall clock reads, counted on from when it was last read.
class WallClock {
 public:
  /// Whether it stepped against the monotonic clock since it was read last.
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
  /// How long ago it read `time`, at most a century; negative: it has not yet.
  [[nodiscard]] Duration since(Instant now, WallTime time) const {
    return std::clamp(at(now) - time, -kFar, kFar);
  }
  /// When it will read `time`; Instant::max() for what is more than a century away.
  [[nodiscard]] Instant when(WallTime time) const {
    if (time <= base_) return base_at_;
    return time - base_ > kFar ? Instant::max() : base_at_ + (time - base_);
  }

 private:
  // A century: nanoseconds hold 292 years.
  static constexpr std::chrono::milliseconds kFar = std::chrono::hours{24 * 365 * 100};
  // It is read to the millisecond, and heard of some time later.
  static constexpr std::chrono::milliseconds kLeastStep{10};

  bool is_set_ = false;
  WallTime base_{};
  Instant base_at_{};
};

}  // namespace lictor::core
