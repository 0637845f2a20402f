#pragma once

#include <algorithm>
#include <cstddef>

#include "core/options.h"
#include "lictor/time.h"

namespace lictor::core {

/// How many tasks to claim ahead of a free slot when the configuration does not say: as many as the
/// slots start within a short time, judged by recent job durations. Very short jobs thus share
/// transactions; a job of seconds is claimed only when a slot is free.
///
/// If jobs become slower, claimed tasks may find no slot. They are given back after patience(), and
/// give_up() forgets the recent durations.
class AdaptivePrefetch {
 public:
  /// Beyond this, the transactions under way are full anyway.
  static constexpr std::size_t kMost = 512;

  explicit AdaptivePrefetch(const QueueOptions& options) : options_(options) {}

  /// With one slot, tasks run strictly in order, also relative to tasks that arrive later.
  [[nodiscard]] bool enabled() const {
    return options_.prefetch == 0 && options_.prefetch_horizon > Duration::zero() &&
           options_.concurrency > 1;
  }
  void ran(Duration took) {
    usual_ = usual_ == Duration::max() ? took : usual_ + (took - usual_) / kMemory;
  }
  void give_up() { usual_ = Duration::max(); }

  [[nodiscard]] std::size_t size() const {
    if (!enabled()) return 0;
    const auto turns =
        options_.prefetch_horizon * options_.concurrency / std::max(usual_, Duration{1});
    return std::min(static_cast<std::size_t>(turns), most(options_));
  }
  [[nodiscard]] Duration patience() const { return 50 * options_.prefetch_horizon; }

  /// Upper bound of the number; all claimed tasks may end at the same time.
  [[nodiscard]] static std::size_t most(const QueueOptions& options) {
    const std::size_t unacked = options.max_unacked;
    return unacked > options.concurrency ? std::min(kMost, unacked - options.concurrency) : 0;
  }

 private:
  static constexpr int kMemory = 8;  // jobs, about

  const QueueOptions& options_;
  Duration usual_ = Duration::max();  // Duration::max(): none ran yet
};

}  // namespace lictor::core
