#pragma once

// One entry for each known key, by key and, while it is ours, by attempt. The state of an entry
// (task_state.h has the diagram) decides which orders it stands in. update() moves it from the
// orders of the old state to those of the new one, so that no two can disagree.

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/assert.h"
#include "core/options.h"
#include "core/tasks/claimed_order.h"
#include "core/tasks/executor_slots.h"
#include "core/tasks/known_keys.h"
#include "core/tasks/task_entry.h"
#include "core/tasks/waiting_order.h"

namespace lictor::core {

class TaskTable {
 public:
  explicit TaskTable(const QueueOptions& options) : waiting_(options), slots_(options) {}
  TaskTable(const TaskTable&) = delete;
  TaskTable& operator=(const TaskTable&) = delete;

  [[nodiscard]] TaskEntry* find(std::string_view key) const { return core::find(keys_, key); }
  [[nodiscard]] TaskEntry* find(AttemptId id) const;
  /// The entry of `key`; a new one is unread.
  TaskEntry& obtain(std::string_view key);

  /// The only way to change what the orders depend on: state, task, due time, the attempt's times.
  template <class Change>
  void update(TaskEntry& entry, TaskState to, Change change) {
    LICTOR_ASSERT(may_become(entry.state, to));
    const TaskState from = entry.state;
    const std::string lane = leave(entry);
    change(entry);
    entry.state = to;
    enter(entry);
    settle_lane(lane);
    walked_[static_cast<std::size_t>(from)] |= 1U << static_cast<unsigned>(to);
  }
  void move(TaskEntry& entry, TaskState to) {
    update(entry, to, [](TaskEntry&) {});
  }
  /// Sets the lack of a waiting task.
  void wait(TaskEntry& entry, Lack lack) {
    update(entry, TaskState::kWaiting, [&](TaskEntry& e) { e.lack = lack; });
  }
  /// Changes an entry as update() does; its state stays.
  template <class Change>
  void adjust(TaskEntry& entry, Change change) {
    const std::string lane = leave(entry);
    change(entry);
    enter(entry);
    settle_lane(lane);  // a blocked task of the lane may come first now
  }
  /// Changes options that the orders of all tasks depend on.
  template <class Change>
  void reconfigure(Change change) {
    for_each([&](TaskEntry& entry) { static_cast<void>(leave(entry)); });
    change();
    for_each([&](TaskEntry& entry) { enter(entry); });
    for_each([&](TaskEntry& entry) {
      const bool free = entry.lacks(Lack::kSerialKey) && waiting_.lane_holder(entry) == nullptr;
      if (free) wait(entry, Lack::kNothing);
    });
  }

  /// The key is gone as of `index`: answers that show the key up to that index are old.
  void bury(TaskEntry& entry, std::uint64_t index, Instant now);
  /// All requests sent before `time` have been answered: older deletions need not be remembered.
  void forget_deleted_before(Instant time);
  /// Ends the term. Jobs in `leftover` state stay, all other entries are forgotten.
  void clear();
  /// A leftover job has ended.
  void erase_leftover(TaskEntry& entry);

  [[nodiscard]] std::size_t count(TaskState state) const {
    return counts_[static_cast<std::size_t>(state)];
  }
  [[nodiscard]] std::size_t count(Lack lack) const {
    return lacks_[static_cast<std::size_t>(lack)];
  }
  /// Tasks that are ours and have not ended.
  [[nodiscard]] std::size_t busy() const {
    using enum TaskState;
    return count(kClaiming) + count(kChecking) + count(kClaimed) + count(kRunning);
  }
  /// The host's share of a partition: tasks that are ours, and jobs that run under them.
  struct Busy {
    std::size_t ours = 0;       // including tasks that ended and are not written yet
    std::size_t running = 0;    // included in `ours`
    std::size_t leftovers = 0;  // of an earlier term
  };
  [[nodiscard]] Busy busy_in(std::uint32_t partition) const;
  /// Known tasks that are not ours, not being buried, and not ignored.
  [[nodiscard]] std::size_t waiting() const {
    using enum TaskState;
    return count(kUnread) + count(kDistant) + count(kWaiting);
  }
  [[nodiscard]] bool any_last_chance() const { return last_chances_ != 0; }
  /// See Attempt::returns.
  [[nodiscard]] bool any_returning() const { return returning_ != 0; }

  [[nodiscard]] const WaitingOrder& waiting_order() const { return waiting_; }
  [[nodiscard]] const ClaimedOrder& claimed_order() const { return claimed_; }
  [[nodiscard]] const ExecutorSlots& executor_slots() const { return slots_; }
  /// Claimed tasks due at `wall` are no longer early.
  void advance_claimed(WallTime wall) { claimed_.advance(wall); }

  [[nodiscard]] const KnownKeys& keys() const { return keys_; }
  /// Calls `visit(TaskEntry&)` for each task with an attempt, in the order of the claims. `visit`
  /// may move the task.
  template <class Visit>
  void for_each_ours(Visit visit) const {
    for (auto it = ours_.begin(); it != ours_.end();) visit(*(it++)->second);
  }
  /// Calls `visit(TaskEntry&)` for every entry, in the order of their keys. `visit` may move the
  /// entry.
  template <class Visit>
  void for_each(Visit visit) const {
    for (const auto& entry : keys_) visit(*entry);
  }

  /// Every transition taken so far, for tests that cover the state diagram.
  using Walked = std::array<std::uint32_t, kTaskStates>;  // by state: a bit for each next one
  [[nodiscard]] const Walked& walked() const { return walked_; }
  /// How many keys became known in all.
  [[nodiscard]] std::uint64_t discovered() const { return discovered_; }

 private:
  [[nodiscard]] std::string leave(TaskEntry& entry);
  void enter(TaskEntry& entry);
  void drop_attempt(TaskEntry& entry);
  void settle_lane(const std::string& lane);
  void erase(TaskEntry& entry);

  KnownKeys keys_;
  WaitingOrder waiting_;
  ClaimedOrder claimed_;
  ExecutorSlots slots_;
  std::map<AttemptId, TaskEntry*> ours_;
  std::deque<std::pair<Instant, TaskEntry*>> deletions_;
  std::array<std::size_t, kTaskStates> counts_{};
  std::array<std::size_t, kLacks> lacks_{};  // of waiting and ignored entries
  std::size_t last_chances_ = 0;
  std::size_t returning_ = 0;
  std::uint64_t discovered_ = 0;
  Walked walked_{};
};

}  // namespace lictor::core
