#pragma once

// The tasks of a queue as Consul has them, read once for all who look at lists.

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "client/queue.h"
#include "lictor/client.h"
#include "lictor/result.h"
#include "lictor/time.h"

namespace lictor::admin {

/// A listing of one moment, without the records. Not changed once made.
struct TaskListing {
  std::vector<TaskInfo> tasks;      ///< in the order of list_tasks()
  std::vector<std::string> hidden;  ///< prefixes below which the token may not read everything
  WallTime at{};
  Duration took{};
  std::uint64_t number = 0;  ///< no two listings of a process have the same
};
using TaskListingPtr = std::shared_ptr<const TaskListing>;

/// Lists the queue when somebody asks, and at most for a fiftieth of the time: a queue of 100,000
/// tasks takes a second to list. Thread safe.
class TaskIndex {
 public:
  /// `done`: the history, else what waits, runs or is dead. `queue` must outlive this.
  TaskIndex(const client::Queue& queue, bool done) : queue_(queue), done_(done) {}

  /// Blocks while Consul is asked, by this or another thread. `newer_than`: the listing must begin
  /// after this time, if the pace allows. Errors: those of list_tasks().
  [[nodiscard]] Result<TaskListingPtr> get(WallTime newer_than = WallTime::min());

  /// Whether drop_unused() is to be called after kCheckAfter: true once in ten seconds.
  [[nodiscard]] bool wants_check();
  /// Forgets the listing if nobody has asked for it for 50 s. Whether there is none now.
  bool drop_unused();
  static constexpr std::chrono::milliseconds kCheckAfter{61'000};

 private:
  const client::Queue& queue_;
  const bool done_;
  std::mutex mutex_;  // held while Consul is asked
  TaskListingPtr newest_;
  std::optional<Error> failure_;  // of the last attempt to list
  Instant failed_at_{};
  Instant listed_at_{};
  Instant used_at_{};
  Instant check_asked_at_ = Instant::min();
};

}  // namespace lictor::admin
