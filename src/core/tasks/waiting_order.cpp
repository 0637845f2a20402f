#include "core/tasks/waiting_order.h"

#include "core/reason.h"

namespace lictor::core {
namespace {

// expireAt is about the first start: a task that has begun goes on to its end.
bool can_expire(const TaskEntry& entry) {
  return entry.state == TaskState::kWaiting && entry.task->expire_at &&
         entry.task->stamp.attempt == 0 && !has_run(entry.task->stamp);
}

bool is_held(const TaskEntry& entry) {
  return entry.state == TaskState::kUnread && entry.task != nullptr;
}

bool is_delayed(const TaskEntry& entry) {
  return entry.lacks(Lack::kTime) || entry.lacks(Lack::kBackoff) || entry.lacks(Lack::kStore);
}

// New entries usually come last, claimed ones are usually the first.
template <class Set>
void insert(Set& set, TaskEntry& entry) {
  set.insert(set.end(), &entry);
}
template <class Set>
void erase(Set& set, TaskEntry& entry) {
  if (!set.empty() && *set.begin() == &entry) {
    set.erase(set.begin());
  } else {
    set.erase(&entry);
  }
}

}  // namespace

bool WaitingOrder::holds_lane(const TaskEntry& entry) const {
  if (!entry.task || entry.task->serial_key.empty()) return false;
  if (entry.state != TaskState::kWaiting) return is_ours(entry.state);
  switch (entry.lack) {
    case Lack::kStore:
    case Lack::kSlot:
      return true;
    case Lack::kBackoff:
    case Lack::kNothing:
    case Lack::kSerialKey:
      return entry.task->stamp.taken ||
             (options_.serialize_retries && entry.task->stamp.attempt != 0);
    default:
      return false;
  }
}

// Calls change(set) for each order that holds the entry in its present state.
template <class Change>
void WaitingOrder::for_each_order_of(const TaskEntry& entry, const Change& change) {
  if (entry.lacks(Lack::kNothing)) change(ready_);
  if (entry.state == TaskState::kDistant) change(distant_);
  if (entry.state == TaskState::kUnreadable) change(unreadable_);
  if (is_held(entry)) change(held_);
  if (is_delayed(entry)) change(delayed_);
  if (can_expire(entry)) change(expiring_);
}

void WaitingOrder::enter(TaskEntry& entry) {
  for_each_order_of(entry, [&](auto& order) { insert(order, entry); });
  if (holds_lane(entry)) lanes_[entry.task->serial_key].holders.insert(&entry);
  if (entry.lacks(Lack::kSerialKey)) {
    lanes_[entry.task->serial_key].blocked.insert(&entry);
    ++blocked_;
  }
}

void WaitingOrder::leave(TaskEntry& entry) {
  for_each_order_of(entry, [&](auto& order) { erase(order, entry); });
  if (!entry.task || entry.task->serial_key.empty()) return;
  const auto lane = lanes_.find(entry.task->serial_key);
  if (lane == lanes_.end()) return;
  if (holds_lane(entry)) lane->second.holders.erase(&entry);
  if (entry.lacks(Lack::kSerialKey)) blocked_ -= lane->second.blocked.erase(&entry);
  drop_if_empty(lane);
}

void WaitingOrder::drop_if_empty(Lanes::iterator lane) {
  if (lane->second.holders.empty() && lane->second.blocked.empty()) lanes_.erase(lane);
}

void WaitingOrder::clear() {
  ready_.clear();
  delayed_.clear();
  distant_.clear();
  expiring_.clear();
  unreadable_.clear();
  held_.clear();
  lanes_.clear();
  blocked_ = 0;
}

const TaskEntry* WaitingOrder::lane_holder(const TaskEntry& entry) const {
  if (!entry.task || entry.task->serial_key.empty()) return nullptr;
  const auto lane = lanes_.find(entry.task->serial_key);
  if (lane == lanes_.end()) return nullptr;
  const TaskEntry* holder = front(lane->second.holders);
  return holder == &entry ? nullptr : holder;
}

TaskEntry* WaitingOrder::unblocked(const std::string& serial_key) const {
  const auto lane = lanes_.find(serial_key);
  if (lane == lanes_.end()) return nullptr;
  TaskEntry* next = front(lane->second.holders);
  if (next == nullptr) next = front(lane->second.blocked);
  return next != nullptr && next->lacks(Lack::kSerialKey) ? next : nullptr;
}

TaskEntry* WaitingOrder::first_blocked() const {
  TaskEntry* first = nullptr;
  for (const auto& [serial_key, lane] : lanes_) {
    TaskEntry* const next = front(lane.blocked);
    if (next != nullptr && (first == nullptr || ByStart{}(next, first))) first = next;
  }
  return first;
}

bool WaitingOrder::blocked_before(const std::string& serial_key, const TaskEntry& entry) const {
  const auto lane = lanes_.find(serial_key);
  return lane != lanes_.end() && !lane->second.blocked.empty() &&
         ByStart{}(*lane->second.blocked.begin(), &entry);
}

std::size_t WaitingOrder::count_before(const TaskEntry& entry, std::string& first) const {
  const ByStart before;
  std::size_t count = 0;
  const TaskEntry* next = nullptr;
  const auto look = [&](const auto& entries) {
    for (const TaskEntry* other : entries) {
      if (count == Reason::kMostCounted || !before(other, &entry)) break;
      ++count;
      if (next == nullptr || before(other, next)) next = other;
    }
  };
  look(ready_);
  if (const auto lane = lanes_.find(entry.task->serial_key); lane != lanes_.end()) {
    look(lane->second.blocked);
  }
  if (next != nullptr) first = next->key;
  return count;
}

}  // namespace lictor::core
