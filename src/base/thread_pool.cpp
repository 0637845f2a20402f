#include "base/thread_pool.h"

#include <system_error>
#include <utility>

#include "base/clock.h"

namespace lictor {

bool ThreadPool::post(Job job, Duration delay) {
  const std::lock_guard lock{mutex_};
  return add(std::move(job), delay, true);
}

bool ThreadPool::post_next(Job job) {
  const std::lock_guard lock{mutex_};
  return add(std::move(job), {}, !jobs_.empty());
}

bool ThreadPool::empty() {
  const std::lock_guard lock{mutex_};
  return jobs_.empty();
}

// An idle thread waits for the first job. So a later one need not wake it.
bool ThreadPool::add(Job job, Duration delay, bool wakes) {
  if (stopped_) return false;
  const auto added = jobs_.emplace(boot_now() + delay, std::move(job));
  if (wakes && (added == jobs_.begin() || idle_ == 0)) wake_one();
  if (!threads_.empty() || stopping_) return true;
  jobs_.erase(added);
  return false;
}

void ThreadPool::wake_one() {
  if (waking_) return;
  if (idle_ > 0) {
    waking_ = true;
    wake_.notify_one();
  } else if (threads_.size() < max_threads_ && !stopping_) {
    try {
      threads_.emplace_back([this] {
        std::unique_lock lock{mutex_};
        run(lock);
      });
      waking_ = true;
    } catch (const std::system_error&) {  // Out of threads: the existing ones do it.
    }
  }
}

void ThreadPool::stop() {
  std::vector<std::thread> threads;
  {
    const std::lock_guard lock{mutex_};
    stopping_ = true;
    threads = std::exchange(threads_, {});
  }
  wake_.notify_all();
  for (std::thread& thread : threads) thread.join();
  const std::lock_guard lock{mutex_};
  stopped_ = true;
  jobs_.clear();
}

void ThreadPool::run(std::unique_lock<std::mutex>& lock) {
  waking_ = false;
  while (!jobs_.empty() || !stopping_) {
    const Instant at = jobs_.empty() ? Instant::max() : jobs_.begin()->first;
    const Instant now = boot_now();
    if (at > now && !stopping_) {
      ++idle_;
      at == Instant::max() ? wake_.wait(lock) : void(wake_.wait_for(lock, at - now));
      --idle_;
      waking_ = false;
      continue;
    }
    auto job = jobs_.extract(jobs_.begin());
    if (!jobs_.empty()) wake_one();
    lock.unlock();
    job.mapped()();
    job = {};
    lock.lock();
  }
}

}  // namespace lictor
