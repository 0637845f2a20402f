#include "core/attempts.h"

#include <utility>

#include "base/assert.h"

namespace lictor::core {
namespace {

constexpr std::size_t kMany = 64;

}  // namespace

Attempt& Attempts::add(AttemptId id, std::shared_ptr<const Task> task) {
  Attempt& added = by_id_.try_emplace(by_id_.end(), id)->second;  // ids grow
  added.id = id;
  added.task = std::move(task);
  ++counts_[static_cast<std::size_t>(added.state)];
  (void)first_claiming();  // those before it that are settled are let go
  claiming_.push_back(id);
  // Tasks are claimed in order, which their keys often follow.
  const auto place = by_key_.insert(by_key_.end(), &added);
  LICTOR_ASSERT(*place == &added);  // one owner a key, also within one daemon
  return added;
}

void Attempts::remove(const Attempt& attempt) {
  // Attempts end about as they were begun, and so in the order of their keys: no search for the
  // first.
  auto it = by_key_.begin();
  if (it != by_key_.end() && *it != &attempt)
    it = by_key_.find(std::string_view{attempt.task->key});
  LICTOR_ASSERT(it != by_key_.end() && *it == &attempt);
  leave_orders(**it);
  if (attempt.timeout_at != Instant::max()) timeouts_.erase({attempt.timeout_at, attempt.id});
  if (attempt.last_chance) --last_chances_;
  --counts_[static_cast<std::size_t>(attempt.state)];
  by_key_.erase(it);
  const AttemptId id = attempt.id;
  by_id_.erase(id);  // last: the attempt is in it
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

const Attempt* Attempts::find(std::string_view key) const {
  // As in remove(): often the first.
  if (!by_key_.empty() && (*by_key_.begin())->task->key == key) return *by_key_.begin();
  const auto it = by_key_.find(key);
  return it == by_key_.end() ? nullptr : *it;
}

Attempt* Attempts::find(std::string_view key) {
  return const_cast<Attempt*>(std::as_const(*this).find(key));
}

Attempt* Attempts::find(AttemptId id) {
  const auto it = by_id_.find(id);
  return it == by_id_.end() ? nullptr : &it->second;
}

void Attempts::set_state(Attempt& attempt, Attempt::State state) {
  leave_orders(attempt);
  if (state == Attempt::State::kHeld && attempt.early_until) {
    early_[*attempt.early_until].held.insert(&attempt);
    ++early_count_;
  } else if (state == Attempt::State::kHeld) {
    held_.insert(held_.end(), &attempt);
  } else {
    attempt.early_until.reset();
  }
  if (state != Attempt::State::kRunning) set_timeout(attempt, Instant::max());
  --counts_[static_cast<std::size_t>(attempt.state)];
  ++counts_[static_cast<std::size_t>(state)];
  attempt.state = state;
}

void Attempts::leave_orders(Attempt& attempt) {
  if (attempt.state == Attempt::State::kHeld) {
    if (!held_.empty() && *held_.begin() == &attempt) {  // which is the next to start
      held_.erase(held_.begin());
    } else {
      held_.erase(&attempt);
    }
  }
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
  const Attempt* claiming = in_order ? first_claiming() : nullptr;
  return claiming != nullptr && claiming->id < first->id ? nullptr : first;
}

const Attempt* Attempts::first_claiming() {
  for (; !claiming_.empty(); claiming_.pop_front()) {
    const Attempt* attempt = find(claiming_.front());
    if (attempt != nullptr && attempt->state == Attempt::State::kClaiming) return attempt;
  }
  return nullptr;
}

Attempt* Attempts::next_timed_out(Instant now) {
  if (timeouts_.empty() || timeouts_.begin()->first > now) return nullptr;
  return find(timeouts_.begin()->second);
}

Instant Attempts::next_timeout() const {
  return timeouts_.empty() ? Instant::max() : timeouts_.begin()->first;
}

}  // namespace lictor::core
