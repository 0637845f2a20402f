#pragma once

// The lease of one partition: its lock and the trust in it.
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
// Lock (core/lock.h) takes the leader key and gives it back; Trust (core/trust.h) says until when
// that may be believed. Leadership (core/leadership.h) has the session.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "core/effect.h"
#include "core/event.h"
#include "core/lock.h"
#include "core/options.h"
#include "core/requests.h"
#include "core/trust.h"

namespace lictor::core {

class Lease {
 public:
  enum class State {
    kFollowing,  // or not yet, or not any more
    kLeading,
    kUnproven,  // the clock stepped: nothing is started before a new proof
    kDoubtful,  // no proof within the span
    kLost,      // until the jobs of the old term are over and resume() is called
    kResigning,
  };
  /// What an event did to the lease.
  enum class Change {
    kNone,
    kWon,
    kExpired,      // no proof within the span: no job may run, but the lock may still be ours
    kRegained,     // a proof after all
    kLost,         // the lock is not ours any more
    kResigned,     // given up as asked
    kSessionGone,  // nothing can be acquired with the session any more
  };

  Lease(const QueueOptions& options, std::uint32_t partition, Requests& requests,
        StoreTrouble& trouble)
      : partition_(partition),
        trouble_(trouble),
        lock_(options, partition, requests, trouble),
        trust_(options) {}

  /// Acquires the lock with `session` when it may.
  void campaign(Instant now, const std::string& session, Effects& out) {
    lock_.campaign(now, session, out);
  }
  /// Whether the lock should be acquired; it should at first.
  void want(Instant now, bool wanted) { lock_.want(now, wanted); }
  /// Waits for nothing any more. What is held is left to the end of its session.
  void stop(Effects& out);
  /// Asks Consul whether the lock is ours.
  void prove(Instant now, Effects& out) { lock_.prove(now, out); }

  /// When the lock is to be proved, unless a write does it before.
  [[nodiscard]] Instant proof_due() const {
    return lock_.held() ? trust_.proof_due() : Instant::max();
  }
  /// Somebody else asks for the proof.
  void proof_asked(Instant now) { trust_.asked(now); }

  template <class Reply>
  Change on(Instant now, const Reply& reply, Effects& out) {
    return on_lock(now, lock_.on(now, reply, out), out);
  }
  Change on_time(Instant now, Effects& out);

  /// A fenced write that was sent at `sent_at` was applied.
  Change proved(Instant now, Instant sent_at, Effects& out);
  /// The fence refused a write: the lock is not ours.
  Change refused(Effects& out);
  /// The wall clock stepped against the monotonic clock, which may have stood still.
  void clock_stepped(Instant now, Effects& out);

  /// After kLost, when every job of the old term is over.
  void resume(Effects& out);
  /// Gives up the lock if it is held, and leaves it to others for `standoff`.
  void resign(Duration standoff, Effects& out);

  /// Jobs may be started.
  [[nodiscard]] bool trusted(Instant now) const { return lock_.held() && trust_.holds(now); }
  /// Jobs may run: the last proof has not run out.
  [[nodiscard]] bool leading(Instant now) const {
    const State is = state();
    return (is == State::kLeading || is == State::kUnproven) && now < trust_.until();
  }
  /// The lock is ours as far as we know, trusted or not.
  [[nodiscard]] bool holding() const { return lock_.held(); }
  [[nodiscard]] State state() const;
  [[nodiscard]] Instant trusted_until() const { return trust_.until(); }
  [[nodiscard]] const std::string& other_holder() const { return lock_.other_holder(); }
  [[nodiscard]] const std::optional<std::string>& other_owner() const {
    return lock_.other_owner();
  }
  [[nodiscard]] Instant free_from() const { return lock_.free_from(); }
  [[nodiscard]] Duration takeover_gap() const { return lock_.takeover_gap(); }
  [[nodiscard]] const std::string& predecessor() const { return lock_.predecessor(); }
  [[nodiscard]] Instant next_deadline() const {
    return std::min(lock_.next_deadline(), trust_.next_deadline());
  }

 private:
  Change on_lock(Instant now, const Lock::Verdict& verdict, Effects& out);
  Change win(Instant now, Instant sent_at, Effects& out);

  const std::uint32_t partition_;
  StoreTrouble& trouble_;
  Lock lock_;
  Trust trust_;
};

}  // namespace lictor::core
