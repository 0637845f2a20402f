#pragma once

#include <map>
#include <mutex>

#include "base/thread_pool.h"
#include "exec/runner.h"

namespace lictor::exec {

/// Does nothing, or waits: for trials and benchmarks. Ignores deadlines. Has one thread.
class NoopRunner : public Runner {
 public:
  /// Without a `sleep` there is no thread, and on_exit runs inside start().
  explicit NoopRunner(Duration sleep) : sleep_(sleep) {}

  /// Stops all attempts.
  ~NoopRunner() override;
  NoopRunner(const NoopRunner&) = delete;
  NoopRunner& operator=(const NoopRunner&) = delete;

  [[nodiscard]] Result<void> start(Attempt attempt, Instant deadline,
                                   ExitCallback on_exit) override;
  void stop(AttemptId attempt, std::chrono::milliseconds) override {
    end(attempt, Ending::kStopped);
  }

 private:
  void end(AttemptId attempt, Ending ending);

  const Duration sleep_;
  std::mutex mutex_;
  std::map<AttemptId, ExitCallback> sleepers_;
  ThreadPool threads_{1};
};

}  // namespace lictor::exec
