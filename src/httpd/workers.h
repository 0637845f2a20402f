#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "lictor/time.h"

namespace lictor::httpd {

/// Threads that run jobs, each at its time. The first starts at once, the others when a job finds
/// no thread idle.
class Workers {
 public:
  using Job = std::function<void()>;

  explicit Workers(std::size_t max_threads);
  ~Workers() { stop(); }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  /// Dropped after stop().
  void post(std::chrono::milliseconds delay, Job job);
  /// Runs all jobs that wait, whatever their time, and joins the threads. Not from a job.
  void stop();

 private:
  void run();

  const std::size_t max_threads_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::multimap<Instant, Job> jobs_;
  std::vector<std::thread> threads_;
  std::size_t idle_ = 0;
  bool stopping_ = false;
  bool stopped_ = false;
};

}  // namespace lictor::httpd
