#include "core/tasks/claimed_order.h"

namespace lictor::core {
namespace {

bool is_being_claimed(const TaskEntry& entry) {
  return entry.state == TaskState::kClaiming || entry.state == TaskState::kChecking;
}

bool can_time_out(const TaskEntry& entry) {
  return entry.state == TaskState::kRunning && entry.attempt->timeout_at != Instant::max();
}

}  // namespace

void ClaimedOrder::enter(TaskEntry& entry) {
  const bool claiming = is_being_claimed(entry);
  const bool claimed = entry.state == TaskState::kClaimed;
  if (claiming) claiming_.insert(claiming_.end(), &entry);
  if (can_time_out(entry)) timeouts_.insert(&entry);
  if ((claiming || claimed) && is_early(entry)) {
    early_.insert(early_.end(), &entry);
  } else if (claimed) {
    claimed_.insert(claimed_.end(), &entry);
  }
}

void ClaimedOrder::leave(TaskEntry& entry) {
  const bool claiming = is_being_claimed(entry);
  const bool claimed = entry.state == TaskState::kClaimed;
  if (claiming) claiming_.erase(&entry);
  if (can_time_out(entry)) timeouts_.erase(&entry);
  if ((claiming || claimed) && is_early(entry)) {
    early_.erase(&entry);
  } else if (claimed && *claimed_.begin() == &entry) {  // usually the next to start
    claimed_.erase(claimed_.begin());
  } else if (claimed) {
    claimed_.erase(&entry);
  }
}

void ClaimedOrder::clear() { *this = {}; }

// Tasks due at one instant come in the order of starting: each goes to the end.
void ClaimedOrder::advance(WallTime wall) {
  while (next_due().value_or(WallTime::max()) <= wall) {
    auto node = early_.extract(early_.begin());
    TaskEntry* const entry = node.value();
    entry->attempt->early_until.reset();
    if (entry->state == TaskState::kClaimed) claimed_.insert(claimed_.end(), std::move(node));
  }
}

std::optional<WallTime> ClaimedOrder::next_due() const {
  return early_.empty() ? std::nullopt : (*early_.begin())->attempt->early_until;
}

TaskEntry* ClaimedOrder::next_to_start(bool in_order) const {
  if (claimed_.empty()) return nullptr;
  TaskEntry* const first = *claimed_.begin();
  if (!in_order || claiming_.empty()) return first;
  return (*claiming_.begin())->attempt->id < first->attempt->id ? nullptr : first;
}

TaskEntry* ClaimedOrder::next_timed_out(Instant now) const {
  return next_timeout() > now ? nullptr : *timeouts_.begin();
}

Instant ClaimedOrder::next_timeout() const {
  return timeouts_.empty() ? Instant::max() : (*timeouts_.begin())->attempt->timeout_at;
}

}  // namespace lictor::core
