#include "net/rate_backoff.h"

#include <algorithm>

namespace lictor::net {

Instant RateBackoff::held_until() const {
  const std::lock_guard lock{mutex_};
  return held_until_;
}

void RateBackoff::refused(Instant now, Instant sent, Kind kind) {
  const std::lock_guard lock{mutex_};
  if (sent < held_until_) return;
  Duration& pause = pauses_[static_cast<std::size_t>(kind)];
  pause = std::clamp(pause * 2, kFirst, kLongest);
  const double chance = 0.75 + random_.fraction() / 2;
  const Duration drawn{static_cast<Duration::rep>(static_cast<double>(pause.count()) * chance)};
  held_until_ = now + std::clamp(drawn, kFirst, kLongest);
}

void RateBackoff::accepted(Instant sent, Kind kind) {
  const std::lock_guard lock{mutex_};
  if (sent >= held_until_) pauses_[static_cast<std::size_t>(kind)] = {};
}

}  // namespace lictor::net
