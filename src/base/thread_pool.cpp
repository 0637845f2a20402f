#include "base/thread_pool.h"

#include <system_error>
#include <utility>

#include "base/clock.h"

namespace lictor {

bool ThreadPool::post(Job job, Duration delay) { return add(std::move(job), delay, true); }

bool ThreadPool::post_next(Job job) { return add(std::move(job), {}, false); }

bool ThreadPool::empty() {
  const std::lock_guard lock{mutex_};
  return jobs_.empty();
}

// An idle thread waits for the first job, so a later job need not wake it. Nor need the first job
// if the caller is a thread of the pool, which will look for it.
bool ThreadPool::add(Job job, Duration delay, bool wakes) {
  std::unique_lock lock{mutex_};
  if (stopped_) return false;
  wakes = wakes || !jobs_.empty();
  const auto added = jobs_.emplace(boot_now() + delay, std::move(job));
  const bool calls = wakes && (added == jobs_.begin() || idle_ == 0) && call_one();
  if (threads_.empty() && !stopping_) {
    jobs_.erase(added);
    return false;
  }
  lock.unlock();
  if (calls) wake_.notify_one();
  return true;
}

// Whether the caller must wake an idle thread once it has released the mutex. A thread woken
// earlier waits for the mutex, which costs two switches.
bool ThreadPool::call_one() {
  if (waking_) return false;
  if (idle_ > 0) {
    waking_ = true;
  } else if (threads_.size() < max_threads_ && !stopping_) {
    try {
      threads_.emplace_back([this] {
        std::unique_lock lock{mutex_};
        run(lock);
      });
      waking_ = true;
    } catch (const std::system_error&) {  // out of threads: the existing ones run the job
    }
    return false;
  }
  return waking_;
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
    const bool calls = !jobs_.empty() && call_one();
    lock.unlock();
    if (calls) wake_.notify_one();
    job.mapped()();
    job = {};
    lock.lock();
  }
}

}  // namespace lictor
