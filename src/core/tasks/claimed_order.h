#pragma once

// The orders of our tasks. An entry's place follows from its state:
//
//   claiming, checking: in the order of their claims     claimed: in the order of starting
//   running, stopping: by time-out                       claimed early: by due time
//
// An early task was claimed before its due time: until then it takes no slot and is not started.

#include <cstddef>
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
  [[nodiscard]] std::size_t early_count() const { return early_.size(); }
  [[nodiscard]] static bool is_early(const TaskEntry& entry) {
    return entry.attempt->early_until.has_value();
  }
  /// Due time of the first early task.
  [[nodiscard]] std::optional<WallTime> next_due() const;
  /// The early task with the latest due time.
  [[nodiscard]] TaskEntry* last_early() const {
    return early_.empty() ? nullptr : *early_.rbegin();
  }

  /// The claimed task to start next; never an early one. With `in_order` also none that was claimed
  /// after a task whose claim is not settled yet.
  [[nodiscard]] TaskEntry* next_to_start(bool in_order) const;
  [[nodiscard]] const TaskEntry* first_claimed() const {
    return claimed_.empty() ? nullptr : *claimed_.begin();
  }
  /// Tasks that are claimed, due, and not started yet.
  [[nodiscard]] std::size_t ready_count() const { return claimed_.size(); }

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
  struct ByDue {
    bool operator()(const TaskEntry* a, const TaskEntry* b) const {
      const WallTime due = *a->attempt->early_until;
      const WallTime other = *b->attempt->early_until;
      return due != other ? due < other : ByStart{}(a, b);
    }
  };

  std::set<TaskEntry*, ById> claiming_;
  std::set<TaskEntry*, ByStart> claimed_;  // without the early ones
  std::set<TaskEntry*, ByDue> early_;      // claimed, or being claimed
  std::set<TaskEntry*, ByTimeout> timeouts_;
};

}  // namespace lictor::core
