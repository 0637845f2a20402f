#include "exec/noop_runner.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"

namespace lictor::exec {

NoopRunner::NoopRunner(Duration sleep) : sleep_(sleep) {
  if (sleep_ == Duration::zero()) return;
  thread_ = std::jthread{[this](const std::stop_token& closing) { work(closing); }};
}

NoopRunner::~NoopRunner() {
  thread_ = {};
  for (const Sleeper& sleeper : sleepers_) {
    sleeper.on_exit(ended(sleeper.attempt, Ending::kStopped, "stopped"));
  }
}

Result<void> NoopRunner::start(Attempt attempt, Instant, ExitCallback on_exit) {
  if (sleep_ == Duration::zero()) {
    on_exit(ended(attempt.id, Ending::kDone));
    return {};
  }
  const std::lock_guard lock{mutex_};
  sleepers_.push_back({attempt.id, boot_now() + sleep_, std::move(on_exit)});
  if (sleepers_.size() == 1) changed_.notify_one();
  return {};
}

void NoopRunner::stop(AttemptId attempt, std::chrono::milliseconds) {
  ExitCallback on_exit;
  {
    const std::lock_guard lock{mutex_};
    const auto sleeper = std::ranges::find(sleepers_, attempt, &Sleeper::attempt);
    if (sleeper == sleepers_.end()) return;
    on_exit = std::move(sleeper->on_exit);
    sleepers_.erase(sleeper);
  }
  on_exit(ended(attempt, Ending::kStopped, "stopped"));
}

void NoopRunner::work(const std::stop_token& closing) {
  std::unique_lock lock{mutex_};
  while (!closing.stop_requested()) {
    changed_.wait(lock, closing, [this] { return !sleepers_.empty(); });
    const Instant now = boot_now();
    if (!sleepers_.empty() && sleepers_.front().wakes <= now) {
      const Sleeper sleeper = std::move(sleepers_.front());
      sleepers_.pop_front();
      lock.unlock();
      sleeper.on_exit(ended(sleeper.attempt, Ending::kDone));
      lock.lock();
    } else if (!sleepers_.empty()) {
      changed_.wait_for(lock, closing, sleepers_.front().wakes - now, [] { return false; });
    }
  }
}

}  // namespace lictor::exec
