#pragma once

#include <algorithm>
#include <cstddef>

#include "core/options.h"
#include "lictor/time.h"

namespace lictor::core {

/// How many claims are held ahead of a free slot where the configuration leaves it open: as many as
/// the slots take up within a short while, by how long jobs took of late. The shortest share their
/// transactions so; a job of seconds is claimed when there is room for it, as without.
///
/// What is held and finds no slot all the same, since jobs take longer than those before, is to be
/// given back after patience(): then give_up() forgets what was learnt.
class AdaptivePrefetch {
 public:
  /// Beyond this the transactions under way are full anyway.
  static constexpr std::size_t kMost = 512;

  explicit AdaptivePrefetch(const QueueOptions& options) : options_(options) {}

  /// One slot is one task after the other, in order, also among those that are yet to come.
  [[nodiscard]] bool enabled() const {
    return options_.prefetch == 0 && options_.prefetch_horizon > Duration::zero() &&
           options_.concurrency > 1;
  }
  void ran(Duration took) {
    usual_ = usual_ == Duration::max() ? took : usual_ + (took - usual_) / kMemory;
  }
  void give_up() { usual_ = Duration::max(); }

  [[nodiscard]] std::size_t size() const {
    if (!enabled() || usual_ > options_.prefetch_horizon * options_.concurrency) return 0;
    const auto turns =
        options_.prefetch_horizon * options_.concurrency / std::max(usual_, Duration{1});
    return std::min(static_cast<std::size_t>(turns), most(options_));
  }
  [[nodiscard]] Duration patience() const { return 50 * options_.prefetch_horizon; }

  /// The most that it can come to; all that is claimed may end at once.
  [[nodiscard]] static std::size_t most(const QueueOptions& options) {
    const std::size_t unacked = options.max_unacked;
    return unacked > options.concurrency ? std::min(kMost, unacked - options.concurrency) : 0;
  }

 private:
  static constexpr int kMemory = 8;  // jobs, about

  const QueueOptions& options_;
  Duration usual_ = Duration::max();  // none ran yet
};

}  // namespace lictor::core
