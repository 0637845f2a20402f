#pragma once

// The tasks that wait, by key, and the three orders in which they are looked at:
//
//   delayed, by due time --(due)--> ready, in the order of starting --take()--> an attempt
//        |                             |
//        +--- expiring, by expireAt ---+--take_expired()--> a dead letter
//
// What has no executor here stays known and is not offered. A distant task is due so much later
// that it need not be in memory: that it is there, its version and when it is due are all that is
// known of it, and not even its key, until it is forgotten in order to be read again.
//
// What cannot be started for now is set aside, when it is offered, and keeps its lane: what comes
// after it there does not pass it.
//
// Tasks of one serialKey share a lane, which one task at a time holds: from its claim to its end,
// over retries too, so that order is kept. Ready tasks of a held lane are parked, and come back to
// the ready ones one by one.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/key_table.h"
#include "core/task.h"

namespace lictor::core {

class Schedule {
 public:
  /// Takes in `task` in place of what was known of its key. `startable`: it has an executor.
  /// `holds_lane`: once begun it holds back the others of its serialKey, also while it waits.
  void put(std::shared_ptr<const Task> task, bool startable, bool holds_lane = true);
  /// The same, of a distant task: one that has an executor and holds no lane.
  void put_distant(const Task& task, WallTime due);
  /// Says anew of every task but the distant ones whether it has an executor.
  template <class IsStartable>
  void refresh(IsStartable is_startable, bool holds_lane) {
    std::vector<std::shared_ptr<const Task>> changed;
    for (const auto& [key, waiting] : tasks_) {
      if (waiting.startable != is_startable(*waiting.task)) changed.push_back(waiting.task);
    }
    for (auto& task : changed) put(task, is_startable(*task), holds_lane);
  }
  /// The task is gone, and whatever it held. Returns whether the key was known.
  bool remove(std::string_view key);
  /// The task is claimed: it leaves the schedule, and holds its lane until release() or until it
  /// was put back and removed.
  void take(std::string_view key);
  /// The task, which is ready, is not offered until bring_back(); it holds its lane meanwhile.
  void set_aside(std::string_view key);
  void bring_back();
  /// A task that was taken has ended.
  void release(const Task& task);
  void clear();

  /// Nothing for a distant task.
  [[nodiscard]] std::shared_ptr<const Task> find(std::string_view key) const;
  /// The ModifyIndex of what waits under `key`.
  [[nodiscard]] std::optional<std::uint64_t> version(std::string_view key) const;
  /// When the task is due, if it is a distant one.
  [[nodiscard]] std::optional<WallTime> distant_due(std::string_view key) const;
  /// Those of `keys`, in their order, of which nothing waits; but for a chance of 2^-64 for each
  /// other one.
  [[nodiscard]] std::vector<std::string_view> others(
      const std::vector<std::string_view>& keys) const {
    return known_.others(keys);
  }

  /// Not after this the next distant task is due.
  [[nodiscard]] std::optional<WallTime> next_distant() const;
  /// Forgets the distant tasks that are due until `until`. Returns whether there were any.
  bool forget_distant(WallTime until);
  /// Forgets the distant tasks of versions up to `version` that are not among `keys`.
  void forget_distant_others(const std::vector<std::string_view>& keys, std::uint64_t version);
  /// Of each distant task any version that is read from now on is news.
  void doubt_distant();
  [[nodiscard]] bool startable(std::string_view key) const;
  /// Who holds the lane of `task`, if it is another task; else empty.
  [[nodiscard]] std::string lane_holder(const Task& task) const;
  [[nodiscard]] bool any_parked() const { return parked_ != 0; }
  /// Whether a task that is due and waits for that lane comes before `task`.
  [[nodiscard]] bool parked_before(const std::string& serial_key, const Task& task) const;
  /// How many of the ready tasks come before `task`, those that wait for `task`'s lane alone too;
  /// `first` is the next of them. Linear in their number.
  [[nodiscard]] std::size_t count_before(const Task& task, std::string& first) const;

  /// The next task to start at `wall`, in order; stays in until it is removed.
  [[nodiscard]] std::shared_ptr<const Task> next(WallTime wall);
  /// A task whose expireAt is not after `wall`; stays in until it is removed.
  [[nodiscard]] std::shared_ptr<const Task> next_expired(WallTime wall) const;
  /// Makes ready what is due at `wall`.
  void advance(WallTime wall);
  /// The delayed task that is due next, and of those that are due together the first in order.
  [[nodiscard]] std::shared_ptr<const Task> next_delayed() const;
  /// When the next delayed task is due; after advance() in the future.
  [[nodiscard]] std::optional<WallTime> next_due() const;
  /// When the next task expires.
  [[nodiscard]] std::optional<WallTime> next_expiry() const;

  [[nodiscard]] std::size_t size() const { return tasks_.size() + distant_; }
  [[nodiscard]] std::size_t distant_size() const { return distant_; }
  /// Of what is due, what waits for its lane or was set aside included.
  [[nodiscard]] std::size_t ready_size() const { return ready_.size() + parked_ + aside_.size(); }

  /// Of what is due, what is not known to wait for its lane.
  [[nodiscard]] std::size_t offered_size() const { return ready_.size(); }

  /// Calls `visit(task)` for every task but the distant ones, in the order of their keys.
  template <class Visit>
  void for_each(Visit visit) const {
    for (const auto& [key, waiting] : tasks_) visit(*waiting.task);
  }

 private:
  struct Waiting {
    std::shared_ptr<const Task> task;
    bool startable = true;
    bool ready = false;
    bool parked = false;
    bool aside = false;
  };
  using Tasks = std::map<std::string_view, Waiting>;
  struct ByOrder {
    bool operator()(const Task* a, const Task* b) const;
    bool operator()(Tasks::iterator a, Tasks::iterator b) const {
      return (*this)(a->second.task.get(), b->second.task.get());
    }
  };
  struct ByDue {
    bool operator()(const Task* a, const Task* b) const;
  };
  struct Lane {
    std::string holder;  // a task's key; empty: nobody's
    std::set<Tasks::iterator, ByOrder> parked;
  };

  void erase(Tasks::iterator it);
  bool erase_distant(std::string_view key);
  void drop_from_orders(Tasks::iterator it);
  void unpark(const std::string& serial_key);

  Tasks tasks_;     // the key's bytes are the task's
  KeyTable known_;  // of these and of the distant tasks
  std::size_t distant_ = 0;
  WallTime next_distant_ = WallTime::max();  // of some that are gone, too
  std::set<Tasks::iterator, ByOrder> ready_;
  std::set<Tasks::iterator, ByOrder> aside_;
  std::set<const Task*, ByDue> delayed_;
  std::set<std::pair<WallTime, std::string_view>> expiring_;
  std::map<std::string, Lane, std::less<>> lanes_;  // by serialKey
  std::size_t parked_ = 0;
};

}  // namespace lictor::core
