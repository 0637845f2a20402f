#include "core/attempts.h"

#include <utility>

#include "base/assert.h"

namespace lictor::core {
namespace {

constexpr std::size_t kMany = 64;

}  // namespace

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
  many_due_.clear();
  early_count_ = many_due_count_ = 0;
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
  leave_orders(attempt);
  if (state == Attempt::State::kHeld && attempt.early_until) {
    early_[*attempt.early_until].held.insert(&attempt);
    ++early_count_;
  } else if (state == Attempt::State::kHeld) {
    held_.insert(&attempt);
  } else {
    attempt.early_until.reset();
  }
  if (state != Attempt::State::kRunning) set_timeout(attempt, Instant::max());
  if (attempt.state == Attempt::State::kClaiming) claiming_.erase(attempt.id);
  --counts_[static_cast<std::size_t>(attempt.state)];
  ++counts_[static_cast<std::size_t>(state)];
  attempt.state = state;
}

void Attempts::leave_orders(Attempt& attempt) {
  held_.erase(&attempt);
  if (!attempt.early_until) return;
  if (const auto it = early_.find(*attempt.early_until); it != early_.end()) {
    Early& group = it->second;
    early_count_ -= group.claiming.erase(&attempt) + group.held.erase(&attempt);
    if (group.claiming.empty() && group.held.empty()) early_.erase(it);
  }
  if (const auto it = many_due_.find(*attempt.early_until); it != many_due_.end()) {
    many_due_count_ -= it->second.erase(&attempt);
    if (it->second.empty()) many_due_.erase(it);
  }
}

void Attempts::set_early(Attempt& attempt, WallTime due) {
  LICTOR_ASSERT(attempt.state == Attempt::State::kClaiming);
  attempt.early_until = due;
  early_[due].claiming.insert(&attempt);
  ++early_count_;
}

bool Attempts::is_early(const Attempt& attempt) const {
  if (!attempt.early_until) return false;
  const auto it = early_.find(*attempt.early_until);
  if (it == early_.end()) return false;
  auto* const member = const_cast<Attempt*>(&attempt);
  return it->second.claiming.contains(member) || it->second.held.contains(member);
}

void Attempts::advance(WallTime wall) {
  while (!early_.empty() && early_.begin()->first <= wall) {
    auto node = early_.extract(early_.begin());
    Early& group = node.mapped();
    early_count_ -= group.claiming.size() + group.held.size();
    for (Attempt* attempt : group.claiming) attempt->early_until.reset();
    if (group.held.size() > kMany) {
      many_due_count_ += group.held.size();
      InOrder& due = many_due_[node.key()];
      if (due.empty()) {
        due = std::move(group.held);
      } else {
        due.merge(group.held);  // the clock was set back in between
      }
      continue;
    }
    for (Attempt* attempt : group.held) {
      attempt->early_until.reset();
      held_.insert(attempt);
    }
  }
}

std::optional<WallTime> Attempts::next_due() const {
  return early_.empty() ? std::nullopt : std::optional{early_.begin()->first};
}

Attempt* Attempts::last_early() const {
  if (early_.empty()) return nullptr;
  const Early& last = early_.rbegin()->second;
  return last.claiming.empty() ? *last.held.rbegin() : *last.claiming.begin();
}

void Attempts::set_timeout(Attempt& attempt, Instant at) {
  if (attempt.timeout_at != Instant::max()) timeouts_.erase({attempt.timeout_at, attempt.id});
  if (at != Instant::max()) timeouts_.emplace(at, attempt.id);
  attempt.timeout_at = at;
}

void Attempts::mark_last_chance(Attempt& attempt) {
  if (!std::exchange(attempt.last_chance, true)) ++last_chances_;
}

Attempt* Attempts::next_held(bool in_order) {
  Attempt* first = held_.empty() ? nullptr : *held_.begin();
  for (const auto& [due, group] : many_due_) {
    if (first == nullptr || ByOrder{}(*group.begin(), first)) first = *group.begin();
  }
  if (first == nullptr) return nullptr;
  const bool waits = in_order && !claiming_.empty() && *claiming_.begin() < first->id;
  return waits ? nullptr : first;
}

Attempt* Attempts::next_timed_out(Instant now) {
  if (timeouts_.empty() || timeouts_.begin()->first > now) return nullptr;
  return find(timeouts_.begin()->second);
}

Instant Attempts::next_timeout() const {
  return timeouts_.empty() ? Instant::max() : timeouts_.begin()->first;
}

}  // namespace lictor::core
