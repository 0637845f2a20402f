#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "lictor/time.h"

namespace lictor {

/// Threads that run jobs, each at its time. If a job finds no idle thread, one is started, up to a
/// limit, and is kept.
///
/// A burst wakes one thread, which wakes the next if jobs are left after it has taken its own. So
/// few threads run short jobs, without a wake-up for each.
class ThreadPool {
 public:
  using Job = std::function<void()>;

  explicit ThreadPool(std::size_t max_threads) : max_threads_(max_threads) {}
  ~ThreadPool() { stop(); }
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// From any thread. False, and `job` is dropped: there is no thread and none can be started, or
  /// stop() is over.
  bool post(Job job, Duration delay = {});
  /// Posts a job from one that is about to end: if no other waits, the same thread takes it next.
  bool post_next(Job job);
  /// Whether no job waits for a thread or its time.
  [[nodiscard]] bool empty();
  /// Runs all jobs that wait, whatever their time, and joins the threads. Not from a job.
  void stop();

 private:
  bool add(Job job, Duration delay, bool wakes);
  // Call with the mutex held.
  [[nodiscard]] bool call_one();
  void run(std::unique_lock<std::mutex>& lock);

  const std::size_t max_threads_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::multimap<Instant, Job> jobs_;
  std::vector<std::thread> threads_;
  std::size_t idle_ = 0;
  bool waking_ = false;  // a thread was woken, or started, and has not looked at the jobs yet
  bool stopping_ = false;
  bool stopped_ = false;
};

}  // namespace lictor
