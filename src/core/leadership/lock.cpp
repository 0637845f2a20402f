#include "core/leadership/lock.h"

#include <algorithm>
#include <utility>

#include "core/requests.h"

namespace lictor::core {
namespace {

// During Consul's lock-delay, acquire attempts are refused from memory without a raft entry
// (consul.md 2.2), so ten a second are cheap. Nothing else shows when the lock-delay ends.
constexpr Duration kLockDelayPoll = 100ms;
// At most one log line about a client that writes to the leader key repeatedly.
constexpr Duration kReportAgain = 1min;

}  // namespace

void Lock::campaign(Instant now, const std::string& session, Effects& out) {
  session_ = session;
  state_ = State::kWatching;
  retry_at_ = acquire_at_ = Instant::max();
  standoff_until_ = now + std::exchange(standoff_, Duration::zero());
  watch(0, out);
}

void Lock::want(Instant now, bool wanted) {
  if (std::exchange(wanted_, wanted) == wanted) return;
  if (state_ == State::kWaiting) {
    acquire_at_ = wanted ? std::max(free_from_, standoff_until_) : Instant::max();
  } else if (state_ == State::kWatching && wanted && !watch_) {
    retry_at_ = std::min(retry_at_, std::max(now, standoff_until_));
  }
}

void Lock::stop(Effects& out) {
  other_owner_.reset();
  cancel_requests(out);
  state_ = State::kIdle;
  retry_at_ = acquire_at_ = Instant::max();
}

void Lock::cancel_requests(Effects& out) {
  for (RequestId* request : {&lock_, &unlock_, &read_, &watch_}) cancel(*request, out);
  read_again_ = false;
  read_at_ = Instant::max();
}

void Lock::watch(std::uint64_t index, Effects& out) {
  // An index that went backwards (a restored snapshot, reaped tombstones) would never wake again.
  if (index < watch_index_) index = 0;
  watch_index_ = index;
  retry_index_ = 0;
  watch_ = requests_.next();
  out.emplace_back(ReadLeader{watch_, false, index, partition_, held()});
}

// Goes on after `reply`. Consul never answers without an index, and a query without one does not
// wait: the pause ends the loop.
void Lock::watch_on(Instant now, const LeaderRead& reply, Effects& out) {
  if (reply.consul_index != 0) return watch(reply.consul_index, out);
  retry_at_ = now + kRetryPause;
}

void Lock::watch_after(Instant when) {
  state_ = State::kWatching;
  retry_at_ = when;
}

// `free_at`: the ModifyIndex at which the key was seen free; 0: there was no key. `held_at`: the
// ModifyIndex at which our session already holds it.
void Lock::acquire(Instant now, std::uint64_t free_at, std::uint64_t held_at, Effects& out) {
  cancel(watch_, out);
  state_ = State::kAcquiring;
  retry_at_ = acquire_at_ = Instant::max();
  lock_free_at_ = free_at;
  lock_held_at_ = held_at;
  request_lock(now, out);
}

void Lock::request_lock(Instant now, Effects& out) {
  lock_ = requests_.next();
  lock_sent_ = now;
  out.emplace_back(AcquireLock{lock_, session_, lock_held_at_, lock_free_at_, partition_,
                               options_.partitions_index, options_.only_single});
}

// A client that overwrites the leader key leaves us the lock but hides who leads. Restore the value
// only at this index: at a later one the lock may have been another's in between.
void Lock::restore_value(Instant now, std::uint64_t held_at, Effects& out) {
  if (lock_) return;
  if (now < restore_from_) {
    read_at_ = std::min(read_at_, restore_from_);
    return;
  }
  restore_from_ = now + kRetryPause;  // not faster than a client that keeps overwriting it
  lock_free_at_ = 0;
  lock_held_at_ = held_at;
  request_lock(now, out);
}

void Lock::unlock(Effects& out) {
  unlock_ = requests_.next();
  out.emplace_back(ReleaseLock{unlock_, session_, own_index_, partition_});
}

void Lock::release(Duration standoff, Effects& out) {
  standoff_ = standoff;
  cancel_requests(out);
  state_ = State::kReleasing;
  retry_at_ = Instant::max();
  unlock(out);
}

void Lock::lose(Effects& out) {
  cancel_requests(out);
  state_ = State::kLost;
  retry_at_ = Instant::max();
}

void Lock::prove(Instant now, Effects& out) {
  if (read_) {
    read_again_ = true;
    return;
  }
  read_again_ = false;
  read_ = requests_.next();
  read_sent_ = now;
  out.emplace_back(ReadLeader{read_, true, 0, partition_});
}

void Lock::prove_again(Instant now, Effects& out) {
  cancel(read_, out);
  prove(now, out);
}

void Lock::emit(Fact::Kind kind, Effects& out, std::string text, Duration took) const {
  out.emplace_back(
      Fact{.kind = kind, .text = std::move(text), .took = took, .partition = partition_.number});
}

void Lock::emit_waiting(Duration left, Effects& out) {
  if (std::exchange(waiting_reported_, true)) return;
  emit(Fact::Kind::kLockDelay, out, {}, left);
}

void Lock::note_held(std::uint64_t index, Effects& out) {
  if (index <= held_index_) return;
  held_index_ = index;
  out.emplace_back(RememberHolder{partition_.number, index});
}

Lock::Verdict Lock::on(Instant now, const LockReplied& reply, Effects& out) {
  if (reply.request != lock_) return {};
  lock_ = {};
  if (held()) return on_value_restored(now, reply, out);
  if (state_ != State::kAcquiring) return {};
  using Answer = LockReplied::Answer;
  if (reply.answer < Answer::kOverLimit) trouble_.over();
  switch (reply.answer) {
    case Answer::kAcquired:
      return on_acquired(now, reply, out);
    case Answer::kHeld:
      free_index_ = 0;
      waiting_reported_ = false;
      state_ = State::kWatching;
      watch(0, out);
      break;
    case Answer::kLockDelay:
      emit_waiting({}, out);
      retry_at_ = now + kLockDelayPoll;
      if (!wanted_) watch_after(retry_at_);
      break;
    case Answer::kChanged:
      // The watch showed an old state, or the key was written since. Pause first: a watch that
      // stays stale would otherwise be asked in a tight loop.
      free_index_ = 0;
      watch_after(now + kLockDelayPoll);
      break;
    case Answer::kSessionGone:
      return {Change::kSessionGone, {}};
    case Answer::kCountChanged:
      // With this number nothing can be led any more. Each try would cost a raft entry.
      watch_after(now + kRefusedPause);
      return {Change::kCountChanged, {}};
    case Answer::kRefused:
      emit(Fact::Kind::kDenied, out, "acquiring the lock: " + reply.error);
      watch_after(now + kRefusedPause);
      break;
    case Answer::kOverLimit:
      trouble_.report("acquiring the lock", reply.error, out);
      retry_at_ = now + kRetryPause;
      if (!wanted_) watch_after(retry_at_);
      break;
    case Answer::kUnknown:
      // The lock may be ours by now; the watch shows it.
      trouble_.report("acquiring the lock", reply.error, out);
      watch_after(now + kRetryPause);
      break;
  }
  return {};
}

Lock::Verdict Lock::on_acquired(Instant now, const LockReplied& reply, Effects& out) {
  takeover_gap_ = lock_free_at_ != 0 ? now - freed_seen_ : Duration::zero();
  cancel_requests(out);
  trouble_.over();
  state_ = State::kHeld;
  waiting_reported_ = false;
  own_index_ = reply.modify_index;
  held_index_ = 0;  // an earlier holder is over, even if indexes have gone back
  note_held(own_index_, out);
  free_index_ = 0;
  retry_at_ = acquire_at_ = Instant::max();
  other_holder_.clear();
  other_owner_.reset();
  watch(0, out);
  return {Change::kAcquired, lock_sent_};
}

Lock::Verdict Lock::on_value_restored(Instant now, const LockReplied& reply, Effects& out) {
  using Answer = LockReplied::Answer;
  if (reply.answer == Answer::kAcquired) {
    own_index_ = reply.modify_index;
    note_held(own_index_, out);
    if (now >= quiet_until_) {
      quiet_until_ = now + kReportAgain;
      emit(Fact::Kind::kLeaderRestored, out);
    }
    prove(now, out);  // to see what was written to the key meanwhile
    return {Change::kNone, lock_sent_};
  }
  if (reply.answer == Answer::kRefused) restore_from_ = now + kRefusedPause;
  read_at_ = std::min(read_at_, restore_from_);
  return {};
}

Lock::Verdict Lock::on(Instant now, const UnlockReplied& reply, Effects& out) {
  if (reply.request != unlock_) return {};
  unlock_ = {};
  if (state_ != State::kReleasing) return {};
  if (reply.outcome != Outcome::kApplied) {
    // Unknown, or the key was written meanwhile, which leaves us the lock: read the key.
    prove(now, out);
    retry_at_ = now + kRetryPause;
    return {};
  }
  state_ = State::kIdle;
  return {Change::kReleased, {}};
}

Lock::Verdict Lock::on(Instant now, const LeaderRead& reply, Effects& out) {
  if (reply.request == read_) {
    read_ = {};
    return on_consistent_read(now, reply, out);
  }
  if (reply.request != watch_) return {};
  watch_ = {};
  if (!reply.ok) {
    const bool keeps_index = watch_index_ != 0 && failures_.keeps_index(reply.over_limit);
    if (!keeps_index || reply.over_limit) {
      trouble_.report("watching the leader key", reply.error, out);
    }
    retry_index_ = keeps_index ? watch_index_ : 0;
    retry_at_ = now + trouble_.pause();
    return {};
  }
  failures_.over();
  if (held()) {
    on_watch_as_holder(now, reply, out);
  } else {
    on_watch_as_candidate(now, reply, out);
  }
  return {};
}

// The watch is a default read and may be stale: it is only a reason to look.
// Versions not newer than our own acquisition are stale.
void Lock::on_watch_as_holder(Instant now, const LeaderRead& reply, Effects& out) {
  const bool as_left = reply.session == session_ && reply.modify_index <= own_index_;
  if (!as_left && reply.consul_index >= own_index_) prove(now, out);
  // A missing key makes a watch wake on every write near it (consul.md 4.2).
  if (reply.found) {
    watch_on(now, reply, out);
  } else {
    retry_at_ = now + kRetryPause;
  }
}

void Lock::on_watch_as_candidate(Instant now, const LeaderRead& reply, Effects& out) {
  trouble_.over();
  other_owner_ = reply.session.empty()  ? std::string{}
                 : reply.holder.empty() ? kUnknownOwner
                                        : reply.holder;
  const bool ours = !reply.session.empty() && reply.session == session_;
  // While it is waited for, another client's write to the key must not end the wait.
  if (ours && reply.modify_index >= held_index_ && state_ != State::kWaiting) {
    acquire(now, 0, reply.modify_index, out);
  } else if (!ours && !reply.session.empty()) {
    on_seen_held(now, reply, out);
  } else if (reply.found) {
    on_seen_free(now, reply, out);
  } else if (held_index_ != 0) {
    on_seen_gone(now, out);
  } else if (may_acquire(now)) {
    acquire(now, 0, 0, out);
  } else {
    retry_at_ = now + kRetryPause;
    if (wanted_) retry_at_ = std::min(retry_at_, standoff_until_);
  }
}

// There is no key, but this host knows of a holder: the key was deleted, or Consul was restored
// from a snapshot. Neither leaves a lock-delay, and jobs of that holder may still run. No watch,
// since it would wake on every write near the missing key (consul.md 4.2).
void Lock::on_seen_gone(Instant now, Effects& out) {
  const bool is_known = state_ == State::kWaiting && free_index_ == 0;
  if (!is_known) freed_seen_ = now;
  free_index_ = 0;
  free_from_ = freed_seen_ + std::min(options_.lock_delay, kMostLockDelay);
  acquire_at_ = wanted_ ? std::max(free_from_, standoff_until_) : Instant::max();
  predecessor_.clear();
  state_ = State::kWaiting;  // on_time() acquires it
  if (now < free_from_) emit_waiting(free_from_ - now, out);
  retry_at_ = now + kRetryPause;
}

void Lock::on_seen_held(Instant now, const LeaderRead& reply, Effects& out) {
  note_held(reply.modify_index, out);
  // Another daemon has held it since our release: we have stood back long enough.
  if (reply.modify_index > own_index_) standoff_until_ = Instant::min();
  // An older version than the awaited one may be stale; if not, acquire is refused.
  if (state_ != State::kWaiting || reply.modify_index > free_index_) {
    state_ = State::kWatching;
    acquire_at_ = Instant::max();
    free_from_ = Instant::min();
    free_index_ = 0;
    waiting_reported_ = false;
    if (other_holder_ != reply.holder || other_holder_.empty()) {
      other_holder_ = reply.holder;
      emit(Fact::Kind::kCampaigning, out, reply.holder);
    }
  }
  watch_on(now, reply, out);
}

// The key is free, or a snapshot from before the last holder gives it back to our session: others
// wait for us then, so it is taken even if it is not wanted.
void Lock::on_seen_free(Instant now, const LeaderRead& reply, Effects& out) {
  if (state_ == State::kWaiting && reply.modify_index < free_index_) {  // stale, or found out later
    watch_on(now, reply, out);
    return;
  }
  // Another index may mean a holder that we did not see: count the lock-delay again.
  if (std::exchange(free_index_, reply.modify_index) != reply.modify_index) freed_seen_ = now;
  // A release older than the last holder that we saw is not the release by that holder.
  const bool in_order = reply.released && reply.modify_index > held_index_;
  const Duration lock_delay =
      std::min(reply.holder_lock_delay.value_or(options_.lock_delay), kMostLockDelay);
  free_from_ = in_order ? freed_seen_ : freed_seen_ + lock_delay;
  const bool takes = wanted_ || !reply.session.empty();
  acquire_at_ = takes ? std::max(free_from_, standoff_until_) : Instant::max();
  predecessor_ = reply.holder.empty() || !reply.session.empty()
                     ? std::string{}
                     : reply.holder + (in_order ? " released the lock" : " was lost");
  if (now >= acquire_at_) return acquire(now, free_index_, 0, out);
  state_ = State::kWaiting;
  if (now < free_from_) emit_waiting(free_from_ - now, out);
  watch_on(now, reply, out);
}

Lock::Verdict Lock::on_consistent_read(Instant now, const LeaderRead& reply, Effects& out) {
  const bool again = std::exchange(read_again_, false);
  const Instant sent_at = read_sent_;
  const bool ours = reply.ok && reply.session == session_ && !session_.empty();
  if (state_ == State::kHeld) {
    if (!reply.ok) {
      trouble_.report("proving leadership", reply.error, out);
      // Not so rarely that the lease runs out soon after the outage.
      const Duration most = std::max<Duration>(options_.proof_interval() / 4, kRetryPause);
      read_at_ = std::min(read_at_, now + std::min(trouble_.pause(), most));
      return {};
    }
    if (!ours) {
      lose(out);
      return {Change::kLost, {}};
    }
    if (again) prove(now, out);
    // The index is above ours after another client's write, and below it after a restore.
    if (reply.modify_index != own_index_) restore_value(now, reply.modify_index, out);
    return {Change::kNone, sent_at};
  }
  if (state_ != State::kReleasing || !reply.ok) return {};
  if (ours) {
    // Unlocks at once if the key has changed since the refusal, otherwise after the pause.
    const bool is_changed = std::exchange(own_index_, reply.modify_index) != reply.modify_index;
    if (is_changed) unlock(out);
    return {};
  }
  state_ = State::kIdle;
  return {Change::kReleased, {}};
}

void Lock::on_time(Instant now, Effects& out) {
  if (now >= read_at_) {
    read_at_ = Instant::max();
    prove(now, out);
  }
  if (state_ == State::kWaiting && now >= acquire_at_) return acquire(now, free_index_, 0, out);
  if (now < retry_at_) return;
  retry_at_ = Instant::max();
  switch (state_) {
    case State::kWatching:
    case State::kWaiting:
    case State::kHeld:
      if (!watch_) watch(retry_index_, out);
      break;
    case State::kAcquiring:
      request_lock(now, out);
      break;
    case State::kReleasing:
      if (!unlock_) unlock(out);
      break;
    case State::kIdle:
    case State::kLost:
      break;
  }
}

Instant Lock::next_deadline() const { return std::min({acquire_at_, read_at_, retry_at_}); }

}  // namespace lictor::core
