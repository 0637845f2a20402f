#include "net/failover.h"

namespace lictor::net {

std::optional<std::size_t> Failover::next(Instant now, std::uint64_t tried) const {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < avoided_until_.size(); ++i) {
    if ((tried >> i & 1U) != 0) continue;
    if (avoided_until_[i] <= now) return i;
    // All failed lately: the one whose failure is oldest is the likeliest to be back.
    if (!best || avoided_until_[i] < avoided_until_[*best]) best = i;
  }
  return best;
}

}  // namespace lictor::net
