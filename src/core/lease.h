#pragma once

// The lease of a queue: session, lock and trust, put together.
//
//                 acquired             deadline
//   kFollowing ------------> kLeading ----------> kDoubtful
//     ^  ^  ^                 |  ^  ^    proof        |  ^
//     |  |  |    clock jumped |  |  +-----------------+  | deadline
//     |  |  |                 v  | proof                 |
//     |  |  |              kUnproven --------------------+
//     |  |  |
//     |  |  +-- resume() -- kLost <------- the lock is lost, from any of the three above
//     |  +----- released -- kResigning <-- resign(), from any of the three above
//     |
//     +- close() --> kClosed: the session is gone, too, or was left to its TTL
//
// Session (core/session.h) opens, renews and ends the session; Lock (core/lock.h) takes the leader
// key with it and gives it back; Trust (core/trust.h) says until when that may be believed.

#include <optional>
#include <string>

#include "core/effect.h"
#include "core/event.h"
#include "core/lock.h"
#include "core/options.h"
#include "core/requests.h"
#include "core/session.h"
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
    kClosed,
  };
  /// What an event did to leadership; the queue acts on it.
  enum class Change {
    kNone,
    kWon,
    kExpired,   // no proof within the span: no job may run, but the lock may still be ours
    kRegained,  // a proof after all
    kLost,      // the lock is not ours any more
    kResigned,  // given up as asked
    kClosed,    // the session is gone too, or was left to its TTL
  };

  Lease(const QueueOptions& options, Requests& requests)
      : session_(options, requests, trouble_),
        lock_(options, requests, trouble_),
        trust_(options) {}
  Lease(const Lease&) = delete;  // its parts refer to each other
  Lease& operator=(const Lease&) = delete;

  void start(Instant now, const std::optional<std::string>& previous_session, Effects& out);

  Change on(Instant now, const SessionCreated& reply, Effects& out);
  Change on(Instant now, const SessionRenewed& reply, Effects& out);
  Change on(Instant now, const SessionDestroyed& reply, Effects& out);
  Change on(Instant now, const LockReplied& reply, Effects& out);
  Change on(Instant now, const UnlockReplied& reply, Effects& out);
  Change on(Instant now, const LeaderRead& reply, Effects& out);
  Change on_time(Instant now, Effects& out);

  /// A fenced write that was sent at `sent_at` was applied.
  Change proved(Instant now, Instant sent_at, Effects& out);
  /// The fence refused a write: the lock is not ours.
  Change refused(Effects& out);
  /// The wall clock stepped against the monotonic clock, which may have stood still.
  void clock_stepped(Instant now, Effects& out);

  /// After kLost, when every job of the old term is over: campaign again.
  void resume(Instant now, Effects& out);
  /// Gives up the lock if it is held, and leaves it to others for `standoff`.
  void resign(Duration standoff, Effects& out);
  /// Gives up the lock and the session. Tries until `until`, then leaves the session to its TTL.
  Change close(Instant until, Effects& out);

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
  [[nodiscard]] const std::string& session() const { return session_.id(); }
  [[nodiscard]] const std::string& other_holder() const { return lock_.other_holder(); }
  [[nodiscard]] Duration takeover_gap() const { return lock_.takeover_gap(); }
  [[nodiscard]] const std::string& predecessor() const { return lock_.predecessor(); }
  [[nodiscard]] Instant next_deadline() const;

 private:
  Change on_session(Instant now, Session::Change change, Effects& out);
  Change on_lock(Instant now, const Lock::Verdict& verdict, Effects& out);
  Change win(Instant now, Instant sent_at, Effects& out);
  Change lose();

  StoreTrouble trouble_;
  Session session_;
  Lock lock_;
  Trust trust_;
  bool closing_ = false;
};

}  // namespace lictor::core
