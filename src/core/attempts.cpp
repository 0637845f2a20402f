#include "core/attempts.h"

#include <utility>

#include "base/assert.h"

namespace lictor::core {

Attempt& Attempts::add(AttemptId id, std::shared_ptr<const Task> task) {
  auto attempt = std::make_unique<Attempt>();
  attempt->id = id;
  attempt->task = std::move(task);
  Attempt& added = *attempt;
  ++counts_[static_cast<std::size_t>(added.state)];
  by_id_.emplace(id, &added);
  claiming_.insert(id);
  const bool fresh = by_key_.emplace(added.task->key, std::move(attempt)).second;
  LICTOR_ASSERT(fresh);  // one owner a key, also within one daemon
  return added;
}

void Attempts::remove(const Attempt& attempt) {
  const auto it = by_key_.find(attempt.task->key);
  LICTOR_ASSERT(it != by_key_.end() && it->second.get() == &attempt);
  leave_orders(*it->second);
  if (attempt.timeout_at != Instant::max()) timeouts_.erase({attempt.timeout_at, attempt.id});
  if (attempt.last_chance) --last_chances_;
  --counts_[static_cast<std::size_t>(attempt.state)];
  by_id_.erase(attempt.id);
  claiming_.erase(attempt.id);
  by_key_.erase(it);
}

void Attempts::clear() {
  by_key_.clear();
  by_id_.clear();
  claiming_.clear();
  held_.clear();
  early_.clear();
  timeouts_.clear();
  for (std::size_t& count : counts_) count = 0;
  last_chances_ = 0;
}

Attempt* Attempts::find(std::string_view key) {
  const auto it = by_key_.find(key);
  return it == by_key_.end() ? nullptr : it->second.get();
}

const Attempt* Attempts::find(std::string_view key) const {
  const auto it = by_key_.find(key);
  return it == by_key_.end() ? nullptr : it->second.get();
}

Attempt* Attempts::find(AttemptId id) {
  const auto it = by_id_.find(id);
  return it == by_id_.end() ? nullptr : it->second;
}

void Attempts::set_state(Attempt& attempt, Attempt::State state) {
  if (state != Attempt::State::kHeld) {
    leave_orders(attempt);
  } else if (!attempt.early_until) {
    held_.emplace(order_of(*attempt.task), &attempt);
  }
  if (state != Attempt::State::kRunning) set_timeout(attempt, Instant::max());
  if (attempt.state == Attempt::State::kClaiming) claiming_.erase(attempt.id);
  --counts_[static_cast<std::size_t>(attempt.state)];
  ++counts_[static_cast<std::size_t>(state)];
  attempt.state = state;
}

void Attempts::leave_orders(Attempt& attempt) {
  if (attempt.early_until) {
    early_.erase({*attempt.early_until, attempt.id});
    attempt.early_until.reset();
  } else if (attempt.state == Attempt::State::kHeld) {
    held_.erase(order_of(*attempt.task));
  }
}

void Attempts::set_early(Attempt& attempt, WallTime due) {
  attempt.early_until = due;
  early_.emplace(std::pair{due, attempt.id}, &attempt);
}

void Attempts::advance(WallTime wall) {
  while (!early_.empty() && early_.begin()->first.first <= wall) {
    Attempt& attempt = *early_.begin()->second;
    early_.erase(early_.begin());
    attempt.early_until.reset();
    if (attempt.state == Attempt::State::kHeld) held_.emplace(order_of(*attempt.task), &attempt);
  }
}

std::optional<WallTime> Attempts::next_due() const {
  return early_.empty() ? std::nullopt : std::optional{early_.begin()->first.first};
}

Attempt* Attempts::last_early() { return early_.empty() ? nullptr : early_.rbegin()->second; }

void Attempts::set_timeout(Attempt& attempt, Instant at) {
  if (attempt.timeout_at != Instant::max()) timeouts_.erase({attempt.timeout_at, attempt.id});
  if (at != Instant::max()) timeouts_.emplace(at, attempt.id);
  attempt.timeout_at = at;
}

void Attempts::mark_last_chance(Attempt& attempt) {
  if (!std::exchange(attempt.last_chance, true)) ++last_chances_;
}

Attempt* Attempts::next_held() {
  if (held_.empty()) return nullptr;
  Attempt* first = held_.begin()->second;
  return claiming_.empty() || first->id < *claiming_.begin() ? first : nullptr;
}

Attempt* Attempts::next_timed_out(Instant now) {
  if (timeouts_.empty() || timeouts_.begin()->first > now) return nullptr;
  return find(timeouts_.begin()->second);
}

Instant Attempts::next_timeout() const {
  return timeouts_.empty() ? Instant::max() : timeouts_.begin()->first;
}

}  // namespace lictor::core
