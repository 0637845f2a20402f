// Leadership gained, lost and given up.

#include <algorithm>
#include <utility>

#include "core/mutant.h"
#include "core/queue.h"

namespace lictor::core {
namespace {

constexpr Duration kControlRetry = 1s;

}  // namespace

void Queue::on_change(Instant now, Lease::Change change, Effects& out) {
  switch (change) {
    case Lease::Change::kNone:
      break;
    case Lease::Change::kWon:
      begin_term(now, out);
      break;
    case Lease::Change::kExpired:
      if (mutant(Mutant::kIgnoreExpiry)) break;
      // Somebody else may lead from lock_delay after the last proof on; by then no job may run.
      out.emplace_back(Fact{Fact::Kind::kLeaseExpired, {}, 0, 0, {}, {}});
      attempts_.for_each([&](Attempt& attempt) {
        if (attempt.state == Attempt::State::kRunning &&
            attempt.policy.on_lease_lost == OnLeaseLost::kStop) {
          stop_running(now, attempt, Attempt::StopReason::kLease, out);
        }
      });
      break;
    case Lease::Change::kRegained:
      out.emplace_back(Fact{Fact::Kind::kLeaseRegained, {}, 0, 0, {}, {}});
      break;
    case Lease::Change::kLost:
      out.emplace_back(Fact{Fact::Kind::kLeaseLost, {}, 0, 0, {}, {}});
      end_term(now, out);
      if (drain_ == Drain::kStop) {
        static_cast<void>(lease_.close(now + options_.request_timeout, out));
      }
      drain_ = drain_ == Drain::kStop ? Drain::kStop : Drain::kNone;
      if (leftovers_.empty()) lease_.resume(now, out);
      break;
    case Lease::Change::kResigned:
      out.emplace_back(Fact{Fact::Kind::kSteppedDown, {}, 0, 0, {}, {}});
      break;
    case Lease::Change::kClosed:
      stopped_ = true;
      break;
  }
}

void Queue::begin_term(Instant now, Effects& out) {
  out.emplace_back(Fact{Fact::Kind::kLeading, {}, 0, 0, {}, {}});
  control_index_ = 0;
  control_known_ = mutant(Mutant::kClaimUnread);
  seen_step_down_.reset();
  marking_folder_ = marking_control_ = false;
  listing_.start(now, out);
  history_.start(now);
  watch_control(now, out);
}

void Queue::end_term(Instant now, Effects& out) {
  static_cast<void>(now);
  commits_.clear(out);
  listing_.stop(out);
  history_.stop(out);
  if (control_) out.emplace_back(CancelRequest{std::exchange(control_, {})});
  control_at_ = Instant::max();
  attempts_.for_each([&](Attempt& attempt) {
    const bool runs = attempt.state == Attempt::State::kRunning;
    if (!runs && attempt.state != Attempt::State::kSettling) return;
    const Task& task = *attempt.task;
    if (attempt.stop != Attempt::StopReason::kWithdrawn) {  // then there is nothing to be written
      out.emplace_back(
          Fact{Fact::Kind::kUnwritten, task.key, task.stamp.attempt, attempt.token, {}, {}});
    }
    if (!runs) return;
    if (attempt.policy.on_lease_lost == OnLeaseLost::kFinish) return;
    out.emplace_back(StopJob{attempt.id, options_.kill_grace});
    leftovers_.insert(attempt.id);
  });
  attempts_.clear();
  schedule_.clear();
  start_holds_.clear();
  tombstones_.clear();
  burying_.clear();
  left_alone_.clear();
  told_folders_.clear();
  abandoned_claims_.clear();
  refused_.clear();
  rate_at_ = ahead_at_ = Instant::max();
  paused_ = false;
}

void Queue::watch_control(Instant now, Effects& out) {
  static_cast<void>(now);
  control_at_ = Instant::max();
  control_ = requests_.next();
  out.emplace_back(WatchControl{control_, control_index_});
}

void Queue::on(Instant now, const ControlRead& event, Effects& out) {
  if (event.request != control_ || !control_) return;
  control_ = {};
  // What may not be read pauses nothing; what was not answered may. Nonsense does: somebody wanted
  // something, most likely to pause.
  if (event.ok || event.denied) control_known_ = true;
  if (!event.ok) {
    if (event.denied && !std::exchange(told_control_, true)) {
      out.emplace_back(
          Fact{Fact::Kind::kDenied, {}, 0, 0, "reading the control key: " + event.error, {}});
    }
    control_index_ = 0;
    control_at_ = now + kControlRetry;
    return;
  }
  told_control_ = false;
  if (!event.found) {
    if (!std::exchange(marking_control_, true)) {
      commits_.add(now, {Purpose::kMark, MarkOp{MarkOp::What::kControl}, {}});
    }
    control_index_ = 0;
    control_at_ = now + kControlRetry;
    if (!seen_step_down_) seen_step_down_ = "";
    return;
  }
  const bool was_paused = std::exchange(paused_, event.paused);
  if (event.unreadable && event.by != paused_by_) {
    out.emplace_back(Fact{Fact::Kind::kControlUnreadable, {}, 0, 0, event.error, {}});
  } else if (event.paused != was_paused) {
    out.emplace_back(
        Fact{event.paused ? Fact::Kind::kPaused : Fact::Kind::kResumed, {}, 0, 0, event.by, {}});
  }
  paused_by_ = event.paused ? event.by : std::string{};
  // What was asked of an earlier leader was not asked of us, also where the key seems to be gone
  // for a while, as a server that starts may say.
  if (!seen_step_down_) seen_step_down_ = event.step_down;
  if (!event.step_down.empty() &&
      std::exchange(seen_step_down_, event.step_down) != event.step_down) {
    if (drain_ == Drain::kNone) {
      // Who paused it is told in the place of who asked for this.
      const std::string by = event.paused ? std::string{} : event.by;
      out.emplace_back(Fact{Fact::Kind::kSteppingDown, {}, 0, 0, by, {}});
    }
    begin_drain(now, Drain::kStepDown, out);
  }
  control_index_ = event.consul_index < control_index_ ? 0 : event.consul_index;
  watch_control(now, out);
}

void Queue::begin_drain(Instant now, Drain why, Effects& out) {
  if (drain_ == Drain::kStop || stopped_) return;
  drain_ = why;
  drain_stopping_ = false;
  drain_until_ = now + options_.drain_timeout;
  drain_give_up_ = drain_until_ + options_.kill_grace + 2 * options_.request_timeout;
  if (!lease_.holding() && why == Drain::kStop) finish_drain(now, out);
  if (!lease_.holding() && why == Drain::kStepDown) drain_ = Drain::kNone;
}

void Queue::continue_drain(Instant now, Effects& out) {
  give_back_held(now, out);
  if (now >= drain_until_ && !std::exchange(drain_stopping_, true)) {
    attempts_.for_each([&](Attempt& attempt) {
      if (attempt.state == Attempt::State::kRunning) {
        stop_running(now, attempt, Attempt::StopReason::kDrain, out);
      }
    });
  }
  const bool done = attempts_.empty() && commits_.idle();
  if (done || now >= drain_give_up_ || mutant(Mutant::kReleaseWithJobs)) finish_drain(now, out);
}

void Queue::finish_drain(Instant now, Effects& out) {
  drain_until_ = Instant::max();
  drain_give_up_ = Instant::max();
  if (lease_.holding() && running() != 0 && !mutant(Mutant::kReleaseWithJobs)) {
    // A job would not end. To release the lock now would let the next leader run beside it: keep
    // the lead, or, if the daemon is to go, leave the lock to the session's TTL and the lock-delay.
    if (drain_ == Drain::kStop) {
      stopped_ = left_ = true;
      out.emplace_back(Stopped{});
    }
    drain_ = Drain::kNone;
    return;
  }
  if (lease_.holding()) end_term(now, out);
  if (drain_ == Drain::kStop) {
    on_change(now, lease_.close(now + options_.request_timeout, out), out);
  } else {
    drain_ = Drain::kNone;
    lease_.resign(options_.standoff, out);
  }
}

void Queue::leave_if_done(Effects& out) {
  if (lease_.state() != Lease::State::kClosed || !stopped_ || !leftovers_.empty()) return;
  left_ = true;
  out.emplace_back(Stopped{});
}

}  // namespace lictor::core
