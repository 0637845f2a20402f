// Why a task is not running: what claim_next() and start_held() go by, in words to be.

#include <utility>

#include "core/queue.h"

namespace lictor::core {

using Kind = Reason::Kind;

std::vector<Reason> Queue::why(Instant now, std::string_view key) const {
  std::vector<Reason> reasons;
  if (lease_.state() != Lease::State::kLeading || !lease_.trusted(now)) {
    reasons.push_back({Kind::kNotLeading});
    if (!lease_.holding()) return reasons;
  }
  if (const Attempt* attempt = attempts_.find(key)) {
    why_attempt(now, *attempt, reasons);
  } else if (const auto it = left_alone_.find(key); it != left_alone_.end()) {
    reasons.push_back({.kind = it->second.why, .text = it->second.text});
  } else if (burying_.contains(key)) {
    reasons.push_back({Kind::kBurying});
  } else if (const auto task = schedule_.find(key)) {
    why_waiting(now, *task, reasons);
  } else if (const auto due = schedule_.distant_due(key)) {
    why_none(reasons);
    reasons.push_back({.kind = Kind::kNotDue, .until = due});
  } else {
    reasons.push_back({listing_.behind() ? Kind::kReading : Kind::kUnknownTask});
  }
  return reasons;
}

void Queue::why_attempt(Instant now, const Attempt& attempt, std::vector<Reason>& reasons) const {
  switch (attempt.state) {
    case Attempt::State::kClaiming:
      reasons.push_back({Kind::kClaiming});
      break;
    case Attempt::State::kHeld:
      if (drain_ != Drain::kNone) reasons.push_back({Kind::kDraining});
      if (paused_) reasons.push_back({.kind = Kind::kPaused, .text = paused_by_});
      if (attempts_.is_early(attempt)) {
        reasons.push_back({.kind = Kind::kHeld, .until = attempt.early_until});
        break;
      }
      reasons.push_back({.kind = Kind::kHeld, .key = any_running(), .count = options_.concurrency});
      break;
    case Attempt::State::kRunning: {
      static constexpr const char* kStops[] = {"", "it was withdrawn", "it timed out",
                                               "the leader gives up the lead", "the lease ran out"};
      reasons.push_back({.kind = Kind::kRunning,
                         .text = kStops[static_cast<std::size_t>(attempt.stop)],
                         .count = attempt.task->stamp.attempt,
                         .since = wall(attempt.started_at),
                         .attempt = attempt.id});
      break;
    }
    case Attempt::State::kSettling:
      reasons.push_back({Kind::kSettling});
      break;
  }
  if (const auto until = commits_.held_until();
      until && attempt.state != Attempt::State::kRunning) {
    reasons.push_back({.kind = Kind::kStoreTrouble, .until = wall(std::max(*until, now))});
  }
}

// What holds whatever waits.
void Queue::why_none(std::vector<Reason>& reasons) const {
  if (drain_ != Drain::kNone) reasons.push_back({Kind::kDraining});
  if (paused_) reasons.push_back({.kind = Kind::kPaused, .text = paused_by_});
  if (!listing_.complete() || !control_known_) reasons.push_back({Kind::kReading});
}

void Queue::why_waiting(Instant now, const Task& task, std::vector<Reason>& reasons) const {
  const std::size_t before = reasons.size();
  why_none(reasons);
  const bool startable = schedule_.startable(task.key);
  if (!startable) reasons.push_back({.kind = Kind::kNoExecutor, .text = task.type});
  if (const auto* hold = startable ? hold_of(task) : nullptr) {
    reasons.push_back(
        {.kind = Kind::kCannotStart, .text = hold->error, .until = wall(hold->until)});
  }
  const auto due = due_of(task);
  const bool waits_for_time = due && *due > wall(now);
  if (waits_for_time) {
    const auto refused = refused_.find(task.key);
    if (refused != refused_.end()) {
      reasons.push_back({.kind = Kind::kRefused, .text = refused->second, .until = due});
    } else if (task.stamp.retry_at && *task.stamp.retry_at == *due) {
      reasons.push_back({.kind = Kind::kBackoff,
                         .text = task.stamp.error,
                         .count = task.stamp.attempt,
                         .until = due});
    } else {
      reasons.push_back({.kind = Kind::kNotDue, .until = due});
    }
  }
  if (!startable) return;  // it is in nobody's order
  std::string first;
  if (std::string holder = schedule_.lane_holder(task); !holder.empty()) {
    const std::size_t count = schedule_.count_before(task, first);
    reasons.push_back({Kind::kSerial, std::move(holder), task.serial_key, count, {}, {}});
  } else if (!waits_for_time) {
    if (const std::size_t count = schedule_.count_before(task, first); count != 0) {
      reasons.push_back({.kind = Kind::kOrder, .key = first, .count = count});
    }
  }
  if (waits_for_time) return;
  why_busy(now, task, reasons);
  if (const auto until = commits_.held_until()) {
    reasons.push_back({.kind = Kind::kStoreTrouble, .until = wall(std::max(*until, now))});
  }
  if (reasons.size() == before) reasons.push_back({Kind::kNext});
}

// What may_claim() goes by.
void Queue::why_busy(Instant now, const Task& task, std::vector<Reason>& reasons) const {
  using State = Attempt::State;
  const std::size_t busy = attempts_.count(State::kClaiming) + attempts_.count(State::kHeld) +
                           attempts_.count(State::kRunning) - attempts_.early();
  const std::size_t room = options_.concurrency + ahead_of_slots(task);
  if ((is_last_chance(task) && busy != 0) || attempts_.has_last_chance()) {
    reasons.push_back({.kind = Kind::kLastChance, .key = any_running()});
  } else if (busy >= room) {
    reasons.push_back(
        {.kind = Kind::kConcurrency, .key = any_running(), .count = options_.concurrency});
  }
  if (attempts_.count(State::kSettling) >= options_.max_unacked) {
    reasons.push_back({.kind = Kind::kUnacked, .count = options_.max_unacked});
  }
  if (!rate_.ready(now)) reasons.push_back({.kind = Kind::kRate, .until = wall(rate_.next())});
}

std::string Queue::any_running() const {
  std::string key;
  attempts_.for_each([&](const Attempt& attempt) {
    if (key.empty() && attempt.state == Attempt::State::kRunning) key = attempt.task->key;
  });
  return key;
}

}  // namespace lictor::core
