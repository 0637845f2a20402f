#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <unordered_map>
#include <vector>

#include "exec/lease_board.h"
#include "exec/runner.h"

namespace lictor::exec {

/// What a job inside the daemon is given.
struct JobTools {
  std::stop_token stop;                            ///< set on stop()
  Instant deadline;                                ///< when the attempt times out
  std::function<void(std::string)> note_progress;  ///< for Runner::progress(); from any thread
};

/// A job inside the daemon. The Exit's `attempt` need not be filled in. An exception is a failure
/// to be tried again.
using JobFunction = std::function<Exit(Attempt attempt, const JobTools& tools)>;

/// Runs a function for each attempt, on threads of its own. A thread is started when a job finds
/// none idle, and then kept.
///
/// A function cannot be ended by force. So stop() only asks, its grace means nothing; a function
/// that still runs when the lease's grace is over makes the warden kill the daemon.
class FunctionRunner : public Runner {
 public:
  struct Options {
    std::size_t threads = 1;  ///< the most that run at once; more attempts wait
    LeaseSlot slot = kNoLease;
    bool ends_with_lease = true;  ///< false is `on_lease_lost: finish`
  };

  /// `board` must outlive the runner.
  FunctionRunner(JobFunction function, LeaseBoard& board, Options options);

  /// Asks all to end and waits for them, however long they take.
  ~FunctionRunner() override;
  FunctionRunner(const FunctionRunner&) = delete;
  FunctionRunner& operator=(const FunctionRunner&) = delete;

  /// Errors: kUnavailable when the lease has run out; kFailed when there is no thread and the
  /// system gives none.
  [[nodiscard]] Result<void> start(Attempt attempt, Instant deadline,
                                   ExitCallback on_exit) override;
  void stop(AttemptId attempt, std::chrono::milliseconds grace) override;
  [[nodiscard]] std::string progress(AttemptId attempt) override;

 private:
  struct Job {
    AttemptId id;
    Attempt attempt;  // until it runs
    Instant deadline;
    ExitCallback on_exit;
    std::stop_source stop;
    std::string progress;  // under the runner's mutex
  };

  // A thread of ours.
  struct Worker {
    std::condition_variable wake;
    bool called = false;
  };

  [[nodiscard]] Worker* next_to_wake();
  void work(Worker& self);
  void run(Job& job);
  void finish(Job& job, Exit exit);

  const JobFunction function_;
  LeaseBoard& board_;
  const std::size_t most_threads_;
  const LeaseSlot counted_slot_;

  std::mutex mutex_;
  std::deque<std::shared_ptr<Job>> waiting_;
  std::unordered_map<AttemptId, std::shared_ptr<Job>> jobs_;  // waiting and running
  // A thread was woken and has not looked yet; it wakes the next one. Short jobs are done by few
  // threads then, without a wake-up each.
  bool waking_ = false;
  std::vector<Worker*> idle_;  // the last to have worked is the next: its memory is at hand
  bool closing_ = false;
  std::deque<Worker> workers_;
  std::vector<std::thread> threads_;
};

}  // namespace lictor::exec
