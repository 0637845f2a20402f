#include "core/lease.h"

#include <algorithm>

#include "base/assert.h"

namespace lictor::core {

Lease::State Lease::state() const {
  if (session_.closed()) return State::kClosed;
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

void Lease::start(Instant now, const std::optional<std::string>& previous_session, Effects& out) {
  session_.start(now, previous_session, out);
}

Lease::Change Lease::on(Instant now, const SessionCreated& reply, Effects& out) {
  return on_session(now, session_.on(now, reply, out), out);
}

Lease::Change Lease::on(Instant now, const SessionRenewed& reply, Effects& out) {
  const Session::Change change = session_.on(now, reply, out);
  return on_session(now, change, out);
}

Lease::Change Lease::on(Instant now, const SessionDestroyed& reply, Effects& out) {
  return on_session(now, session_.on(now, reply, out), out);
}

Lease::Change Lease::on_session(Instant now, Session::Change change, Effects& out) {
  switch (change) {
    case Session::Change::kNone:
    case Session::Change::kRenewed:
      break;
    case Session::Change::kOpened:
      lock_.campaign(now, session_.id(), out);
      break;
    case Session::Change::kGone:
      // A lagging server can also say this of a live session; the lock decides.
      if (lock_.held()) {
        lock_.prove(now, out);
        session_.renew_soon(now);
      } else if (!closing_ && state() == State::kFollowing) {
        lock_.stop(out);
        session_.replace(out);
      }
      break;
    case Session::Change::kClosed:
      lock_.stop(out);
      trust_.end();
      return Change::kClosed;
  }
  return Change::kNone;
}

Lease::Change Lease::on(Instant now, const LockReplied& reply, Effects& out) {
  return on_lock(now, lock_.on(now, reply, out), out);
}

Lease::Change Lease::on(Instant now, const UnlockReplied& reply, Effects& out) {
  return on_lock(now, lock_.on(now, reply, out), out);
}

Lease::Change Lease::on(Instant now, const LeaderRead& reply, Effects& out) {
  return on_lock(now, lock_.on(now, reply, out), out);
}

Lease::Change Lease::on_lock(Instant now, const Lock::Verdict& verdict, Effects& out) {
  switch (verdict.change) {
    case Lock::Change::kNone:
      return verdict.proof ? proved(now, *verdict.proof, out) : Change::kNone;
    case Lock::Change::kAcquired:
      return win(now, *verdict.proof, out);
    case Lock::Change::kLost:
      return lose();
    case Lock::Change::kReleased:
      out.emplace_back(EndLease{});
      if (closing_) {
        static_cast<void>(session_.close(out));
      } else {
        lock_.campaign(now, session_.id(), out);
      }
      return Change::kResigned;
    case Lock::Change::kSessionGone:
      lock_.stop(out);
      session_.replace(out);
      return Change::kNone;
  }
  return Change::kNone;
}

Lease::Change Lease::win(Instant now, Instant sent_at, Effects& out) {
  trust_.begin(sent_at);
  if (trust_.state() == Trust::State::kTrusted) {
    out.emplace_back(ExtendLease{trust_.until()});
  } else {
    lock_.prove_anew(now, out);
  }
  return Change::kWon;
}

Lease::Change Lease::lose() {
  trust_.end();
  return Change::kLost;
}

Lease::Change Lease::proved(Instant now, Instant sent_at, Effects& out) {
  if (!lock_.held()) return Change::kNone;
  trouble_.over();
  const bool was_doubtful = trust_.state() == Trust::State::kExpired;
  if (!trust_.prove(now, sent_at)) return Change::kNone;
  out.emplace_back(ExtendLease{trust_.until()});
  return was_doubtful ? Change::kRegained : Change::kNone;
}

Lease::Change Lease::refused(Effects& out) {
  if (!lock_.held()) return Change::kNone;
  lock_.lose(out);
  return lose();
}

void Lease::clock_stepped(Instant now, Effects& out) {
  trust_.clock_stepped(now);
  if (lock_.held()) lock_.prove_anew(now, out);
}

void Lease::resume(Instant now, Effects& out) {
  LICTOR_ASSERT(lock_.state() == Lock::State::kLost);
  out.emplace_back(EndLease{});
  lock_.stop(out);
  if (closing_) {
    static_cast<void>(session_.close(out));
    return;
  }
  // The lock can be lost while the session lives: the leader key was deleted or taken by force.
  session_.check(now, out);
}

void Lease::resign(Duration standoff, Effects& out) {
  if (!lock_.held()) return;
  trust_.end();
  lock_.release(standoff, out);
}

Lease::Change Lease::close(Instant until, Effects& out) {
  if (closing_) return Change::kNone;
  closing_ = true;
  session_.close_until(until);
  switch (state()) {
    case State::kLeading:
    case State::kUnproven:
    case State::kDoubtful:
      resign(Duration::zero(), out);
      return Change::kNone;
    case State::kLost:
    case State::kResigning:
      return Change::kNone;
    case State::kFollowing:
    case State::kClosed:
      // Destroying the session also releases a lock that is being acquired at this moment.
      lock_.stop(out);
      return on_session(until, session_.close(out), out);
  }
  return Change::kNone;
}

Lease::Change Lease::on_time(Instant now, Effects& out) {
  if (const Session::Change change = session_.on_time(now, out);
      change == Session::Change::kClosed) {
    return on_session(now, change, out);
  }
  if (lock_.held() && now >= trust_.proof_due()) {
    trust_.asked(now);
    lock_.prove(now, out);
  }
  lock_.on_time(now, out);
  return lock_.held() && trust_.expire(now) ? Change::kExpired : Change::kNone;
}

Instant Lease::next_deadline() const {
  return std::min({session_.next_deadline(), lock_.next_deadline(), trust_.next_deadline()});
}

}  // namespace lictor::core
