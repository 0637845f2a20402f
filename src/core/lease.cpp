#include "core/lease.h"

#include "base/assert.h"

namespace lictor::core {

Lease::State Lease::state() const {
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

void Lease::stop(Effects& out) {
  lock_.stop(out);
  trust_.end();
}

Lease::Change Lease::on_lock(Instant now, const Lock::Verdict& verdict, Effects& out) {
  switch (verdict.change) {
    case Lock::Change::kNone:
      return verdict.proof ? proved(now, *verdict.proof, out) : Change::kNone;
    case Lock::Change::kAcquired:
      return win(now, *verdict.proof, out);
    case Lock::Change::kLost:
      trust_.end();
      return Change::kLost;
    case Lock::Change::kReleased:
      out.emplace_back(EndLease{partition_});
      return Change::kResigned;
    case Lock::Change::kSessionGone:
      lock_.stop(out);
      return Change::kSessionGone;
  }
  return Change::kNone;
}

Lease::Change Lease::win(Instant now, Instant sent_at, Effects& out) {
  trust_.begin(sent_at);
  if (trust_.state() == Trust::State::kTrusted) {
    out.emplace_back(ExtendLease{trust_.until(), partition_});
  } else {
    lock_.prove_anew(now, out);
  }
  return Change::kWon;
}

Lease::Change Lease::proved(Instant now, Instant sent_at, Effects& out) {
  if (!lock_.held()) return Change::kNone;
  trouble_.over();
  const bool was_doubtful = trust_.state() == Trust::State::kExpired;
  if (!trust_.prove(now, sent_at)) return Change::kNone;
  out.emplace_back(ExtendLease{trust_.until(), partition_});
  return was_doubtful ? Change::kRegained : Change::kNone;
}

Lease::Change Lease::refused(Effects& out) {
  if (!lock_.held()) return Change::kNone;
  lock_.lose(out);
  trust_.end();
  return Change::kLost;
}

void Lease::clock_stepped(Instant now, Effects& out) {
  trust_.clock_stepped(now);
  if (lock_.held()) lock_.prove_anew(now, out);
}

void Lease::resume(Effects& out) {
  LICTOR_ASSERT(lock_.state() == Lock::State::kLost);
  out.emplace_back(EndLease{partition_});
  lock_.stop(out);
}

void Lease::resign(Duration standoff, Effects& out) {
  if (!lock_.held()) return;
  trust_.end();
  lock_.release(standoff, out);
}

Lease::Change Lease::on_time(Instant now, Effects& out) {
  if (lock_.held() && now >= trust_.proof_due()) {
    trust_.asked(now);
    lock_.prove(now, out);
  }
  lock_.on_time(now, out);
  return lock_.held() && trust_.expire(now) ? Change::kExpired : Change::kNone;
}

}  // namespace lictor::core
