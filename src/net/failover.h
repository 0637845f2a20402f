#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lictor/time.h"

namespace lictor::net {

/// Which address to ask next. One that failed is avoided for a while; the earliest in the list that
/// is not avoided is preferred, so that the local agent, listed first, is returned to. A passive
/// object of the network thread.
class Failover {
 public:
  static constexpr std::size_t kMaxAddresses = 64;  ///< a request keeps those it tried in one word

  Failover(std::size_t addresses, Duration avoid_for)
      : avoid_for_(avoid_for), avoided_until_(addresses) {}

  /// The address to try, of those whose bit in `tried` is not set; nothing when all were.
  [[nodiscard]] std::optional<std::size_t> next(Instant now, std::uint64_t tried) const {
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < avoided_until_.size(); ++i) {
      if ((tried >> i & 1U) != 0) continue;
      if (avoided_until_[i] <= now) return i;
      // All failed lately: the one whose failure is oldest is the likeliest to be back.
      if (!best || avoided_until_[i] < avoided_until_[*best]) best = i;
    }
    return best;
  }

  void failed(Instant now, std::size_t address) { avoided_until_[address] = now + avoid_for_; }
  void worked(std::size_t address) { avoided_until_[address] = Instant{}; }

 private:
  Duration avoid_for_;
  std::vector<Instant> avoided_until_;
};

}  // namespace lictor::net
