// A transition is leave(), change, enter(): leave() takes the entry out of every order and count,
// enter() puts it where its new state belongs. So no order holds a stale entry.

#include "core/tasks/task_table.h"

#include <memory>

#include "base/assert.h"

namespace lictor::core {

TaskEntry* TaskTable::find(AttemptId id) const {
  const auto it = ours_.find(id);
  return it == ours_.end() ? nullptr : it->second;
}

TaskEntry& TaskTable::obtain(std::string_view key) {
  const auto place = keys_.lower_bound(key);
  if (place != keys_.end() && (*place)->key == key) return **place;
  auto entry = std::make_unique<TaskEntry>();
  entry->key = key;
  ++discovered_;
  ++counts_[static_cast<std::size_t>(entry->state)];
  return **keys_.insert(place, std::move(entry));
}

// Returns the serialKey that became free, or "".
std::string TaskTable::leave(TaskEntry& entry) {
  const bool frees = entry.lacks(Lack::kNothing) || waiting_.holds_lane(entry);
  waiting_.leave(entry);
  claimed_.leave(entry);
  slots_.leave(entry);
  if (entry.attempt) {
    if (entry.attempt->last_chance) --last_chances_;
    if (entry.attempt->returns) --returning_;
  }
  --counts_[static_cast<std::size_t>(entry.state)];
  if (has_lack(entry.state)) --lacks_[static_cast<std::size_t>(entry.lack)];
  return frees && entry.task ? entry.task->serial_key : std::string{};
}

// A task stays among ours_ from its claim to its end, so most transitions only find it there.
void TaskTable::enter(TaskEntry& entry) {
  if (is_ours(entry.state) || entry.state == TaskState::kLeftover) {
    ours_.try_emplace(ours_.end(), entry.attempt->id, &entry);
    if (entry.attempt->last_chance) ++last_chances_;
    if (entry.attempt->returns) ++returning_;
  } else {
    drop_attempt(entry);
    if (entry.notes) entry.notes->newer_index = 0;
  }
  waiting_.enter(entry);
  claimed_.enter(entry);
  slots_.enter(entry);
  ++counts_[static_cast<std::size_t>(entry.state)];
  if (has_lack(entry.state)) ++lacks_[static_cast<std::size_t>(entry.lack)];
}

void TaskTable::drop_attempt(TaskEntry& entry) {
  if (!entry.attempt) return;
  ours_.erase(entry.attempt->id);
  entry.attempt.reset();
}

// Wakes one blocked task only: each end would otherwise wake all, and block all but one again.
// Called also when the changed entry still holds the key, since another holder may now come before
// it.
void TaskTable::settle_lane(const std::string& lane) {
  if (lane.empty()) return;
  if (TaskEntry* next = waiting_.unblocked(lane)) wait(*next, Lack::kNothing);
}

TaskTable::Busy TaskTable::busy_in(std::uint32_t partition) const {
  Busy busy;
  for_each_ours([&](const TaskEntry& entry) {
    if (entry.partition != partition) return;
    if (entry.state == TaskState::kRunning) ++busy.running;
    ++(entry.state == TaskState::kLeftover ? busy.leftovers : busy.ours);
  });
  return busy;
}

void TaskTable::bury(TaskEntry& entry, std::uint64_t index, Instant now) {
  update(entry, TaskState::kDeleted, [&](TaskEntry& e) {
    e.index = index;
    e.task.reset();
    e.notes.reset();
  });
  ++entry.tombstones;
  deletions_.emplace_back(now, &entry);
}

void TaskTable::forget_deleted_before(Instant time) {
  for (; !deletions_.empty() && deletions_.front().first < time; deletions_.pop_front()) {
    TaskEntry& entry = *deletions_.front().second;
    if (--entry.tombstones == 0 && entry.state == TaskState::kDeleted) erase(entry);
  }
}

void TaskTable::erase(TaskEntry& entry) {
  static_cast<void>(leave(entry));
  drop_attempt(entry);
  keys_.erase(keys_.find(&entry));
}

void TaskTable::clear() {
  std::erase_if(keys_, [](const auto& entry) { return entry->state != TaskState::kLeftover; });
  waiting_.clear();
  claimed_.clear();
  slots_.clear();
  ours_.clear();
  deletions_.clear();
  counts_ = {};
  lacks_ = {};
  last_chances_ = returning_ = 0;
  for_each([&](TaskEntry& leftover) {
    leftover.tombstones = 0;
    enter(leftover);
  });
}

void TaskTable::erase_leftover(TaskEntry& entry) {
  LICTOR_ASSERT(entry.state == TaskState::kLeftover && entry.tombstones == 0);
  erase(entry);
}

}  // namespace lictor::core
