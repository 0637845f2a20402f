#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/options.h"
#include "lictor/time.h"

namespace lictor::core {

/// Bounds how often something happens: on average once in `interval`, up to `burst` at once. The
/// generic cell rate algorithm (ITU-T I.371, appendix A): one instant is all that is kept.
class RateLimit {
 public:
  void set(const std::optional<Rate>& rate) { whole_ = rate_ = rate; }
  /// This host's part of the rate: `held` of `all`, at least one.
  void share(std::size_t held, std::size_t all) {
    if (!whole_) return;
    const std::size_t part = std::max<std::size_t>(held, 1);
    rate_->interval =
        whole_->interval * static_cast<Duration::rep>(all) / static_cast<Duration::rep>(part);
    rate_->burst = static_cast<std::uint32_t>(std::max<std::size_t>(whole_->burst * part / all, 1));
  }

  [[nodiscard]] bool ready(Instant now) const { return !rate_ || now >= next(); }
  void take(Instant now) {
    if (rate_) arrival_ = std::max(arrival_, now) + rate_->interval;
  }
  /// When it is ready again; only of use while it is not.
  [[nodiscard]] Instant next() const {
    return arrival_ - rate_->interval * static_cast<Duration::rep>(rate_->burst - 1);
  }

 private:
  std::optional<Rate> whole_, rate_;  // the queue's, this host's
  Instant arrival_{};                 // the theoretical arrival time of the next one
};

}  // namespace lictor::core
