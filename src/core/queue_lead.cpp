// Leadership gained, lost and given up.

#include <utility>

#include "core/queue.h"

namespace lictor::core {

void Queue::on_changes(Instant now, const Leadership::Changes& changes, Effects& out) {
  for (const Leadership::Change& change : changes) on_change(now, change.what, out);
}

void Queue::on_change(Instant now, Lease::Change change, Effects& out) {
  switch (change) {
    case Lease::Change::kNone:
    case Lease::Change::kSessionGone:
      break;
    case Lease::Change::kWon:
      begin_term(now, out);
      break;
    case Lease::Change::kExpired:
      // Somebody else may lead from lock_delay after the last proof on; by then no job may run.
      out.emplace_back(Fact{Fact::Kind::kLeaseExpired, {}, 0, 0, {}, {}});
      table_.for_each_ours([&](TaskEntry& entry) {
        const bool runs = entry.state == TaskState::kRunning || entry.state == TaskState::kStopping;
        if (runs && entry.attempt->policy.on_lease_lost == OnLeaseLost::kStop) {
          transitions_.stop(now, entry, StopReason::kLease, out);
        }
      });
      break;
    case Lease::Change::kRegained:
      out.emplace_back(Fact{Fact::Kind::kLeaseRegained, {}, 0, 0, {}, {}});
      break;
    case Lease::Change::kLost:
      out.emplace_back(Fact{Fact::Kind::kLeaseLost, {}, 0, 0, {}, {}});
      end_term(out);
      if (drain_ == Drain::kStop) {
        leadership_.close(now + options_.request_timeout, out);
      }
      drain_ = drain_ == Drain::kStop ? Drain::kStop : Drain::kNone;
      if (table_.count(TaskState::kLeftover) == 0) leadership_.resume(now, 0, out);
      break;
    case Lease::Change::kResigned:
      out.emplace_back(Fact{Fact::Kind::kSteppedDown, {}, 0, 0, {}, {}});
      break;
  }
}

void Queue::begin_term(Instant now, Effects& out) {
  out.emplace_back(
      Fact{Fact::Kind::kLeading, {}, 0, 0, lease().predecessor(), lease().takeover_gap()});
  marking_folder_ = marking_control_ = marking_schedules_ = false;
  source_.start(now, out);
  history_.start(now);
  control_.start(out);
  scheduler_.start(now, out);
}

void Queue::end_term(Effects& out) {
  commits_.clear(out);
  source_.stop(out);
  history_.stop(out);
  control_.stop(out);
  scheduler_.stop(out);
  transitions_.end_term(out);
  dispatcher_.clear();
}

void Queue::begin_drain(Instant now, Drain why, Effects& out) {
  if (drain_ == Drain::kStop || leadership_.closed()) return;
  drain_ = why;
  drain_stopping_ = false;
  drain_until_ = now + options_.drain_timeout;
  drain_give_up_ = drain_until_ + options_.kill_grace + 2 * options_.request_timeout;
  if (!lease().holding() && why == Drain::kStop) finish_drain(now, out);
  if (!lease().holding() && why == Drain::kStepDown) drain_ = Drain::kNone;
}

void Queue::continue_drain(Instant now, Effects& out) {
  dispatcher_.give_back_claimed(now, out);
  if (now >= drain_until_ && !std::exchange(drain_stopping_, true)) {
    table_.for_each_ours([&](TaskEntry& entry) {
      const bool runs = entry.state == TaskState::kRunning || entry.state == TaskState::kStopping;
      if (runs) transitions_.stop(now, entry, StopReason::kDrain, out);
    });
  }
  const bool done = table_.busy() + table_.count(TaskState::kEnding) == 0 && commits_.idle();
  if (done || now >= drain_give_up_) finish_drain(now, out);
}

void Queue::finish_drain(Instant now, Effects& out) {
  drain_until_ = Instant::max();
  drain_give_up_ = Instant::max();
  if (lease().holding() && running() != 0) {
    // A job has not ended. Releasing the lock now would let the next leader run beside it: keep the
    // lead, or, if the daemon stops, leave the lock to the session's TTL and the lock-delay.
    if (drain_ == Drain::kStop) {
      left_ = true;
      out.emplace_back(Stopped{});
    }
    drain_ = Drain::kNone;
    return;
  }
  if (lease().holding()) end_term(out);
  if (drain_ == Drain::kStop) {
    leadership_.close(now + options_.request_timeout, out);
  } else {
    drain_ = Drain::kNone;
    leadership_.resign(0, options_.standoff, out);
  }
}

void Queue::leave_if_done(Effects& out) {
  if (!leadership_.closed() || table_.count(TaskState::kLeftover) != 0) return;
  left_ = true;
  out.emplace_back(Stopped{});
}

}  // namespace lictor::core
