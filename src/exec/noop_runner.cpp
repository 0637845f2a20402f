#include "exec/noop_runner.h"

#include <cerrno>
#include <utility>

#include "base/errno_text.h"

namespace lictor::exec {

NoopRunner::~NoopRunner() {
  std::map<AttemptId, ExitCallback> left;
  {
    const std::lock_guard lock{mutex_};
    left.swap(sleepers_);
  }
  for (const auto& [id, on_exit] : left) on_exit(ended(id, Ending::kStopped, "stopped"));
}

Result<void> NoopRunner::start(Attempt attempt, Instant, ExitCallback on_exit) {
  if (sleep_ == Duration::zero()) {
    on_exit(ended(attempt.id, Ending::kDone));
    return {};
  }
  const std::lock_guard lock{mutex_};
  if (!threads_.post([this, id = attempt.id] { end(id, Ending::kDone); }, sleep_)) {
    return fail(ErrorCode::kFailed, "cannot start a thread: " + errno_text(EAGAIN));
  }
  sleepers_.emplace(attempt.id, std::move(on_exit));
  return {};
}

void NoopRunner::end(AttemptId attempt, Ending ending) {
  std::unique_lock lock{mutex_};
  const auto sleeper = sleepers_.extract(attempt);
  lock.unlock();
  if (sleeper.empty()) return;  // It was stopped.
  sleeper.mapped()(ended(attempt, ending, ending == Ending::kStopped ? "stopped" : ""));
}

}  // namespace lictor::exec
