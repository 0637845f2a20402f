#pragma once

// The lease of a queue: session, lock, and how long leadership may be trusted.
//
//            start                 session                free, acquire
//   kIdle ----------> kOpening -----------> kStandby <--------------------> kAcquiring
//                        ^                     ^   ^    held, lock-delay        |
//                        | session gone        |   | lost                       | acquired
//                        |                     |   |                            v
//                     kRevising <--------------+---+------ kLost <---------- kLeading
//                     (is the session alive?)  resume()                     |   ^ |
//                                                               span over   v   | | resign()
//   kClosed <-- kClosing <-- stop                                     kDoubtful | v
//      ^           ^                                                  (proof) --+ kResigning
//      +-----------+--------------------------------------------------------------+
//
// Trust is counted from when a proof was sent, not from when its answer came. A proof is a fenced
// write that was applied, or a ?consistent read of the leader key that shows our session; a
// renewal's 200 proves nothing (CONSUL-FACTS.md 6.4). After a proof nobody else can acquire before
// its sending + lock_delay, whatever becomes of the session.

#include <optional>
#include <string>

#include "core/effect.h"
#include "core/event.h"
#include "core/options.h"
#include "core/requests.h"

namespace lictor::core {

class Lease {
 public:
  enum class State {
    kIdle,
    kRevising,
    kOpening,
    kStandby,
    kAcquiring,
    kLeading,
    kDoubtful,
    kLost,
    kResigning,
    kClosing,
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

  Lease(const QueueOptions& options, Requests& requests) : options_(options), requests_(requests) {}

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
  /// A fenced write was refused by its fence: the lock is not ours.
  Change refused(Effects& out);
  /// Asks for a proof now. It is there when last_proof() is not before now.
  void ask_proof(Instant now, Effects& out);

  /// After kLost, when every job of the old term is over: campaign again.
  void resume(Instant now, Effects& out);
  /// Gives up the lock if it is held; campaigns again after `standoff`.
  void resign(Duration standoff, Effects& out);
  /// Gives up the lock and the session. Tries until `until`, then leaves the session to its TTL.
  Change close(Instant until, Effects& out);

  [[nodiscard]] bool trusted(Instant now) const {
    return state_ == State::kLeading && now < trusted_until_;
  }
  /// The lock is ours as far as we know, trusted or not.
  [[nodiscard]] bool holding() const {
    return state_ == State::kLeading || state_ == State::kDoubtful;
  }
  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] Instant trusted_until() const { return trusted_until_; }
  [[nodiscard]] Instant last_proof() const { return last_proof_; }
  [[nodiscard]] const std::string& session() const { return session_; }
  [[nodiscard]] const std::string& other_holder() const { return other_holder_; }
  [[nodiscard]] Instant next_deadline() const;

 private:
  void revise(Instant now, Effects& out);
  void open(Effects& out);
  void stand_by(Instant now, Effects& out);
  void watch(std::uint64_t index, Effects& out);
  void acquire(Instant now, Effects& out);
  void restore(Instant now, std::uint64_t held_at, Effects& out);
  Change on_restored(Instant now, const LockReplied& reply, Effects& out);
  void renew(Instant now, Effects& out);
  void read(Instant now, Effects& out);
  void unlock(Effects& out);
  void destroy(Effects& out);
  Change win(Instant sent_at, std::uint64_t index, Effects& out);
  Change lose(Effects& out);
  Change finish_resigning(Instant now, Effects& out);
  Change give_up_session(Effects& out);
  Change on_watch(Instant now, const LeaderRead& reply, Effects& out);
  Change on_consistent_read(Instant now, const LeaderRead& reply, Effects& out);
  void forget_requests(Effects& out);
  void trouble(const std::string& what, const std::string& error, Effects& out);

  const QueueOptions& options_;
  Requests& requests_;

  State state_ = State::kIdle;
  std::string session_;
  std::string other_holder_;
  std::uint64_t lock_index_ = 0;  // ModifyIndex of the leader key when we last wrote it
  Instant last_proof_ = Instant::min();
  Instant trusted_until_ = Instant::min();

  // Requests in flight; zero when none.
  RequestId create_, renew_, destroy_, lock_, unlock_, read_, watch_;
  Instant lock_sent_{}, read_sent_{};
  bool read_again_ = false;  // something happened after the read in flight was sent

  // Deadlines; Instant::max() when none.
  Instant renew_at_ = Instant::max();
  Instant proof_at_ = Instant::max();
  Instant look_at_ = Instant::max();   // at the leader key, which is to be restored
  Instant retry_at_ = Instant::max();  // of whatever the state waits for
  Instant close_until_ = Instant::max();
  Instant restore_from_ = Instant::min();  // the leader key's value, not before this
  Instant tell_restored_from_ = Instant::min();
  Duration standoff_{};
  std::uint64_t watch_index_ = 0;
  bool closing_ = false;
  bool in_lock_delay_ = false;
  bool in_trouble_ = false;
};

}  // namespace lictor::core
