#pragma once

#include <algorithm>
#include <optional>

#include "core/options.h"
#include "lictor/time.h"

namespace lictor::core {

/// Bounds how often something happens: on average once in `interval`, up to `burst` at once. The
/// generic cell rate algorithm (ITU-T I.371, appendix A): one instant is all that is kept.
class RateLimit {
 public:
  void set(const std::optional<Rate>& rate) { rate_ = rate; }

  [[nodiscard]] bool ready(Instant now) const { return !rate_ || now >= next(); }
  void take(Instant now) {
    if (rate_) arrival_ = std::max(arrival_, now) + rate_->interval;
  }
  /// When it is ready again; only of use while it is not.
  [[nodiscard]] Instant next() const {
    return arrival_ - rate_->interval * static_cast<Duration::rep>(rate_->burst - 1);
  }

 private:
  std::optional<Rate> rate_;
  Instant arrival_{};  // the theoretical arrival time of the next one
};

}  // namespace lictor::core
