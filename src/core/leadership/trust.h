#pragma once

// How long a session's locks may be trusted: arithmetic on instants, nothing else. All locks of a
// host hang on one session, so a proof of one lock proves the session, and with it all held locks.
// A single lock is lost only if somebody deletes or takes it by hand; the watch and the fence of
// every write notice that.
//
//            begin                        deadline
//   kNone ----------> kTrusted -------------------------> kExpired
//     ^   end            |   ^  proof sent after the step     |  |
//     +---- (any)        |   +--------------------------------+  | proof
//                        |   +-----------------------------------+
//                clock   v   | proof sent after the step
//                stepped kUnproven ---- deadline ---> kExpired
//
// A proof is a fenced write that was applied, or a ?consistent read of a lock that shows our
// session; a renewal's 200 proves nothing (consul.md 6.4). Trust is counted from when the
// proof was sent, not from when its answer came: nobody else can acquire before then + lock_delay,
// whatever becomes of the session.
//
// This holds on a clock that runs. When a hypervisor stops its guest, the guest's monotonic clock
// may stand still while the others' time goes on; the wall clock is set right afterwards. So a step
// of the wall clock against the monotonic one voids every earlier proof: running jobs go on until
// the deadline, and nothing is started before a proof that was sent after the step.

#include "core/options.h"

namespace lictor::core {

class Trust {
 public:
  enum class State { kNone, kTrusted, kUnproven, kExpired };

  explicit Trust(const QueueOptions& options) : options_(options) {}

  /// The first lock was acquired by a request sent at `sent_at`.
  void begin(Instant sent_at) {
    count_from(sent_at);
    state_ = sent_at < stepped_at_ ? State::kUnproven : State::kTrusted;
  }

  /// Takes a proof. False if the deadline does not move: the proof is hardly newer than the last,
  /// is older than a step of the clock, or took longer than the span that it proves.
  bool prove(Instant now, Instant sent_at) {
    if (state_ == State::kNone || sent_at <= last_proof_ || sent_at < stepped_at_) return false;
    // Each write is a proof, and extending the lease of 256 partitions for each would cost more
    // than the write.
    constexpr int kStep = 8;
    const bool is_needed = state_ != State::kTrusted;
    if (!is_needed && sent_at < last_proof_ + options_.proof_interval() / kStep) return false;
    count_from(sent_at);
    if (now >= until_) return false;
    state_ = State::kTrusted;
    return true;
  }

  /// The wall clock was found to have stepped against the monotonic clock.
  void clock_stepped(Instant now) {
    stepped_at_ = now;
    if (state_ == State::kTrusted) state_ = State::kUnproven;
  }

  /// Whether the deadline has just passed.
  bool expire(Instant now) {
    if (!is_counting() || now < until_) return false;
    state_ = State::kExpired;
    return true;
  }

  void end() {
    state_ = State::kNone;
    until_ = Instant::min();
    proof_due_ = Instant::max();
  }

  /// Call when a proof was requested; the next is due an interval later.
  void asked(Instant now) { proof_due_ = now + options_.proof_interval(); }

  [[nodiscard]] State state() const { return state_; }
  /// Whether jobs may be started.
  [[nodiscard]] bool holds(Instant now) const { return state_ == State::kTrusted && now < until_; }
  /// Whether jobs may run: the last proof has not run out.
  [[nodiscard]] bool runs(Instant now) const { return now < until_; }
  [[nodiscard]] Instant until() const { return until_; }
  [[nodiscard]] Instant proof_due() const { return proof_due_; }
  [[nodiscard]] Instant next_deadline() const {
    return is_counting() ? std::min(until_, proof_due_) : proof_due_;
  }

 private:
  [[nodiscard]] bool is_counting() const {
    return state_ == State::kTrusted || state_ == State::kUnproven;
  }
  void count_from(Instant sent_at) {
    last_proof_ = sent_at;
    until_ = sent_at + options_.lease_span();
    proof_due_ = sent_at + options_.proof_interval();
  }

  const QueueOptions& options_;
  State state_ = State::kNone;
  Instant last_proof_ = Instant::min();
  Instant until_ = Instant::min();
  Instant proof_due_ = Instant::max();
  Instant stepped_at_ = Instant::min();
};

}  // namespace lictor::core
