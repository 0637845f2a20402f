#include "core/tasks/executor_slots.h"

#include "core/reason.h"

namespace lictor::core {
namespace {

bool takes_slot(TaskState state) {
  return (is_ours(state) && state != TaskState::kEnding) || has_job(state);
}

}  // namespace

bool ExecutorSlots::concerns(const TaskEntry& entry) const {
  if (entry.lacks(Lack::kSlot)) return true;
  if (!takes_slot(entry.state)) return false;
  const TypePolicy* policy = options_.policy_of(entry.task->type);
  return policy != nullptr && policy->concurrency != 0;
}

void ExecutorSlots::enter(TaskEntry& entry) {
  if (!concerns(entry)) return;
  const std::string_view name = options_.executor_of(entry.task->type);
  auto it = executors_.find(name);
  if (it == executors_.end()) it = executors_.try_emplace(std::string{name}).first;
  if (entry.lacks(Lack::kSlot)) {
    it->second.limited[entry.partition].insert(&entry);
  } else {
    ++it->second.taken;
    it->second.running += has_job(entry.state) ? 1 : 0;
  }
}

void ExecutorSlots::leave(TaskEntry& entry) {
  if (!concerns(entry)) return;
  const auto it = executors_.find(options_.executor_of(entry.task->type));
  if (entry.lacks(Lack::kSlot)) {
    const auto limited = it->second.limited.find(entry.partition);
    limited->second.erase(&entry);
    if (limited->second.empty()) it->second.limited.erase(limited);
  } else {
    --it->second.taken;
    it->second.running -= has_job(entry.state) ? 1 : 0;
  }
  if (it->second.taken == 0 && it->second.limited.empty()) executors_.erase(it);
}

// A limit as high as the queue's does not bind: the queue's own limit does, and it alone counts
// claims ahead.
std::size_t ExecutorSlots::limit_of(const Task& task) const {
  const TypePolicy* policy = options_.policy_of(task.type);
  return policy != nullptr && policy->concurrency < options_.concurrency ? policy->concurrency : 0;
}

const ExecutorSlots::Executor* ExecutorSlots::find(const Task& task) const {
  const auto it = executors_.find(options_.executor_of(task.type));
  return it == executors_.end() ? nullptr : &it->second;
}

bool ExecutorSlots::is_full(const Task& task) const {
  const std::size_t limit = limit_of(task);
  const Executor* executor = limit == 0 ? nullptr : find(task);
  return executor != nullptr && executor->taken >= limit;
}

bool ExecutorSlots::is_at_limit(const Task& task) const {
  const std::size_t limit = limit_of(task);
  const Executor* executor = limit == 0 ? nullptr : find(task);
  return executor != nullptr && executor->running >= limit;
}

std::size_t ExecutorSlots::count_before(const TaskEntry& entry, std::string& first) const {
  const Executor* executor = find(*entry.task);
  if (executor == nullptr) return 0;
  std::size_t count = 0;
  const TaskEntry* next = nullptr;
  for (const auto& [partition, limited] : executor->limited) {
    for (const TaskEntry* other : limited) {
      if (count == Reason::kMostCounted || !ByStart{}(other, &entry)) break;
      ++count;
      if (next == nullptr || ByStart{}(other, next)) next = other;
    }
  }
  if (next != nullptr) first = next->key;
  return count;
}

}  // namespace lictor::core
