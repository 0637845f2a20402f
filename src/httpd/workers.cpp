#include "httpd/workers.h"

#include <system_error>
#include <utility>

#include "base/clock.h"

namespace lictor::httpd {

Workers::Workers(std::size_t max_threads) : max_threads_(max_threads) {
  threads_.emplace_back([this] { run(); });
}

void Workers::post(std::chrono::milliseconds delay, Job job) {
  const std::lock_guard lock{mutex_};
  if (stopped_) return;
  jobs_.emplace(boot_now() + delay, std::move(job));
  if (idle_ < jobs_.size() && threads_.size() < max_threads_ && !stopping_) {
    try {
      threads_.emplace_back([this] { run(); });
    } catch (const std::system_error&) {  // Out of threads: those at hand do it.
    }
  }
  wake_.notify_one();
}

void Workers::stop() {
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

void Workers::run() {
  std::unique_lock lock{mutex_};
  while (true) {
    if (jobs_.empty() && stopping_) return;
    const Instant at = jobs_.empty() ? Instant::max() : jobs_.begin()->first;
    const Instant now = boot_now();
    if (at > now && !stopping_) {
      ++idle_;
      at == Instant::max() ? wake_.wait(lock) : void(wake_.wait_for(lock, at - now));
      --idle_;
      continue;
    }
    auto job = jobs_.extract(jobs_.begin());
    lock.unlock();
    job.mapped()();
    job = {};
    lock.lock();
  }
}

}  // namespace lictor::httpd
