#pragma once

#include <chrono>
#include <cstdint>
#include <stop_token>
#include <string>
#include <utility>

#include <lictor/time.h>
#include <nlohmann/json.hpp>

namespace lictor {

/// A task as its producer wrote it.
struct Task {
  std::string id;             ///< taskId
  std::string key;            ///< the whole key in Consul KV
  std::string type;           ///< taskType
  std::string queue;          ///< the queue's name
  nlohmann::json parameters;  ///< taskPara; null when there is none
  std::string record;         ///< the whole record, as JSON text
};

/// What became of an attempt.
class JobResult {
 public:
  enum class Status {
    kDone,       ///< the task is finished: its key is deleted
    kRetry,      ///< it failed: tried again after its backoff, while attempts are left
    kPermanent,  ///< it failed for good: it becomes a dead letter at once
  };

  [[nodiscard]] static JobResult done() { return {Status::kDone, {}}; }
  /// `error` is one line for a person; it is kept in the record (taskError).
  [[nodiscard]] static JobResult retry(std::string error) {
    return {Status::kRetry, std::move(error)};
  }
  [[nodiscard]] static JobResult permanent(std::string error) {
    return {Status::kPermanent, std::move(error)};
  }

  [[nodiscard]] Status status() const { return status_; }
  [[nodiscard]] const std::string& error() const { return error_; }

 private:
  JobResult(Status status, std::string error) : status_(status), error_(std::move(error)) {}

  Status status_;
  std::string error_;
};

/// What an attempt is told. Valid during Executor::run(); its methods may be called from any
/// thread.
class Context {
 public:
  Context(Task task, std::uint32_t attempt, std::uint64_t fencing_token, Instant deadline,
          std::stop_token stop)
      : task_(std::move(task)),
        attempt_(attempt),
        fencing_token_(fencing_token),
        deadline_(deadline),
        stop_(std::move(stop)) {}

  [[nodiscard]] const Task& task() const { return task_; }

  /// Attempts begun, this one included: 1 for the first.
  [[nodiscard]] std::uint32_t attempt() const { return attempt_; }

  /// Never falls from one claim of the task to the next, whoever leads. Hand it to whatever this
  /// attempt writes to, so that it can refuse an older attempt (Kleppmann, "How to do distributed
  /// locking").
  [[nodiscard]] std::uint64_t fencing_token() const { return fencing_token_; }

  /// When the attempt times out; Instant::max() when never.
  [[nodiscard]] Instant deadline() const { return deadline_; }

  /// Requested when the task is withdrawn, times out, or the daemon's lease is lost. An attempt
  /// that goes on for longer than kill_grace after a lost lease takes the whole daemon down: that
  /// is the only way to end a thread, and the next leader relies on it.
  [[nodiscard]] std::stop_token stop_token() const { return stop_; }
  [[nodiscard]] bool stop_requested() const { return stop_.stop_requested(); }

 private:
  Task task_;
  std::uint32_t attempt_;
  std::uint64_t fencing_token_;
  Instant deadline_;
  std::stop_token stop_;
};

/// Carries out tasks of one kind, inside the daemon. Derive from it, and hand it to a Worker.
///
/// Thread safety: run() is called from threads of lictor's own, at most `concurrency` of them at
/// once, on the same object.
class Executor {
 public:
  virtual ~Executor() = default;

  /// Carries out one attempt; may block. At least once is the rule: a task whose owner died is run
  /// again, so an attempt must bear to find its work half done, or done. An exception counts as
  /// JobResult::retry() with its what().
  [[nodiscard]] virtual JobResult run(const Context& context) = 0;
};

}  // namespace lictor
