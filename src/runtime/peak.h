#pragma once

#include <algorithm>
#include <cstddef>

namespace lictor::runtime {

/// Tells when a number has fallen far below the most that it was.
class Peak {
 public:
  /// A peak below `least` is not worth telling.
  explicit Peak(std::size_t least) : least_(least) {}

  /// True when `now` is at most half of the peak; from here on the peak is counted anew, so that a
  /// long fall is told once a halving.
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
