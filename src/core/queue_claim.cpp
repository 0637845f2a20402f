// Which task is claimed next, and when: what is due, in order; then, within prefetch, what will be
// soon.

#include <utility>

#include "core/mutant.h"
#include "core/queue.h"

namespace lictor::core {
namespace {

// A task that was taken and is not ours has lost its owner: we lead, so nobody else works.
bool is_orphan(const Task& task) { return task.stamp.taken; }

}  // namespace

// A task that may be what killed its owners runs alone, so that it takes no other along.
bool Queue::is_last_chance(const Task& task) const {
  return is_orphan(task) && task.stamp.lost + 2 >= options_.max_losses;
}

// One at a time means one after the other: a task that waits for its lane only because the task
// before it is not settled yet is not passed by a later one of another lane.
bool Queue::would_overtake(const Task& task) const {
  if (options_.concurrency != 1 || !schedule_.any_parked()) return false;
  bool found = false;
  attempts_.for_each([&](const Attempt& attempt) {
    found = found || schedule_.parked_before(attempt.task->serial_key, task);
  });
  return found;
}

// One at a time is in order: then nothing passes what cannot be started.
bool Queue::holds_all() const { return start_holds_.any() && options_.concurrency == 1; }

const StartHolds::Hold* Queue::hold_of(const Task& task) const {
  if (!start_holds_.any()) return nullptr;
  return holds_all() ? &start_holds_.first() : start_holds_.find(executor_of(task));
}

// What is early takes no slot: what is due is claimed beside it as if it were not there, and shares
// the room ahead with it.
bool Queue::may_claim(const Task& task, bool due) const {
  using State = Attempt::State;
  const std::size_t early = attempts_.early();
  const std::size_t busy = attempts_.count(State::kClaiming) + attempts_.count(State::kHeld) +
                           attempts_.count(State::kRunning);
  if (is_last_chance(task)) return busy == 0;
  if (attempts_.has_last_chance()) return false;
  if (attempts_.count(State::kSettling) >= options_.max_unacked) return false;
  const std::size_t beyond = mutant(Mutant::kPrefetchBeyond) ? 1 : 0;
  if (!due) {
    return early < options_.prefetch && busy < options_.concurrency + options_.prefetch;
  }
  return busy - early < options_.concurrency + ahead_of_slots(task) + beyond;
}

// Claims ahead of a free slot lose an owner without having been started, when the daemon dies.
std::size_t Queue::ahead_of_slots(const Task& task) const {
  if (is_orphan(task)) return 0;
  const std::size_t early = attempts_.early();
  if (options_.prefetch > 0) return options_.prefetch < early ? 0 : options_.prefetch - early;
  // Nobody asked for it: not where that would end the task, nor where starts are counted.
  const TypePolicy* policy = policy_of(task);
  if (policy == nullptr || options_.rate_limit) return 0;
  const bool costs_it =
      policy->delivery == Delivery::kAtMostOnce || task.stamp.lost + 1 >= options_.max_losses;
  return costs_it ? 0 : adaptive_.size();
}

// When what nobody asked to hold goes back, since no slot has come free for it.
Instant Queue::held_too_long_at() const {
  if (!adaptive_.enabled()) return Instant::max();
  const Attempt* first = attempts_.first_held();
  return first == nullptr ? Instant::max() : first->held_since + adaptive_.patience();
}

// The next task that may be claimed before it is due. In the order in which they are due: what may
// not be claimed ahead is not overtaken by what may. A task of a lane would bar it for others that
// are due earlier; one that expires first would not; and a rate is one of starts.
std::shared_ptr<const Task> Queue::next_ahead(Instant now) {
  if (options_.prefetch == 0 || options_.preload <= Duration::zero() || options_.rate_limit) {
    return nullptr;
  }
  auto task = schedule_.next_delayed();
  if (!task || is_orphan(*task) || !task->serial_key.empty() || hold_of(*task)) return nullptr;
  const WallTime due = *due_of(*task);
  if (task->expire_at && *task->expire_at <= due) return nullptr;
  const WallTime opens = due - std::chrono::floor<std::chrono::milliseconds>(options_.preload);
  if (opens <= wall(now)) return task;
  ahead_at_ = instant_of(opens);
  return nullptr;
}

// For want of room `task` would wait for one that was claimed ahead and is due after it: that one
// is given back.
bool Queue::make_way(Instant now, const Task& task, Effects& out) {
  Attempt* last = attempts_.last_early();
  if (last == nullptr || last->state != Attempt::State::kHeld || attempts_.has_last_chance() ||
      attempts_.count(Attempt::State::kSettling) >= options_.max_unacked) {
    return false;
  }
  const WallTime due = due_of(task).value_or(WallTime::min());
  const WallTime last_due = *last->early_until;
  if (due > last_due || (due == last_due && starts_before(*last->task, task))) return false;
  give_back(now, *last, false, out);
  return true;
}

// The wall clock was set back.
void Queue::give_back_too_early(Instant now, Effects& out) {
  const auto window = std::chrono::ceil<std::chrono::milliseconds>(options_.preload);
  while (Attempt* last = attempts_.last_early()) {
    const bool held = last->state == Attempt::State::kHeld && lease_.trusted(now);
    if (!held || *last->early_until <= wall(now) + window) return;
    give_back(now, *last, false, out);
  }
}

void Queue::claim_next(Instant now, Effects& out) {
  rate_at_ = ahead_at_ = Instant::max();
  const bool paused = paused_ && !mutant(Mutant::kIgnorePause);
  if (drain_ != Drain::kNone || paused || !lease_.trusted(now)) return;
  if (!listing_.complete() || !control_known_ || holds_all()) return;
  while (commits_.has_room(now)) {
    auto task = schedule_.next(wall(now));
    for (; task && hold_of(*task); task = schedule_.next(wall(now))) {
      schedule_.set_aside(task->key);
    }
    const bool due = task != nullptr;
    if (!due) task = next_ahead(now);
    if (!task) return;
    if (due && would_overtake(*task)) return;
    while (!may_claim(*task, due)) {
      if (!make_way(now, *task, out)) return;
    }
    if (!rate_.ready(now)) {
      rate_at_ = rate_.next();
      return;
    }
    rate_.take(now);
    schedule_.take(task->key);
    claim(now, task, due, out);
  }
}

void Queue::claim(Instant now, const std::shared_ptr<const Task>& task, bool due, Effects& out) {
  const TypePolicy& policy = *policy_of(*task);
  const bool orphan = is_orphan(*task);
  const bool never_started =
      orphan && task->stamp.claim && abandoned_claims_.contains(task->stamp.claim->nonce);

  refused_.erase(task->key);  // it is tried again
  Attempt& attempt = attempts_.add(AttemptId{++last_attempt_}, task);
  attempt.policy = policy;
  Stamp stamp = task->stamp;
  if (orphan && !never_started) {
    if (!mutant(Mutant::kDontCountLosses)) ++stamp.lost;
    out.emplace_back(Fact{Fact::Kind::kLost,
                          task->key,
                          stamp.attempt,
                          0,
                          stamp.claim ? stamp.claim->node : std::string{},
                          {}});
    const bool once = policy.delivery == Delivery::kAtMostOnce && !mutant(Mutant::kOnceAgain);
    if (once || stamp.lost >= options_.max_losses) {
      auto copy = std::make_shared<Task>(*task);
      copy->stamp = stamp;
      attempt.task = std::move(copy);
      return bury(now, attempt, "owner lost",
                  "the daemon that ran it died or lost its lease, " + std::to_string(stamp.lost) +
                      (stamp.lost == 1 ? " time" : " times"),
                  {}, out);
    }
    if (stamp.lost + 1 >= options_.max_losses) attempts_.mark_last_chance(attempt);
  }
  stamp.taken = true;
  if (!never_started) ++stamp.attempt;  // else its claim has counted it
  if (due) {
    stamp.retry_at.reset();
  } else {  // taskRetryAt stays, for whoever would have to take the task over before that
    attempts_.set_early(attempt, *due_of(*task));
  }
  std::string nonce = options_.identity + "-" + std::to_string(++last_claim_);
  if (mutant(Mutant::kNoNonce)) nonce = "claimed";
  stamp.claim = Claim{options_.node, lease_.session(), std::move(nonce), wall(now)};
  attempt.claimed_at = attempt.held_since = now;
  if (mutant(Mutant::kStartBeforeClaim)) {
    auto claimed = std::make_shared<Task>(*task);
    claimed->stamp = stamp;
    attempt.task = std::move(claimed);
    attempts_.set_state(attempt, Attempt::State::kHeld);
  }
  Rare<Claim> under = stamp.claim;
  commits_.add(now, {Purpose::kClaim,
                     RestampOp{task->key, task->modify_index, task->record, std::move(stamp),
                               task->flags, task->places},
                     std::move(under)});
}

}  // namespace lictor::core
