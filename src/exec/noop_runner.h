#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <stop_token>
#include <thread>

#include "exec/runner.h"

namespace lictor::exec {

/// Does nothing, or waits: for trials and benchmarks. One thread for all attempts.
class NoopRunner : public Runner {
 public:
  /// Without a `sleep` there is no thread, and on_exit runs inside start().
  explicit NoopRunner(Duration sleep);

  /// Stops all attempts.
  ~NoopRunner() override;
  NoopRunner(const NoopRunner&) = delete;
  NoopRunner& operator=(const NoopRunner&) = delete;

  [[nodiscard]] Result<void> start(Attempt attempt, Instant deadline,
                                   ExitCallback on_exit) override;
  void stop(AttemptId attempt, std::chrono::milliseconds grace) override;

 private:
  struct Sleeper {
    AttemptId attempt;
    Instant wakes;
    ExitCallback on_exit;
  };

  void work(const std::stop_token& closing);

  const Duration sleep_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Sleeper> sleepers_;  // all sleep equally long: the first wakes first
  std::jthread thread_;
};

}  // namespace lictor::exec
