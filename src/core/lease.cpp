#include "core/lease.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "core/mutant.h"

namespace lictor::core {
namespace {

// Answers to an attempt to acquire during the lock-delay come from memory, without a raft entry
// (CONSUL-FACTS.md 2.2), so asking ten times a second is cheap, and nothing else tells its end.
constexpr Duration kLockDelayPoll = 100ms;
// After an error of Consul or of the network. Longer only makes the outage longer.
constexpr Duration kRetry = 500ms;
// One line of who writes to the leader key again and again.
constexpr Duration kTellAgain = 1min;
// After a refusal that only an operator can mend.
constexpr Duration kRefusedRetry = 5s;

}  // namespace

void Lease::start(Instant now, const std::optional<std::string>& previous_session, Effects& out) {
  LICTOR_ASSERT(state_ == State::kIdle);
  if (previous_session) {
    session_ = *previous_session;
    revise(now, out);
  } else {
    open(out);
  }
}

// Is our session alive? Only then is it worth campaigning with.
void Lease::revise(Instant now, Effects& out) {
  state_ = State::kRevising;
  retry_at_ = Instant::max();
  renew(now, out);
}

void Lease::open(Effects& out) {
  state_ = State::kOpening;
  session_.clear();
  // Its answer would be taken for the new session's.
  if (renew_) out.emplace_back(CancelRequest{std::exchange(renew_, {})});
  renew_at_ = Instant::max();
  retry_at_ = Instant::max();
  create_ = requests_.next();
  out.emplace_back(CreateSession{create_});
}

void Lease::stand_by(Instant now, Effects& out) {
  state_ = State::kStandby;
  retry_at_ = Instant::max();
  if (standoff_ > Duration::zero()) {
    retry_at_ = now + standoff_;
    standoff_ = Duration::zero();
    return;
  }
  watch(0, out);
}

void Lease::watch(std::uint64_t index, Effects& out) {
  // An index that went backwards (a restored snapshot, reaped tombstones) would never wake again.
  if (index < watch_index_) index = 0;
  watch_index_ = index;
  watch_ = requests_.next();
  out.emplace_back(ReadLeader{watch_, false, index});
}

void Lease::acquire(Instant now, Effects& out) {
  state_ = State::kAcquiring;
  retry_at_ = Instant::max();
  lock_ = requests_.next();
  lock_sent_ = now;
  out.emplace_back(AcquireLock{lock_, session_});
}

// Whoever writes to the leader key leaves the lock ours, and nobody knows then who leads. Only
// what is ours at this index is written: acquired anew it might have been another's in between.
void Lease::restore(Instant now, std::uint64_t held_at, Effects& out) {
  if (lock_ || mutant(Mutant::kIgnoreOverwrite)) return;
  if (now < restore_from_) {
    look_at_ = restore_from_;
    return;
  }
  restore_from_ = now + kRetry;  // a stranger who writes again and again is not kept pace with
  lock_ = requests_.next();
  lock_sent_ = now;
  out.emplace_back(AcquireLock{lock_, session_, held_at});
}

void Lease::renew(Instant now, Effects& out) {
  renew_at_ = now + options_.renew_interval;
  if (renew_) return;
  renew_ = requests_.next();
  out.emplace_back(RenewSession{renew_, session_});
}

void Lease::read(Instant now, Effects& out) {
  if (read_) {
    read_again_ = true;
    return;
  }
  read_again_ = false;
  read_ = requests_.next();
  read_sent_ = now;
  out.emplace_back(ReadLeader{read_, true, 0});
}

void Lease::unlock(Effects& out) {
  unlock_ = requests_.next();
  out.emplace_back(ReleaseLock{unlock_, session_, lock_index_});
}

void Lease::destroy(Effects& out) {
  destroy_ = requests_.next();
  out.emplace_back(DestroySession{destroy_, session_});
}

void Lease::forget_requests(Effects& out) {
  for (RequestId* request : {&lock_, &unlock_, &read_, &watch_}) {
    if (*request) out.emplace_back(CancelRequest{*request});
    *request = {};
  }
  read_again_ = false;
  look_at_ = Instant::max();
}

void Lease::trouble(const std::string& what, const std::string& error, Effects& out) {
  if (in_trouble_) return;  // one line an outage, not one a try
  in_trouble_ = true;
  out.emplace_back(Fact{Fact::Kind::kStoreTrouble, {}, 0, 0, what + ": " + error, {}});
}

Lease::Change Lease::on(Instant now, const SessionCreated& reply, Effects& out) {
  if (reply.request != create_) return Change::kNone;
  create_ = {};
  if (reply.outcome != Outcome::kApplied) {
    // Unknown: a session may have been made that nobody knows; its TTL ends it.
    if (closing_) return give_up_session(out);
    trouble("creating a session", reply.error, out);
    retry_at_ = now + (reply.outcome == Outcome::kRejected ? kRefusedRetry : kRetry);
    return Change::kNone;
  }
  in_trouble_ = false;
  session_ = reply.session;
  renew_at_ = now + options_.renew_interval;
  out.emplace_back(Fact{Fact::Kind::kSessionCreated, {}, 0, 0, session_, {}});
  if (closing_) {
    state_ = State::kClosing;
    destroy(out);
    return Change::kNone;
  }
  out.emplace_back(RememberSession{session_});
  stand_by(now, out);
  return Change::kNone;
}

Lease::Change Lease::on(Instant now, const SessionRenewed& reply, Effects& out) {
  if (reply.request != renew_) return Change::kNone;
  renew_ = {};
  using Answer = SessionRenewed::Answer;
  switch (reply.answer) {
    case Answer::kAlive:
      if (mutant(Mutant::kRenewalProves)) return proved(now, now, out);
      if (state_ == State::kRevising) {
        in_trouble_ = false;
        stand_by(now, out);
      }
      break;
    case Answer::kNothing:
      trouble("renewing the session", reply.error, out);
      renew_at_ = std::min(renew_at_, now + kRetry);
      break;
    case Answer::kGone:
      // A server that lags behind can say so too of a session that lives; the lock tells.
      if (holding()) {
        read(now, out);
        renew_at_ = std::min(renew_at_, now + kRetry);
        break;
      }
      if (state_ == State::kRevising || state_ == State::kStandby || state_ == State::kAcquiring) {
        out.emplace_back(Fact{Fact::Kind::kSessionLost, {}, 0, 0, session_, {}});
        forget_requests(out);
        open(out);
      }
      break;
  }
  return Change::kNone;
}

Lease::Change Lease::on(Instant now, const LockReplied& reply, Effects& out) {
  if (reply.request != lock_) return Change::kNone;
  lock_ = {};
  if (holding()) return on_restored(now, reply, out);
  if (state_ != State::kAcquiring) return Change::kNone;
  using Answer = LockReplied::Answer;
  if (reply.answer != Answer::kUnknown && reply.answer != Answer::kRefused) in_trouble_ = false;
  switch (reply.answer) {
    case Answer::kAcquired:
      return win(lock_sent_, reply.modify_index, out);
    case Answer::kHeld:
      in_lock_delay_ = false;
      stand_by(now, out);
      break;
    case Answer::kLockDelay:
      if (!std::exchange(in_lock_delay_, true)) {
        out.emplace_back(Fact{Fact::Kind::kLockDelay, {}, 0, 0, {}, {}});
      }
      retry_at_ = now + kLockDelayPoll;
      break;
    case Answer::kSessionGone:
      out.emplace_back(Fact{Fact::Kind::kSessionLost, {}, 0, 0, session_, {}});
      open(out);
      break;
    case Answer::kRefused:
      out.emplace_back(
          Fact{Fact::Kind::kDenied, {}, 0, 0, "acquiring the lock: " + reply.error, {}});
      retry_at_ = now + kRefusedRetry;
      break;
    case Answer::kUnknown:
      // It may be ours by now. To acquire again what one holds succeeds, so asking again tells.
      trouble("acquiring the lock", reply.error, out);
      retry_at_ = now + kRetry;
      break;
  }
  return Change::kNone;
}

Lease::Change Lease::win(Instant sent_at, std::uint64_t index, Effects& out) {
  forget_requests(out);
  in_lock_delay_ = false;
  state_ = State::kLeading;
  lock_index_ = index;
  retry_at_ = Instant::max();
  last_proof_ = sent_at;
  trusted_until_ = sent_at + options_.lease_span();
  proof_at_ = sent_at + options_.proof_interval();
  other_holder_.clear();
  in_trouble_ = false;
  watch(0, out);
  out.emplace_back(ExtendLease{trusted_until_});
  return Change::kWon;
}

Lease::Change Lease::on_restored(Instant now, const LockReplied& reply, Effects& out) {
  if (reply.answer == LockReplied::Answer::kAcquired) {
    lock_index_ = reply.modify_index;
    if (now >= tell_restored_from_) {
      tell_restored_from_ = now + kTellAgain;
      out.emplace_back(Fact{Fact::Kind::kLeaderRestored, {}, 0, 0, {}, {}});
    }
    read(now, out);  // what was written to it meanwhile
    return proved(now, lock_sent_, out);
  }
  if (reply.answer == LockReplied::Answer::kRefused) restore_from_ = now + kRefusedRetry;
  look_at_ = restore_from_;
  return Change::kNone;
}

Lease::Change Lease::proved(Instant now, Instant sent_at, Effects& out) {
  if (!holding()) return Change::kNone;
  in_trouble_ = false;
  if (sent_at <= last_proof_) return Change::kNone;
  last_proof_ = sent_at;
  trusted_until_ = sent_at + options_.lease_span();
  proof_at_ = sent_at + options_.proof_interval();
  if (now >= trusted_until_) return Change::kNone;  // an answer that took longer than the span
  out.emplace_back(ExtendLease{trusted_until_});
  if (state_ == State::kDoubtful) {
    state_ = State::kLeading;
    return Change::kRegained;
  }
  return Change::kNone;
}

Lease::Change Lease::refused(Effects& out) { return holding() ? lose(out) : Change::kNone; }

Lease::Change Lease::lose(Effects& out) {
  forget_requests(out);
  state_ = State::kLost;
  trusted_until_ = Instant::min();
  proof_at_ = Instant::max();
  retry_at_ = Instant::max();
  return Change::kLost;
}

void Lease::ask_proof(Instant now, Effects& out) {
  if (holding()) read(now, out);
}

Lease::Change Lease::on(Instant now, const LeaderRead& reply, Effects& out) {
  if (reply.request == watch_) {
    watch_ = {};
    return on_watch(now, reply, out);
  }
  if (reply.request == read_) {
    read_ = {};
    return on_consistent_read(now, reply, out);
  }
  return Change::kNone;
}

Lease::Change Lease::on_watch(Instant now, const LeaderRead& reply, Effects& out) {
  if (state_ != State::kStandby && !holding()) return Change::kNone;
  if (!reply.ok) {
    trouble("watching the leader key", reply.error, out);
    retry_at_ = now + kRetry;
    return Change::kNone;
  }
  if (holding()) {
    // The watch is a default read, which may be stale: what it shows is a reason to look, no more.
    // What is not newer than our own acquisition is old news.
    const bool as_left = reply.session == session_ && reply.modify_index <= lock_index_;
    if (!as_left && reply.consul_index >= lock_index_) read(now, out);
    // A key that is gone makes a watch wake on every write near it (CONSUL-FACTS.md 4.2).
    if (reply.found) {
      watch(reply.consul_index, out);
    } else {
      retry_at_ = now + kRetry;
    }
    return Change::kNone;
  }
  in_trouble_ = false;
  if (reply.session.empty() || reply.session == session_) {
    acquire(now, out);
  } else {
    if (other_holder_ != reply.holder || other_holder_.empty()) {
      other_holder_ = reply.holder;
      out.emplace_back(Fact{Fact::Kind::kCampaigning, {}, 0, 0, reply.holder, {}});
    }
    watch(reply.consul_index, out);
  }
  return Change::kNone;
}

Lease::Change Lease::on_consistent_read(Instant now, const LeaderRead& reply, Effects& out) {
  const bool again = std::exchange(read_again_, false);
  const Instant sent_at = mutant(Mutant::kTrustFromReply) ? now : read_sent_;
  const bool ours = reply.ok && reply.session == session_ && !session_.empty();
  switch (state_) {
    case State::kLeading:
    case State::kDoubtful:
      if (!reply.ok) {
        trouble("proving leadership", reply.error, out);
        proof_at_ = now + kRetry;
        return Change::kNone;
      }
      if (!ours) return lose(out);
      if (again) read(now, out);
      if (reply.modify_index > lock_index_) restore(now, reply.modify_index, out);
      return proved(now, sent_at, out);
    case State::kResigning:
      if (ours) {
        lock_index_ = reply.modify_index;
        unlock(out);
        return Change::kNone;
      }
      return reply.ok ? finish_resigning(now, out) : Change::kNone;
    default:
      return Change::kNone;
  }
}

void Lease::resume(Instant now, Effects& out) {
  LICTOR_ASSERT(state_ == State::kLost);
  out.emplace_back(EndLease{});
  if (closing_) {
    state_ = State::kClosing;
    destroy(out);
    return;
  }
  // The lock may be lost and the session alive: the leader key was deleted, or taken by force.
  revise(now, out);
}

void Lease::resign(Duration standoff, Effects& out) {
  if (!holding()) return;
  standoff_ = standoff;
  forget_requests(out);
  state_ = State::kResigning;
  trusted_until_ = Instant::min();
  proof_at_ = Instant::max();
  retry_at_ = Instant::max();
  unlock(out);
}

Lease::Change Lease::on(Instant now, const UnlockReplied& reply, Effects& out) {
  if (reply.request != unlock_) return Change::kNone;
  unlock_ = {};
  if (state_ != State::kResigning) return Change::kNone;
  if (reply.outcome != Outcome::kApplied) {
    // Unknown, or somebody wrote the key meanwhile, which leaves the lock ours: a read tells.
    read(now, out);
    retry_at_ = now + kRetry;
    return Change::kNone;
  }
  return finish_resigning(now, out);
}

Lease::Change Lease::finish_resigning(Instant now, Effects& out) {
  out.emplace_back(EndLease{});
  if (closing_) {
    state_ = State::kClosing;
    retry_at_ = Instant::max();
    destroy(out);
    return Change::kResigned;
  }
  stand_by(now, out);
  return Change::kResigned;
}

Lease::Change Lease::close(Instant until, Effects& out) {
  if (closing_) return Change::kNone;
  closing_ = true;
  close_until_ = until;
  switch (state_) {
    case State::kLeading:
    case State::kDoubtful:
      resign(Duration::zero(), out);
      return Change::kNone;
    case State::kIdle:
    case State::kClosed:
      return give_up_session(out);
    case State::kOpening:
      if (!create_) return give_up_session(out);
      return Change::kNone;  // its answer comes, and the session is destroyed then
    case State::kLost:
    case State::kResigning:
    case State::kClosing:
      return Change::kNone;
    case State::kRevising:
    case State::kStandby:
    case State::kAcquiring:
      // A lock that we acquire in this moment is released by the destruction of the session.
      forget_requests(out);
      state_ = State::kClosing;
      retry_at_ = Instant::max();
      destroy(out);
      return Change::kNone;
  }
  return Change::kNone;
}

Lease::Change Lease::on(Instant now, const SessionDestroyed& reply, Effects& out) {
  if (reply.request != destroy_) return Change::kNone;
  destroy_ = {};
  if (reply.outcome != Outcome::kApplied && now < close_until_) {
    retry_at_ = now + kRetry;
    return Change::kNone;
  }
  return give_up_session(out);
}

Lease::Change Lease::give_up_session(Effects& out) {
  forget_requests(out);
  for (RequestId* request : {&create_, &renew_, &destroy_}) {
    if (*request) out.emplace_back(CancelRequest{std::exchange(*request, {})});
  }
  state_ = State::kClosed;
  renew_at_ = proof_at_ = retry_at_ = close_until_ = Instant::max();
  out.emplace_back(RememberSession{});
  return Change::kClosed;
}

Lease::Change Lease::on_time(Instant now, Effects& out) {
  if (closing_ && now >= close_until_ && state_ != State::kClosed) return give_up_session(out);
  if (state_ != State::kClosing && now >= renew_at_ && !session_.empty()) renew(now, out);
  if (holding() && now >= proof_at_) {
    proof_at_ = now + options_.proof_interval();
    read(now, out);
  }
  if (now >= look_at_) {
    look_at_ = Instant::max();
    read(now, out);
  }
  if (now >= retry_at_) {
    retry_at_ = Instant::max();
    switch (state_) {
      case State::kOpening:
        open(out);
        break;
      case State::kStandby:
      case State::kLeading:
      case State::kDoubtful:
        if (!watch_) watch(0, out);
        break;
      case State::kAcquiring:
        acquire(now, out);
        break;
      case State::kResigning:
        read(now, out);
        retry_at_ = now + kRetry;
        break;
      case State::kClosing:
        destroy(out);
        break;
      default:
        break;
    }
  }
  if (state_ == State::kLeading && now >= trusted_until_) {
    state_ = State::kDoubtful;
    return Change::kExpired;
  }
  return Change::kNone;
}

Instant Lease::next_deadline() const {
  Instant next = std::min({proof_at_, look_at_, retry_at_, close_until_});
  if (!session_.empty() && state_ != State::kClosing) next = std::min(next, renew_at_);
  if (state_ == State::kLeading) next = std::min(next, trusted_until_);
  return next;
}

}  // namespace lictor::core
