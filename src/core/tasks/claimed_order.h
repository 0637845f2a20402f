#pragma once

// The orders of the tasks that are ours. Where an entry stands follows from its state:
//
//   claiming, checking: in the order of their claims     claimed: in the order of starting
//   running, stopping: by time-out                       claimed early: by due time
//
// An early task was claimed before its due time: until then it takes no slot and is not started.

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "core/tasks/task_entry.h"

namespace lictor::core {

class ClaimedOrder {
 public:
  void enter(TaskEntry& entry);
  void leave(TaskEntry& entry);
  void clear();

  /// Tasks that are due at `wall` are no longer early.
  void advance(WallTime wall);
  [[nodiscard]] std::size_t early_count() const { return early_count_; }
  [[nodiscard]] bool is_early(const TaskEntry& entry) const;
  /// Due time of the first early task.
  [[nodiscard]] std::optional<WallTime> next_due() const;
  /// The early task with the latest due time.
  [[nodiscard]] TaskEntry* last_early() const;

  /// The claimed task to start next; never an early one. With `in_order` also none that was claimed
  /// after a task whose claim is not settled yet.
  [[nodiscard]] TaskEntry* next_to_start(bool in_order) const;
  [[nodiscard]] const TaskEntry* first_claimed() const {
    return claimed_.empty() ? nullptr : *claimed_.begin();
  }
  /// Claimed, due, and not started yet.
  [[nodiscard]] std::size_t ready_count() const { return claimed_.size() + many_due_count_; }

  /// Of those, tasks that became due together with many others.
  [[nodiscard]] std::size_t many_due_count() const { return many_due_count_; }

  /// A job whose timeout has passed.
  [[nodiscard]] TaskEntry* next_timed_out(Instant now) const;
  [[nodiscard]] Instant next_timeout() const;

 private:
  struct ById {
    bool operator()(const TaskEntry* a, const TaskEntry* b) const {
      return a->attempt->id < b->attempt->id;
    }
  };
  struct ByTimeout {
    bool operator()(const TaskEntry* a, const TaskEntry* b) const {
      return std::pair{a->attempt->timeout_at, a->attempt->id} <
             std::pair{b->attempt->timeout_at, b->attempt->id};
    }
  };
  using InOrder = std::set<TaskEntry*, ByStart>;
  struct Early {
    std::set<TaskEntry*, ById> claiming;
    InOrder claimed;
  };

  std::set<TaskEntry*, ById> claiming_;
  InOrder claimed_;                  // without the early ones
  std::map<WallTime, Early> early_;  // by when they are due
  std::size_t early_count_ = 0;
  // Many tasks that are due at once stay together: sorting each into claimed_ would delay the first
  // start by milliseconds.
  std::map<WallTime, InOrder> many_due_;
  std::size_t many_due_count_ = 0;
  std::set<TaskEntry*, ByTimeout> timeouts_;
};

}  // namespace lictor::core
