#pragma once

// Distant tasks, the nearest first: 8 bytes each, where the nodes of a std::set take 48. Each entry
// stores its position, so that it can be removed from the middle.

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

#include "core/tasks/task_entry.h"

namespace lictor::core {

/// A binary heap of entries by due time, ties by key. Owns nothing.
class DueHeap {
 public:
  [[nodiscard]] TaskEntry* front() const { return entries_.empty() ? nullptr : entries_.front(); }

  void push(TaskEntry& entry) {
    entries_.push_back(&entry);
    rise(entries_.size() - 1);
  }

  void erase(TaskEntry& entry) {
    const std::size_t at = entry.heap_at;
    TaskEntry* const last = entries_.back();
    entries_.pop_back();
    if (last == &entry) return;
    set(at, last);
    rise(at);
    sink(last->heap_at);
  }

  void clear() { entries_.clear(); }

 private:
  static bool before(const TaskEntry* a, const TaskEntry* b) {
    return std::tie(a->due, a->key) < std::tie(b->due, b->key);
  }
  void set(std::size_t at, TaskEntry* entry) {
    entries_[at] = entry;
    entry->heap_at = at & 0xfffffffU;  // as many bits as it has
  }
  void rise(std::size_t at) {
    TaskEntry* const entry = entries_[at];
    for (; at != 0 && before(entry, entries_[(at - 1) / 2]); at = (at - 1) / 2) {
      set(at, entries_[(at - 1) / 2]);
    }
    set(at, entry);
  }
  void sink(std::size_t at) {
    TaskEntry* const entry = entries_[at];
    for (std::size_t child = 2 * at + 1; child < entries_.size(); child = 2 * at + 1) {
      if (child + 1 < entries_.size() && before(entries_[child + 1], entries_[child])) ++child;
      if (!before(entries_[child], entry)) break;
      set(at, entries_[child]);
      at = child;
    }
    set(at, entry);
  }

  std::vector<TaskEntry*> entries_;
};

}  // namespace lictor::core
