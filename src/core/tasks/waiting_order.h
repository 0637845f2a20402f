#pragma once

// The orders of waiting tasks. The lack of an entry decides its place:
//
//   a time: by due time                          nothing: in the order of starting
//   its serialKey: with its lane                 a slot: see ExecutorSlots
//   distant: by due time and key
//   unread, but its value is known: held until its generation is read
//   all tasks that can still expire: by expireAt
//
// A lane is a serialKey. The tasks that hold it come first; the others are blocked. Holders are our
// tasks, begun tasks that wait for their next attempt, and tasks that lack Consul's consent or a
// slot, so that order is kept. A task for tomorrow, or without an executor here, blocks no other.

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "core/options.h"
#include "core/tasks/task_entry.h"

namespace lictor::core {

class WaitingOrder {
 public:
  explicit WaitingOrder(const QueueOptions& options) : options_(options) {}

  void enter(TaskEntry& entry);
  void leave(TaskEntry& entry);
  void clear();

  /// Whether the entry keeps the others of its serialKey waiting.
  [[nodiscard]] bool holds_lane(const TaskEntry& entry) const;
  /// The task that holds the lane of `entry`, if it is another.
  [[nodiscard]] const TaskEntry* lane_holder(const TaskEntry& entry) const;
  /// The blocked task that becomes ready because no task holds the lane; null: there is none.
  [[nodiscard]] TaskEntry* unblocked(const std::string& serial_key) const;
  /// Whether a blocked task of that lane comes before `entry`.
  [[nodiscard]] bool blocked_before(const std::string& serial_key, const TaskEntry& entry) const;
  [[nodiscard]] bool any_blocked() const { return blocked_ != 0; }
  /// How many of the ready tasks, and of the blocked ones of its lane, come before `entry`, counted
  /// up to Reason::kMostCounted; `first` is the key of the next of them.
  [[nodiscard]] std::size_t count_before(const TaskEntry& entry, std::string& first) const;

  [[nodiscard]] TaskEntry* first_ready() const { return front(ready_); }
  /// The first blocked task of all lanes. Linear in the lanes that our or begun tasks hold.
  [[nodiscard]] TaskEntry* first_blocked() const;
  [[nodiscard]] TaskEntry* first_delayed() const { return front(delayed_); }
  [[nodiscard]] TaskEntry* first_distant() const { return front(distant_); }
  [[nodiscard]] TaskEntry* first_expiring() const { return front(expiring_); }
  [[nodiscard]] TaskEntry* first_unreadable() const { return front(unreadable_); }
  [[nodiscard]] TaskEntry* first_held() const { return front(held_); }

 private:
  struct ByDue {
    bool operator()(const TaskEntry* a, const TaskEntry* b) const {
      return a->due != b->due ? a->due < b->due : ByStart{}(a, b);
    }
  };
  struct ByDueAndKey {  // for entries without a record
    bool operator()(const TaskEntry* a, const TaskEntry* b) const {
      return std::tie(a->due, a->key) < std::tie(b->due, b->key);
    }
  };
  struct ByExpiry {
    bool operator()(const TaskEntry* a, const TaskEntry* b) const {
      return *a->task->expire_at != *b->task->expire_at ? *a->task->expire_at < *b->task->expire_at
                                                        : a->key < b->key;
    }
  };
  struct ByClaim {  // our tasks first
    bool operator()(const TaskEntry* a, const TaskEntry* b) const {
      const bool ours = is_ours(a->state);
      return ours != is_ours(b->state) ? ours : ByStart{}(a, b);
    }
  };
  struct Lane {
    std::set<TaskEntry*, ByClaim> holders;
    std::set<TaskEntry*, ByStart> blocked;
  };
  using Lanes = std::map<std::string, Lane, std::less<>>;

  template <class Set>
  [[nodiscard]] static TaskEntry* front(const Set& set) {
    return set.empty() ? nullptr : *set.begin();
  }
  template <class Change>
  void for_each_order_of(const TaskEntry& entry, const Change& change);
  void drop_if_empty(Lanes::iterator lane);

  const QueueOptions& options_;
  std::set<TaskEntry*, ByStart> ready_;
  std::set<TaskEntry*, ByDue> delayed_;
  std::set<TaskEntry*, ByDueAndKey> distant_;
  std::set<TaskEntry*, ByExpiry> expiring_;
  std::set<TaskEntry*, ByKey> unreadable_;
  std::set<TaskEntry*, ByKey> held_;
  Lanes lanes_;
  std::size_t blocked_ = 0;
};

}  // namespace lictor::core
