#pragma once

// The slots of executors that have a `concurrency` of their own. A task takes a slot from its claim
// to the end of its job. Tasks that lack one (`limited`) wait until their executor takes more, in
// an order for each executor and partition: a backlog of one type does not hold up the others, and
// is not searched when a slot becomes free.

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "core/options.h"
#include "core/tasks/task_entry.h"

namespace lictor::core {

class ExecutorSlots {
 public:
  explicit ExecutorSlots(const QueueOptions& options) : options_(options) {}

  void enter(TaskEntry& entry);
  void leave(TaskEntry& entry);
  void clear() { executors_.clear(); }

  /// The limit that binds the task's executor; 0: no limit below the queue's.
  [[nodiscard]] std::size_t limit_of(const Task& task) const;
  /// Whether no task of its executor may be claimed.
  [[nodiscard]] bool is_full(const Task& task) const;
  /// Whether the executor runs as many jobs as it may: the limit was lowered since the claim.
  [[nodiscard]] bool is_at_limit(const Task& task) const;
  /// The limited task to start first, of the executors and partitions for which `may(its first)`.
  template <class May>
  [[nodiscard]] TaskEntry* first_limited(May may) const {
    TaskEntry* first = nullptr;
    for (const auto& [name, executor] : executors_) {
      for (const auto& [partition, limited] : executor.limited) {
        TaskEntry* const next = *limited.begin();
        if (may(*next) && (first == nullptr || ByStart{}(next, first))) first = next;
      }
    }
    return first;
  }
  /// How many limited tasks of its executor come before `entry`; `first` is the key of the next of
  /// them. Linear in their number.
  [[nodiscard]] std::size_t count_before(const TaskEntry& entry, std::string& first) const;

 private:
  struct Executor {
    std::size_t taken = 0;
    std::size_t running = 0;                                         // included in `taken`
    std::map<std::uint32_t, std::set<TaskEntry*, ByStart>> limited;  // by partition; none is empty
  };

  [[nodiscard]] bool concerns(const TaskEntry& entry) const;
  [[nodiscard]] const Executor* find(const Task& task) const;

  const QueueOptions& options_;
  std::map<std::string, Executor, std::less<>> executors_;  // by name, while they have such tasks
};

}  // namespace lictor::core
