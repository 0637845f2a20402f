#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

#include "lictor/time.h"

namespace lictor::exec {

/// Whether the daemon's loop has stood still for `timeout`, by regular looks at its heartbeat. To
/// take a daemon that lives for one that hangs would kill its jobs for nothing, so silence counts
/// only as far as the watcher itself was awake for it: no more than one and a half periods a look,
/// and nothing at all where a look came so late that this process must have stood still, too (a
/// suspended or frozen host, a stopped cgroup, a machine out of memory). A passive object.
class HangWatch {
 public:
  /// Zero: never.
  explicit HangWatch(Duration timeout)
      : timeout_(timeout),
        period_(std::min<Duration>(timeout / 8, std::chrono::milliseconds{500})) {}

  [[nodiscard]] bool enabled() const { return timeout_ > Duration::zero(); }
  [[nodiscard]] Duration timeout() const { return timeout_; }
  /// Between two looks.
  [[nodiscard]] Duration period() const { return period_; }

  /// `now` on a clock that stands still while the host is suspended (CLOCK_MONOTONIC); `heartbeat`
  /// as LeaseBoard has it. True: the loop hangs.
  [[nodiscard]] bool look(Instant now, std::uint64_t heartbeat) {
    const Duration since = now - std::exchange(last_look_, now);
    const bool was_away = since > 4 * period_;
    const bool beats = std::exchange(heartbeat_, heartbeat) != heartbeat;
    if (was_away || beats || heartbeat == 0) {
      silent_ = Duration::zero();
      return false;
    }
    silent_ += std::min(since, period_ * 3 / 2);
    return silent_ >= timeout_;
  }

 private:
  Duration timeout_;
  Duration period_;
  Instant last_look_{};
  std::uint64_t heartbeat_ = 0;
  Duration silent_{};
};

}  // namespace lictor::exec
