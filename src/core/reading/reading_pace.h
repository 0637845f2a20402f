#pragma once

// How often the names of all tasks may be listed. Consul wakes a blocking query at every write and
// does not coalesce wake-ups (consul.md 11), so without a pace each write of a producer would
// cost Consul a walk over all names.
//
// Token bucket: listings use at most a tenth of the time, with a burst of 300 ms.
// The cost of a listing follows from the number of names and of tombstones below the prefix: Consul
// walks both. Tasks whose deletion we saw are counted. The number of tasks deleted before we led is
// not known, and may be a million. If a query did not wait for a change, the time of its answer
// bounds their cost. All other answers show nothing, since their time is mostly waiting.
//
// Over a slow link the transfer of the names takes longer than Consul's walk, and keeps the link
// from all other answers. Then it is what counts, up to a second: a pause of ten seconds at most.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "lictor/time.h"

namespace lictor::core {

class ReadingPace {
 public:
  /// Leadership was won.
  void begin(Instant now) {
    earlier_ = kMostEarlier;
    earlier_until_ = now + kReapedAfter;
    measured_at_ = Instant::min();
  }

  /// The cost of a list of so many names for Consul (consul.md 11, 12: 20,000 names take 5 to 9 ms
  /// under load, and as many tombstones 3 ms).
  [[nodiscard]] Duration cost(Instant now, std::size_t names) {
    forget_reaped(now);
    return kList + kName * static_cast<Duration::rep>(names) +
           kTombstone * static_cast<Duration::rep>(tombstones_) + earlier_;
  }

  /// Whether the next list should not wait for a change, so that its time can be measured.
  [[nodiscard]] bool measures(Instant now) const {
    return earlier_ > Duration::zero() && now >= measured_at_ + kMeasureAgain;
  }

  /// A list of so many names was answered. `took`: until its first byte, only if it did not wait
  /// for a change. `transfer`: from then to its last byte.
  void listed(Instant now, std::size_t names, std::optional<Duration> took = {},
              Duration transfer = {}) {
    constexpr int kPrice = 10;
    constexpr int kBusyPrice = 100;
    if (took) {
      // The least cost of the rest: a machine may be twice as fast as our figures. One answer may
      // be late for other reasons, so the smallest bound counts.
      const Duration known = cost(now, names) - earlier_;
      earlier_ = std::clamp(*took - known / 2 - kRoundTrip, Duration::zero(), earlier_);
      measured_at_ = now;
    }
    const Duration cost = std::max(this->cost(now, names), std::min(transfer, kMostTransfer));
    paid_ = std::max(paid_, now) + kPrice * cost;
    next_ = std::max(now + std::max(kLeastPause, cost), paid_ - kCredit);
    next_busy_ = std::max(next_, now + std::min(kBusyPrice * cost, kLongestBusyPause));
  }
  /// When the names may be listed again. `busy`: more tasks are ready than can be started, so new
  /// ones can wait for up to a second.
  [[nodiscard]] Instant next(bool busy) const { return busy ? next_busy_ : next_; }

  /// So many tasks were deleted.
  void deleted(Instant now, std::size_t tasks) {
    if (deletions_.empty() || now >= deletions_.back().until) {
      deletions_.push_back({now + kStep, 0});
    }
    deletions_.back().tasks += tasks;
    tombstones_ += tasks;
  }

 private:
  static constexpr Duration kList = std::chrono::microseconds{200};
  static constexpr Duration kName = std::chrono::nanoseconds{400};
  static constexpr Duration kTombstone = std::chrono::nanoseconds{160};
  static constexpr Duration kReapedAfter = std::chrono::minutes{15};  // consul.md 4.3
  static constexpr Duration kStep = std::chrono::seconds{10};
  // A million tombstones. More would keep new tasks waiting for seconds after one late answer.
  static constexpr Duration kMostEarlier = std::chrono::milliseconds{200};
  static constexpr Duration kMeasureAgain = std::chrono::seconds{10};
  static constexpr Duration kRoundTrip = std::chrono::milliseconds{2};
  static constexpr Duration kMostTransfer = std::chrono::seconds{1};
  static constexpr Duration kCredit = std::chrono::milliseconds{300};
  static constexpr Duration kLeastPause = std::chrono::milliseconds{1};
  static constexpr Duration kLongestBusyPause = std::chrono::seconds{1};

  struct Deletions {
    Instant until;  // all of them came before it
    std::size_t tasks;
  };

  void forget_reaped(Instant now) {
    for (; !deletions_.empty() && deletions_.front().until + kReapedAfter < now;
         deletions_.pop_front()) {
      tombstones_ -= deletions_.front().tasks;
    }
    if (now >= earlier_until_) earlier_ = {};
  }

  Instant paid_{};  // when the bucket is full again
  Instant next_ = Instant::min();
  Instant next_busy_ = Instant::min();
  std::deque<Deletions> deletions_;
  std::size_t tombstones_ = 0;
  // The most that tombstones from before we led may cost.
  Duration earlier_{};
  Instant earlier_until_ = Instant::max();
  Instant measured_at_ = Instant::min();
};

}  // namespace lictor::core
