#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <unordered_map>

#include "base/thread_pool.h"
#include "exec/lease_board.h"
#include "exec/runner.h"

namespace lictor::exec {

/// A job's access to its runner.
struct JobTools {
  std::stop_token stop;                            ///< set on stop()
  Instant deadline;                                ///< when the attempt times out
  std::function<void(std::string)> note_progress;  ///< for Runner::progress(); from any thread
};

/// A job inside the daemon. The Exit's `attempt` may stay empty. An exception counts as kRetry. If
/// it calls exit(), its process says so on stderr and ends with status 1. _exit() goes unnoticed.
using JobFunction = std::function<Exit(Attempt attempt, const JobTools& tools)>;

/// Runs a function for each attempt, on threads of its own (base/thread_pool.h).
///
///   start() --admitted by the lease board--> waiting --a thread takes it--> runs --> on_exit
///      |                                        |                             |
///      | the lease is over                      | stop()                      | stop() only asks
///      v                                        v                             v
///   an error                                 on_exit: not started          runs on, and counts on
///                                                                          the lease board
///
/// A function cannot be killed, so stop() only asks and ignores its grace. If a function still runs
/// after the lease's grace, the warden kills the daemon.
class FunctionRunner : public Runner {
 public:
  /// At most `threads` attempts run at once; further ones wait. `slot`: the lease under which the
  /// attempts run. `board` must outlive the runner.
  FunctionRunner(JobFunction function, LeaseBoard& board, std::size_t threads = 1,
                 LeaseSlot slot = kNoLease);

  /// Asks all jobs to end and waits for them without a limit.
  ~FunctionRunner() override;
  FunctionRunner(const FunctionRunner&) = delete;
  FunctionRunner& operator=(const FunctionRunner&) = delete;

  /// Errors: kUnavailable, the lease has run out; kFailed, no thread can be started.
  [[nodiscard]] Result<void> start(Attempt attempt, Instant deadline,
                                   ExitCallback on_exit) override;
  void stop(AttemptId attempt, std::chrono::milliseconds grace) override;
  [[nodiscard]] std::string progress(AttemptId attempt) override;

 private:
  struct Job {
    LeaseSlot slot;
    Attempt attempt;  // until it runs
    Instant deadline;
    ExitCallback on_exit;
    std::stop_source stop{};
    // Under the runner's mutex:
    std::string progress{};
    bool began = false;
  };

  void run(AttemptId id, Job& job);
  void finish(AttemptId id, const Job& job, Exit exit);

  const JobFunction function_;
  LeaseBoard& board_;
  const LeaseSlot first_slot_;

  std::mutex mutex_;
  std::unordered_map<AttemptId, std::shared_ptr<Job>> jobs_;  // waiting and running
  ThreadPool threads_;
};

}  // namespace lictor::exec
