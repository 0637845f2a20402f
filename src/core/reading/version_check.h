#pragma once

// Finds changes that the names of the tasks do not show: a task that was rewritten, and a deletion
// that wakes no query (consul.md 4.2). Asks Consul whether known versions are still the newest, a
// batch of keys a transaction, by a quorum and without values.
//
// Consul's index of the prefix is the highest ModifyIndex of all keys that are, or were, below it.
// So after it has moved on, all known versions are checked, 4,000 a second; 20,000 take 5 s. At
// rest one batch is checked now and then.
//
//   resting --the index moved on--> a pass over all keys --its end--> resting, or the next pass

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/effect.h"
#include "core/event.h"
#include "core/options.h"
#include "core/requests.h"
#include "core/tasks/known_keys.h"

namespace lictor::core {

class VersionCheck {
 public:
  VersionCheck(const QueueOptions& options, Requests& requests, const KnownKeys& keys)
      : options_(options), requests_(requests), keys_(keys) {}

  /// The versions as of this index are known.
  void start(Instant now, std::uint64_t index);
  void stop(Effects& out);
  [[nodiscard]] bool running() const { return running_; }
  /// The names were listed as of `index`.
  void listed(Instant now, std::uint64_t index);
  /// Any version may have changed.
  void doubt_all(Instant now);

  /// `is_stable`: no write of ours is under way for the key, so Consul should have its version.
  void on_time(Instant now, const std::function<bool(const TaskEntry&)>& is_stable, Effects& out);
  /// Whether `reply` answers our request. A failed request is repeated.
  [[nodiscard]] bool accept(Instant now, const TasksChecked& reply);
  /// The version of `key` that the last request asked about; 0: none.
  [[nodiscard]] std::uint64_t asked(const std::string& key) const;
  [[nodiscard]] Instant next_deadline() const { return running_ && !request_ ? next_at_ : kNever; }

 private:
  static constexpr Instant kNever = Instant::max();

  [[nodiscard]] bool moved_on() const { return index_ > seen_; }
  void end_pass(Instant now);

  const QueueOptions& options_;
  Requests& requests_;
  const KnownKeys& keys_;

  bool running_ = false;
  std::uint64_t index_ = 0;  // of the newest names
  std::uint64_t seen_ = 0;   // the versions as of this index are known
  bool passing_ = false;
  std::uint64_t pass_index_ = 0;  // the pass shows everything written up to it
  Instant pass_began_ = Instant::min();
  std::string cursor_;      // the last key of the pass that was checked
  bool asks_last_ = false;  // no key comes after those of the last request
  RequestId request_;
  std::vector<CheckTasks::Version> asked_;  // by the last request
  Instant next_at_ = kNever;
};

}  // namespace lictor::core
