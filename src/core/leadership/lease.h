#pragma once

// The lease of one partition: its lock, and the trust in the session that holds it.
//
//                 acquired             deadline
//   kFollowing ------------> kLeading ----------> kDoubtful
//     ^  ^                    |  ^  ^    proof        |  ^
//     |  |       clock jumped |  |  +-----------------+  | deadline
//     |  |                    v  | proof                 |
//     |  |                 kUnproven --------------------+
//     |  |
//     |  +- resume() -- kLost <------- the lock is lost, from any of the three above
//     +---- released -- kResigning <-- resign(), from any of the three above
//
// Lock (lock.h) takes the leader key and gives it back; Trust (trust.h) says until when the
// session's locks may be believed. Leadership (leadership.h) has both and the session.

#include <cstdint>

#include "core/leadership/lock.h"
#include "core/leadership/trust.h"
#include "core/options.h"
#include "core/requests.h"

namespace lictor::core {

/// What an event did to the lease.
enum class LeaseChange {
  kWon,
  kExpired,   // no proof within the span: no job may run, but the lock may still be ours
  kRegained,  // a proof after all
  kLost,      // the lock is not ours any more
  kResigned,  // given up as asked
};

class Lease {
 public:
  enum class State {
    kFollowing,  // or not yet, or not any more
    kLeading,
    kUnproven,  // the clock stepped: nothing is started before a new proof
    kDoubtful,  // no proof within the span
    kLost,      // until the jobs of the old term are over and it is resumed
    kResigning,
  };

  Lease(const QueueOptions& options, std::uint32_t partition, Requests& requests,
        StoreTrouble& trouble, const Trust& trust)
      : lock_(options, partition, requests, trouble), trust_(trust) {}

  [[nodiscard]] Lock& lock() { return lock_; }
  [[nodiscard]] const Lock& lock() const { return lock_; }

  /// Jobs may be started.
  [[nodiscard]] bool trusted(Instant now) const { return lock_.held() && trust_.holds(now); }
  /// Jobs may run: the last proof has not run out.
  [[nodiscard]] bool leading(Instant now) const {
    const State is = state();
    return (is == State::kLeading || is == State::kUnproven) && now < trust_.until();
  }
  /// The lock is ours as far as we know, trusted or not.
  [[nodiscard]] bool holding() const { return lock_.held(); }
  [[nodiscard]] State state() const {
    switch (lock_.state()) {
      case Lock::State::kLost:
        return State::kLost;
      case Lock::State::kReleasing:
        return State::kResigning;
      case Lock::State::kHeld:
        return trust_.state() == Trust::State::kTrusted    ? State::kLeading
               : trust_.state() == Trust::State::kUnproven ? State::kUnproven
                                                           : State::kDoubtful;
      default:
        return State::kFollowing;
    }
  }
  [[nodiscard]] Instant trusted_until() const { return trust_.until(); }

 private:
  Lock lock_;
  const Trust& trust_;  // one for all partitions
};

}  // namespace lictor::core
