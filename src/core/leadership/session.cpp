#include "core/leadership/session.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "core/requests.h"

namespace lictor::core {

void Session::start(Instant now, const std::optional<std::string>& previous, Effects& out) {
  LICTOR_ASSERT(state_ == State::kNone);
  if (!previous) return open(out);
  id_ = *previous;
  check(now, out);
}

// Finds out by a renewal whether the session still lives.
void Session::check(Instant now, Effects& out) {
  state_ = State::kChecking;
  renew(now, out);
}

void Session::replace(Effects& out) {
  out.emplace_back(Fact{Fact::Kind::kSessionLost, {}, id_});
  open(out);
}

void Session::open(Effects& out) {
  state_ = State::kOpening;
  id_.clear();
  // The answer would be taken for the new session's.
  cancel(renew_, out);
  renew_at_ = retry_at_ = Instant::max();
  create_ = requests_.next();
  out.emplace_back(CreateSession{create_});
}

void Session::renew(Instant now, Effects& out) {
  renew_at_ = now + options_.renew_interval;
  if (renew_) return;
  renew_ = requests_.next();
  out.emplace_back(RenewSession{renew_, id_});
}

void Session::renew_soon(Instant now) { renew_at_ = std::min(renew_at_, now + kRetryPause); }

void Session::destroy(Effects& out) {
  state_ = State::kClosing;
  retry_at_ = Instant::max();
  destroy_ = requests_.next();
  out.emplace_back(DestroySession{destroy_, id_});
}

Session::Change Session::close(Effects& out) {
  switch (state_) {
    case State::kNone:
    case State::kClosed:
      return give_up(out);
    case State::kOpening:
      if (!create_) return give_up(out);
      closing_ = true;
      return Change::kNone;
    case State::kClosing:
      return Change::kNone;
    case State::kChecking:
    case State::kOpen:
      destroy(out);
      return Change::kNone;
  }
  return Change::kNone;
}

// The session is destroyed, or left to its TTL. Either way its id is forgotten, so that a restarted
// daemon does not take it up.
Session::Change Session::give_up(Effects& out) {
  for (RequestId* request : {&create_, &renew_, &destroy_}) cancel(*request, out);
  state_ = State::kClosed;
  renew_at_ = retry_at_ = close_until_ = Instant::max();
  out.emplace_back(RememberSession{});
  return Change::kClosed;
}

Session::Change Session::on(Instant now, const SessionCreated& reply, Effects& out) {
  if (reply.request != create_) return Change::kNone;
  create_ = {};
  if (reply.outcome != Outcome::kApplied) {
    // Unknown: Consul may have created a session whose id is lost; its TTL ends it.
    if (closing_) return give_up(out);
    trouble_.report("creating a session", reply.error, out);
    retry_at_ = now + (reply.outcome == Outcome::kRejected ? kRefusedPause : kRetryPause);
    return Change::kNone;
  }
  trouble_.over();
  id_ = reply.session;
  renew_at_ = now + options_.renew_interval;
  out.emplace_back(Fact{Fact::Kind::kSessionCreated, {}, id_});
  if (closing_) {
    destroy(out);
    return Change::kNone;
  }
  out.emplace_back(RememberSession{id_});
  state_ = State::kOpen;
  return Change::kAlive;
}

Session::Change Session::on(Instant now, const SessionRenewed& reply, Effects& out) {
  if (reply.request != renew_) return Change::kNone;
  renew_ = {};
  switch (reply.answer) {
    case SessionRenewed::Answer::kAlive:
      if (state_ == State::kChecking) {
        trouble_.over();
        state_ = State::kOpen;
      }
      return Change::kAlive;
    case SessionRenewed::Answer::kNothing:
      trouble_.report("renewing the session", reply.error, out);
      renew_at_ = std::min(renew_at_, now + trouble_.pause());
      return Change::kNone;
    case SessionRenewed::Answer::kGone:
      return Change::kGone;
  }
  return Change::kNone;
}

Session::Change Session::on(Instant now, const SessionDestroyed& reply, Effects& out) {
  if (reply.request != destroy_) return Change::kNone;
  destroy_ = {};
  if (reply.outcome != Outcome::kApplied && now < close_until_) {
    retry_at_ = now + kRetryPause;
    return Change::kNone;
  }
  return give_up(out);
}

Session::Change Session::on_time(Instant now, Effects& out) {
  if (now >= close_until_) return give_up(out);
  if (state_ != State::kClosing && now >= renew_at_) renew(now, out);
  if (now >= retry_at_) {
    if (state_ == State::kOpening) open(out);
    if (state_ == State::kClosing) destroy(out);
  }
  return Change::kNone;
}

Instant Session::next_deadline() const {
  Instant next = std::min(retry_at_, close_until_);
  if (state_ != State::kClosing) next = std::min(next, renew_at_);
  return next;
}

}  // namespace lictor::core
