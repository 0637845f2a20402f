#pragma once

// How all clients of a process together obey Consul's limits. A refusal holds every request back,
// not only the refused one: each further one would be refused too, and use up what the renewals of
// sessions need.
//
//   free --refused--> held (0.5 s, doubled with each refusal in a row, 5 s at most) --> free
//
// Refusals of requests that were under way together count as one, not as several in a row: a
// request counts only if it was sent after the last pause. Urgent requests are sent all the same,
// since a session that is not renewed costs more than a refusal.

#include <algorithm>
#include <array>
#include <cstdint>
#include <mutex>

#include "base/random.h"
#include "lictor/time.h"

namespace lictor::net {

/// Thread safe.
class RateBackoff {
 public:
  static constexpr Duration kFirst = std::chrono::milliseconds{500};
  static constexpr Duration kLongest = std::chrono::seconds{5};

  /// `random` spreads the pauses, so that many daemons do not come back at one instant.
  explicit RateBackoff(Random random) : random_(random) {}

  /// Only urgent requests may be sent before this.
  [[nodiscard]] Instant held_until() const {
    const std::lock_guard lock{mutex_};
    return held_until_;
  }

  /// Consul counts reads and writes apart: an accepted read says nothing of the next write.
  enum class Kind { kRead, kWrite };
  /// A request sent at `sent` was refused. If it was sent before the end of the last pause, it is
  /// ignored.
  void refused(Instant now, Instant sent, Kind kind) {
    const std::lock_guard lock{mutex_};
    if (sent < held_until_) return;
    Duration& pause = pauses_[static_cast<std::size_t>(kind)];
    pause = std::clamp(pause * 2, kFirst, kLongest);
    const double chance = 0.75 + random_.fraction() / 2;
    const Duration drawn{static_cast<Duration::rep>(static_cast<double>(pause.count()) * chance)};
    held_until_ = now + std::clamp(drawn, kFirst, kLongest);
  }
  /// A request sent at `sent` was accepted.
  void accepted(Instant sent, Kind kind) {
    const std::lock_guard lock{mutex_};
    if (sent >= held_until_) pauses_[static_cast<std::size_t>(kind)] = {};
  }

 private:
  mutable std::mutex mutex_;
  Random random_;
  Instant held_until_ = Instant::min();
  std::array<Duration, 2> pauses_{};  // the last, by kind; 0: the last request was accepted
};

}  // namespace lictor::net
