#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>

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
    ExitCallback on_exit;
  };
  using Queue = std::multimap<Instant, Sleeper>;  // by wake-up time

  void work();

  const Duration sleep_;
  std::mutex mutex_;
  std::condition_variable wake_;
  Queue sleepers_;
  std::unordered_map<AttemptId, Queue::iterator> by_attempt_;
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace lictor::exec
