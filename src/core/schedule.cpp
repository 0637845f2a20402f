#include "core/schedule.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace lictor::core {
namespace {

WallTime order_time(const Task& task) {
  return task.execute_at ? *task.execute_at : task.task_time.value_or(WallTime::min());
}

}  // namespace

// As Order compares, without copying the key.
bool Schedule::ByOrder::operator()(const Task* a, const Task* b) const {
  const auto time_a = order_time(*a);
  const auto time_b = order_time(*b);
  return std::tie(time_a, a->create_index, a->key) < std::tie(time_b, b->create_index, b->key);
}

void Schedule::put(std::shared_ptr<const Task> task, bool startable) {
  remove(task->key);
  const Task* raw = task.get();
  Waiting waiting{std::move(task), startable, false};
  if (startable) {
    const auto due = due_of(*raw);
    if (due) {
      delayed_.emplace(*due, raw->key);
    } else {
      waiting.ready = true;
      ready_.insert(raw);
    }
  }
  if (raw->expire_at) expiring_.emplace(*raw->expire_at, raw->key);
  tasks_.emplace(raw->key, std::move(waiting));
}

bool Schedule::remove(std::string_view key) {
  const auto it = tasks_.find(key);
  if (it == tasks_.end()) return false;
  const Waiting waiting = it->second;  // keeps the key's bytes alive until all orders let it go
  tasks_.erase(it);
  drop_from_orders(waiting);
  return true;
}

void Schedule::drop_from_orders(const Waiting& waiting) {
  const Task& task = *waiting.task;
  if (waiting.ready) {
    ready_.erase(&task);
  } else if (const auto due = due_of(task); due && waiting.startable) {
    delayed_.erase({*due, task.key});
  }
  if (task.expire_at) expiring_.erase({*task.expire_at, task.key});
}

void Schedule::clear() {
  ready_.clear();
  delayed_.clear();
  expiring_.clear();
  tasks_.clear();
}

std::shared_ptr<const Task> Schedule::find(std::string_view key) const {
  const auto it = tasks_.find(key);
  return it == tasks_.end() ? nullptr : it->second.task;
}

void Schedule::advance(WallTime wall) {
  while (!delayed_.empty() && delayed_.begin()->first <= wall) {
    Waiting& waiting = tasks_.find(delayed_.begin()->second)->second;
    delayed_.erase(delayed_.begin());
    waiting.ready = true;
    ready_.insert(waiting.task.get());
  }
}

std::shared_ptr<const Task> Schedule::next(WallTime wall) {
  advance(wall);
  if (ready_.empty()) return nullptr;
  return tasks_.find((*ready_.begin())->key)->second.task;
}

std::shared_ptr<const Task> Schedule::next_expired(WallTime wall) const {
  if (expiring_.empty() || expiring_.begin()->first > wall) return nullptr;
  return tasks_.find(expiring_.begin()->second)->second.task;
}

std::optional<WallTime> Schedule::next_due() const {
  return delayed_.empty() ? std::nullopt : std::optional{delayed_.begin()->first};
}

std::optional<WallTime> Schedule::next_expiry() const {
  return expiring_.empty() ? std::nullopt : std::optional{expiring_.begin()->first};
}

}  // namespace lictor::core
