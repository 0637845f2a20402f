#include "exec/noop_runner.h"

#include "base/clock.h"

namespace lictor::exec {

NoopRunner::NoopRunner(Duration sleep) : sleep_(sleep) {
  if (sleep_ > Duration::zero()) thread_ = std::thread{[this] { work(); }};
}

NoopRunner::~NoopRunner() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock{mutex_};
    closing_ = true;
  }
  wake_.notify_one();
  thread_.join();
  for (auto& [when, sleeper] : sleepers_) {
    sleeper.on_exit(ended(sleeper.attempt, Ending::kStopped, "stopped"));
  }
}

Result<void> NoopRunner::start(Attempt attempt, Instant, ExitCallback on_exit) {
  if (!thread_.joinable()) {
    on_exit(ended(attempt.id, Ending::kDone));
    return {};
  }
  bool first = false;
  {
    const std::lock_guard lock{mutex_};
    const auto sleeper =
        sleepers_.emplace(boot_now() + sleep_, Sleeper{attempt.id, std::move(on_exit)});
    by_attempt_[attempt.id] = sleeper;
    first = sleeper == sleepers_.begin();
  }
  if (first) wake_.notify_one();
  return {};
}

void NoopRunner::stop(AttemptId attempt, std::chrono::milliseconds) {
  ExitCallback on_exit;
  {
    const std::lock_guard lock{mutex_};
    const auto found = by_attempt_.find(attempt);
    if (found == by_attempt_.end()) return;
    on_exit = std::move(found->second->second.on_exit);
    sleepers_.erase(found->second);
    by_attempt_.erase(found);
  }
  on_exit(ended(attempt, Ending::kStopped, "stopped"));
}

void NoopRunner::work() {
  std::unique_lock lock{mutex_};
  while (!closing_) {
    if (sleepers_.empty()) {
      wake_.wait(lock);
      continue;
    }
    const Instant now = boot_now();
    const auto first = sleepers_.begin();
    if (first->first > now) {
      wake_.wait_for(lock, first->first - now);
      continue;
    }
    Sleeper sleeper = std::move(first->second);
    by_attempt_.erase(sleeper.attempt);
    sleepers_.erase(first);
    lock.unlock();
    sleeper.on_exit(ended(sleeper.attempt, Ending::kDone));
    lock.lock();
  }
}

}  // namespace lictor::exec
