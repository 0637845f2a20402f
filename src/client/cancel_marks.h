#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <thread>

#include "client/store.h"
#include "lictor/time.h"

namespace lictor::client {

/// Entries of cancelled tasks in a queue that keeps no history. They are there for those who wait
/// for the tasks, and are deleted a moment later. Thread safe.
class CancelMarks {
 public:
  /// `store` must outlive this.
  explicit CancelMarks(Store& store) : store_(store) {}
  /// Waits until all are deleted.
  ~CancelMarks();
  CancelMarks(const CancelMarks&) = delete;
  CancelMarks& operator=(const CancelMarks&) = delete;

  /// Deletes the entry at `key` unless it changes.
  void delete_later(std::string key);

  /// How long they stay; zero: delete_later() deletes at once. To be set before that is called.
  Duration stay = std::chrono::seconds{2};

 private:
  struct Mark {
    Instant due;
    std::string key;
    std::uint64_t index;
  };
  void serve();
  void remove(const Mark& mark);

  Store& store_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Mark> marks_;
  bool ending_ = false;
  std::thread thread_;  // runs from the first mark on
};

}  // namespace lictor::client
