#pragma once

#include <algorithm>
#include <cstddef>

namespace lictor::runtime {

/// Detects when a number has fallen far below its peak.
class Peak {
 public:
  /// Peaks below `least` are ignored.
  explicit Peak(std::size_t least) : least_(least) {}

  /// True when `now` is at most half of the peak; `now` is then the new peak, so a long fall is
  /// reported once a halving.
  [[nodiscard]] bool fell_to(std::size_t now) {
    peak_ = std::max(peak_, now);
    if (peak_ < least_ || now > peak_ / 2) return false;
    peak_ = now;
    return true;
  }

 private:
  const std::size_t least_;
  std::size_t peak_ = 0;
};

}  // namespace lictor::runtime
