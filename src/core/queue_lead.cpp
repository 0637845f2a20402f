// Leadership gained, lost and given up.
//
// A term begins when a lock is won. No claim is made in it before three things were read again: all
// tasks, the operator's switches and the claims that other daemons have given up (Term::reading,
// Term::control, Term::owners). Otherwise a new leader could start a task out of order, or while
// the queue is paused, or count a living daemon as a lost owner.
//
// A drain ends a term in order. No lock is released while a job runs, since the next leader would
// start the task beside it:
//
//   begin_drain()     nothing is claimed or started; what is claimed goes back; jobs run on
//     |                 for drain_timeout at most
//     +-- hand-over, time is up: the partition stays here for ten drain_timeouts, unless this host
//     |   is to be emptied
//     +-- else, time is up: jobs are asked to end, and have kill_grace and two request time-outs
//     v
//   finish_drain()    hand-over, step-down: no job --> lock released; a job --> leads on
//                     stop, of all partitions: no job --> locks released, session ended
//                                              a job  --> locks left to TTL and lock-delay
//
// A step-down keeps this host from the lock for `standoff`, so that another host takes it; a
// hand-over does not need that, since the balancer does not want the partition back.

#include <algorithm>
#include <utility>

#include "core/queue.h"

namespace lictor::core {

void Queue::on_changes(Instant now, const Leadership::Changes& changes, Effects& out) {
  for (const Leadership::Change& change : changes) {
    on_change(now, change.partition, change.what, out);
  }
}

void Queue::on_change(Instant now, std::uint32_t partition, LeaseChange change, Effects& out) {
  switch (change) {
    case LeaseChange::kWon:
      begin_term(now, partition, out);
      break;
    case LeaseChange::kExpired:
      // Somebody else may lead from lock_delay after the last proof on; by then no job may run.
      emit(Fact::Kind::kLeaseExpired, partition, out);
      stop_jobs(now, partition, StopReason::kLease, out);
      break;
    case LeaseChange::kRegained:
      emit(Fact::Kind::kLeaseRegained, partition, out);
      break;
    case LeaseChange::kLost:
      emit(Fact::Kind::kLeaseLost, partition, out);
      end_term(partition, out);
      if (stopping_) stop_if_drained(now, out);
      if (table_.busy_in(partition).leftovers == 0) leadership_.resume(now, partition, out);
      break;
    case LeaseChange::kResigned:
      emit(Fact::Kind::kSteppedDown, partition, out);
      break;
  }
}

void Queue::emit(Fact::Kind kind, std::uint32_t partition, Effects& out, std::string text,
                 Duration took) {
  out.emplace_back(
      Fact{.kind = kind, .text = std::move(text), .took = took, .partition = partition});
}

// Asks the jobs of a partition to end. At the end of a lease, jobs that may overlap go on.
void Queue::stop_jobs(Instant now, std::uint32_t partition, StopReason why, Effects& out) {
  table_.for_each_ours([&](TaskEntry& entry) {
    if (entry.state != TaskState::kRunning || entry.partition != partition) return;
    const bool goes_on =
        why == StopReason::kLease && entry.attempt->policy.on_lease_lost == OnLeaseLost::kFinish;
    if (!goes_on) transitions_.stop(now, entry, why, out);
  });
}

bool Queue::holds_another(std::uint32_t partition) const {
  for (std::uint32_t i = 0; i < terms_.size(); ++i) {
    if (i != partition && terms_[i].runs) return true;
  }
  return false;
}

void Queue::begin_term(Instant now, std::uint32_t partition, Effects& out) {
  const Lock& lock = leadership_.lock(partition);
  emit(Fact::Kind::kLeading, partition, out, lock.predecessor(), lock.takeover_gap());
  terms_[partition] = {};
  const bool is_first = !holds_another(partition);
  if (is_first) {
    source_.start(now, out);
  } else {
    transitions_.begin_term(partition);
    source_.read_again(now, out);
  }
  terms_[partition].runs = true;
  terms_[partition].reading = source_.reading();
  if (partition == 0) history_.start(now);
  if (is_first) {
    control_.start(out);
  } else {
    control_.read_again(out);
  }
  terms_[partition].control = control_.reading();
  owners_.read(out);
  terms_[partition].owners = owners_.reading();
  if (partition == 0) {
    marking_.clear();
    scheduler_.start(now, out);
  }
}

void Queue::end_term(std::uint32_t partition, Effects& out) {
  const bool is_last = !holds_another(partition);
  terms_[partition] = {};
  if (is_last) {
    commits_.clear(out);
    source_.stop(out);
  } else {
    commits_.drop(partition);
  }
  if (partition == 0) history_.stop(out);
  if (is_last) control_.stop(out);
  if (is_last) owners_.stop(out);
  if (partition == 0) scheduler_.stop(out);
  transitions_.end_term(partition, is_last, out);
  dispatcher_.drop(partition);
  if (is_last) dispatcher_.clear(out);
}

// Asks for the locks of free partitions that this host should take, and gives up a partition that
// another host should have.
void Queue::balance(Instant now) {
  if (options_.partitions == 1) return;
  if (stopping_) {
    balance_at_ = Instant::max();
    return;
  }
  if (!leadership_.read_owners(options_.node, fleet_) && now < balance_at_) return;
  balance_at_ = Instant::max();
  if (fleet_.owners.empty()) return;  // an answer of a watch restores this
  fleet_.jobs.assign(terms_.size(), 0);
  table_.for_each_ours([&](const TaskEntry& entry) { ++fleet_.jobs[entry.partition]; });
  balancer_.on_view(now, fleet_);
  leadership_.want_only(now, balancer_.to_take(now));
  const std::optional<std::uint32_t> next = balancer_.to_hand_over(now);
  balance_at_ = balancer_.next_deadline(now);
  for (std::uint32_t i = 0; i < terms_.size(); ++i) {
    const bool goes = leaves() || i == next;
    if (goes && holds_lock(i) && terms_[i].drain == Drain::kNone) {
      begin_drain(now, i, Drain::kHandOver);
    }
  }
}

void Queue::begin_drain(Instant now, std::uint32_t partition, Drain why) {
  Term& term = terms_[partition];
  term.drain = why;
  term.stops_jobs = false;
  term.drain_until = now + options_.drain_timeout;
  term.give_up = term.drain_until + options_.kill_grace + 2 * options_.request_timeout;
}

void Queue::begin_drain(Instant now, Drain why, Effects& out) {
  if (stopping_) return;
  stopping_ = why == Drain::kStop;
  for (std::uint32_t i = 0; i < terms_.size(); ++i) {
    if (holds_lock(i)) begin_drain(now, i, why);
  }
  if (!stopping_) return;
  leadership_.retire(out);
  stop_if_drained(now, out);
}

void Queue::continue_drain(Instant now, std::uint32_t partition, Effects& out) {
  Term& term = terms_[partition];
  dispatcher_.requeue_claimed(now, "this daemon gives up leadership", out, partition);
  const bool done = table_.busy_in(partition).ours == 0 && commits_.idle(partition);
  if (!done && now >= term.drain_until && term.drain == Drain::kHandOver && !leaves()) {
    // A fair share is not worth an hour's work: its jobs go on, the partition stays for a while.
    balancer_.keep(partition, now + std::max<Duration>(1min, 10 * options_.drain_timeout));
    term.drain = Drain::kNone;
    term.drain_until = term.give_up = Instant::max();
    balance_at_ = now + 1ms;  // another partition may go
    return;
  }
  if (now >= term.drain_until && !std::exchange(term.stops_jobs, true)) {
    stop_jobs(now, partition, StopReason::kDrain, out);
  }
  if (done || now >= term.give_up) finish_drain(now, partition, out);
}

// If a job has not ended, releasing the lock now would let the next leader run beside it: keep
// leading or, if the daemon stops, leave the lock to the session's TTL and the lock-delay.
void Queue::finish_drain(Instant now, std::uint32_t partition, Effects& out) {
  Term& term = terms_[partition];
  if (term.drain == Drain::kStop) {
    term.drained = true;
    return stop_if_drained(now, out);
  }
  const Drain why = term.drain;
  const bool keeps = table_.busy_in(partition).running != 0;
  term.drain = Drain::kNone;
  term.drain_until = term.give_up = Instant::max();
  if (keeps) return;
  const bool hands_over = why == Drain::kHandOver;
  end_term(partition, out);
  leadership_.resign(partition, hands_over ? Duration::zero() : options_.standoff, out);
}

// Whether this host is to be emptied.
bool Queue::leaves() const {
  return std::any_of(
      fleet_.members.begin(), fleet_.members.end(),
      [&](const BalancerMember& member) { return member.id == options_.node && member.draining; });
}

// Ends the daemon's stop, once each partition is drained or given up.
void Queue::stop_if_drained(Instant now, Effects& out) {
  bool jobs_run = false;
  for (std::uint32_t i = 0; i < terms_.size(); ++i) {
    if (!holds_lock(i)) continue;
    if (!terms_[i].drained) return;
    jobs_run = jobs_run || table_.busy_in(i).running != 0;
  }
  if (jobs_run) {
    left_ = true;
    out.emplace_back(Stopped{});
    return;
  }
  if (keeps_locks_) {
    if (!std::exchange(drained_sent_, true)) out.emplace_back(Drained{leadership_.session()});
    return;
  }
  for (std::uint32_t i = 0; i < terms_.size(); ++i) {
    if (terms_[i].runs) end_term(i, out);
  }
  leadership_.close(now + options_.request_timeout, out);
}

void Queue::leave_if_done(Effects& out) {
  if (!leadership_.closed() || table_.count(TaskState::kLeftover) != 0) return;
  left_ = true;
  out.emplace_back(Stopped{});
}

}  // namespace lictor::core
