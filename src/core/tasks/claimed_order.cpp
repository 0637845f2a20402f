#include "core/tasks/claimed_order.h"

namespace lictor::core {
namespace {

constexpr std::size_t kMany = 64;

bool is_being_claimed(const TaskEntry& entry) {
  return entry.state == TaskState::kClaiming || entry.state == TaskState::kChecking;
}

bool can_time_out(const TaskEntry& entry) {
  return is_running(entry.state) && entry.attempt->timeout_at != Instant::max();
}

}  // namespace

void ClaimedOrder::enter(TaskEntry& entry) {
  if (!entry.attempt) return;
  const bool claiming = is_being_claimed(entry);
  const bool claimed = entry.state == TaskState::kClaimed;
  if (claiming) claiming_.insert(claiming_.end(), &entry);
  if (can_time_out(entry)) timeouts_.insert(&entry);
  if (entry.attempt->early_until && (claiming || claimed)) {
    Early& group = early_[*entry.attempt->early_until];
    if (claiming) {
      group.claiming.insert(&entry);
    } else {
      group.claimed.insert(&entry);
    }
    ++early_count_;
  } else if (claimed) {
    claimed_.insert(claimed_.end(), &entry);
  }
}

void ClaimedOrder::leave(TaskEntry& entry) {
  if (!entry.attempt) return;
  if (is_being_claimed(entry)) claiming_.erase(&entry);
  if (can_time_out(entry)) timeouts_.erase(&entry);
  if (entry.state == TaskState::kClaimed) {
    if (!claimed_.empty() && *claimed_.begin() == &entry) {  // which is the next to start
      claimed_.erase(claimed_.begin());
    } else {
      claimed_.erase(&entry);
    }
  }
  if (!entry.attempt->early_until) return;
  if (const auto it = early_.find(*entry.attempt->early_until); it != early_.end()) {
    Early& group = it->second;
    early_count_ -= group.claiming.erase(&entry) + group.claimed.erase(&entry);
    if (group.claiming.empty() && group.claimed.empty()) early_.erase(it);
  }
  if (const auto it = many_due_.find(*entry.attempt->early_until); it != many_due_.end()) {
    many_due_count_ -= it->second.erase(&entry);
    if (it->second.empty()) many_due_.erase(it);
  }
}

void ClaimedOrder::clear() { *this = {}; }

bool ClaimedOrder::is_early(const TaskEntry& entry) const {
  if (!entry.attempt || !entry.attempt->early_until) return false;
  const auto it = early_.find(*entry.attempt->early_until);
  if (it == early_.end()) return false;
  auto* const member = const_cast<TaskEntry*>(&entry);
  return it->second.claiming.contains(member) || it->second.claimed.contains(member);
}

void ClaimedOrder::advance(WallTime wall) {
  while (!early_.empty() && early_.begin()->first <= wall) {
    auto node = early_.extract(early_.begin());
    Early& group = node.mapped();
    early_count_ -= group.claiming.size() + group.claimed.size();
    for (TaskEntry* entry : group.claiming) entry->attempt->early_until.reset();
    if (group.claimed.size() > kMany) {
      many_due_count_ += group.claimed.size();
      InOrder& due = many_due_[node.key()];
      if (due.empty()) {
        due.swap(group.claimed);
      } else {
        due.merge(group.claimed);  // the clock was set back in between
      }
      continue;
    }
    for (TaskEntry* entry : group.claimed) {
      entry->attempt->early_until.reset();
      claimed_.insert(entry);
    }
  }
}

std::optional<WallTime> ClaimedOrder::next_due() const {
  return early_.empty() ? std::nullopt : std::optional{early_.begin()->first};
}

TaskEntry* ClaimedOrder::last_early() const {
  if (early_.empty()) return nullptr;
  const Early& last = early_.rbegin()->second;
  return last.claiming.empty() ? *last.claimed.rbegin() : *last.claiming.begin();
}

TaskEntry* ClaimedOrder::next_to_start(bool in_order) const {
  TaskEntry* first = claimed_.empty() ? nullptr : *claimed_.begin();
  for (const auto& [due, group] : many_due_) {
    if (first == nullptr || ByStart{}(*group.begin(), first)) first = *group.begin();
  }
  if (first == nullptr || !in_order || claiming_.empty()) return first;
  return (*claiming_.begin())->attempt->id < first->attempt->id ? nullptr : first;
}

TaskEntry* ClaimedOrder::next_timed_out(Instant now) const {
  return next_timeout() > now ? nullptr : *timeouts_.begin();
}

Instant ClaimedOrder::next_timeout() const {
  return timeouts_.empty() ? Instant::max() : (*timeouts_.begin())->attempt->timeout_at;
}

}  // namespace lictor::core
