#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <lictor/time.h>
#include <nlohmann/json.hpp>

namespace lictor {

/// A task as its producer wrote it.
struct Task {
  std::string id;             ///< taskId
  std::string key;            ///< the whole key in Consul KV
  std::string type;           ///< taskType
  std::string queue;          ///< the queue's name
  nlohmann::json parameters;  ///< taskPara; an empty object when there is none
  std::string record;         ///< the whole record, as JSON text
};

/// The outcome of an attempt.
class JobResult {
 public:
  enum class Status {
    kDone,       ///< the task is finished: its key is deleted
    kRetry,      ///< it failed: tried again after its backoff, while attempts are left
    kPermanent,  ///< it failed for good: it becomes a dead letter at once
  };

  [[nodiscard]] static JobResult done() { return {Status::kDone, {}}; }
  /// `result` is kept with the finished task, if the queue keeps a history and the transaction that
  /// finishes the task has room. Its strings must be UTF-8, its numbers finite, and its depth at
  /// most 512 levels; otherwise the attempt fails, and counts like any other.
  [[nodiscard]] static JobResult done(nlohmann::json result) {
    JobResult done{Status::kDone, {}};
    done.result_ = std::move(result);
    return done;
  }
  /// `error` is one line for a person; it is kept in the record (taskError).
  [[nodiscard]] static JobResult retry(std::string error) {
    return {Status::kRetry, std::move(error)};
  }
  /// A retry not before `retry_after` has passed, of which at most 24 h count, whatever the
  /// backoff; if `retry_after` is 0 or less, only the backoff counts.
  [[nodiscard]] static JobResult retry(std::string error, std::chrono::milliseconds retry_after) {
    JobResult retry{Status::kRetry, std::move(error)};
    retry.retry_after_ = retry_after;
    return retry;
  }
  [[nodiscard]] static JobResult permanent(std::string error) {
    return {Status::kPermanent, std::move(error)};
  }

  [[nodiscard]] Status status() const { return status_; }
  [[nodiscard]] const std::string& error() const { return error_; }
  [[nodiscard]] const std::optional<nlohmann::json>& result() const { return result_; }
  [[nodiscard]] std::optional<std::chrono::milliseconds> retry_after() const {
    return retry_after_;
  }

 private:
  JobResult(Status status, std::string error) : status_(status), error_(std::move(error)) {}

  Status status_;
  std::string error_;
  std::optional<nlohmann::json> result_;
  std::optional<std::chrono::milliseconds> retry_after_;
};

/// A write to Consul KV that is committed with the finish of a task.
struct KvWrite {
  std::string key;
  std::optional<std::string> value;  ///< none: the key is deleted
  std::optional<std::uint64_t> cas;  ///< the ModifyIndex that it must have; 0: it must not exist
};

/// The input of an attempt. Valid during Executor::run(); its methods may be called from any
/// thread.
class Context {
 public:
  using OnProgress = std::function<void(double fraction, const std::string& note)>;
  using ReadTask = std::function<Task()>;

  /// For tests of executors.
  Context(Task task, std::uint32_t attempt, std::uint64_t fencing_token, Instant deadline,
          std::stop_token stop, OnProgress on_progress = {})
      : Context(ReadTask{}, attempt, fencing_token, deadline, std::move(stop),
                std::move(on_progress)) {
    task_.emplace(std::move(task));
  }
  /// `read_task` is called when task() is, until it has returned once; task() passes its exceptions
  /// on.
  Context(ReadTask read_task, std::uint32_t attempt, std::uint64_t fencing_token, Instant deadline,
          std::stop_token stop, OnProgress on_progress = {})
      : read_task_(std::move(read_task)),
        attempt_(attempt),
        fencing_token_(fencing_token),
        deadline_(deadline),
        stop_(std::move(stop)),
        on_progress_(std::move(on_progress)) {}

  /// The first call parses the record, so a job that never calls this does not pay for it.
  [[nodiscard]] const Task& task() const {
    const std::lock_guard lock{mutex_};
    if (!task_) task_.emplace(read_task_());
    return *task_;
  }

  /// Attempts begun, this one included: 1 for the first.
  [[nodiscard]] std::uint32_t attempt() const { return attempt_; }

  /// Never falls from one claim of the task to the next, whoever leads. Hand the token to every
  /// store that this attempt writes to, so that it can refuse an older attempt (Kleppmann, "How to
  /// do distributed locking").
  [[nodiscard]] std::uint64_t fencing_token() const { return fencing_token_; }

  /// When the attempt times out; Instant::max(): never. A thread cannot be ended: an attempt that
  /// goes on ends when run() returns, and done() counts even then; the log says so.
  [[nodiscard]] Instant deadline() const { return deadline_; }

  /// Requested when the task is withdrawn, times out, or the daemon's lease is lost. An attempt
  /// that goes on for longer than kill_grace after a lost lease takes the whole daemon down: that
  /// is the only way to end a thread, and the next leader relies on it.
  [[nodiscard]] std::stop_token stop_token() const { return stop_; }
  [[nodiscard]] bool stop_requested() const { return stop_.stop_requested(); }

  /// KV writes for the transaction that finishes the task: either all of them and the finish are
  /// made, or none. Without JobResult::done() none are made. So an effect on Consul KV happens
  /// once, however often the task is run. `key` is the whole key; with `cas_index` the key must
  /// have that ModifyIndex, 0 means it must not exist. If a write is refused, the attempt has
  /// failed, and counts like any other. The writes share a transaction with the finish: at most 61
  /// of them, or 125 with Consul 1.14 or newer, of 500,000 bytes with their values in base64.
  void put(std::string key, std::string value) const {
    add({std::move(key), std::move(value), std::nullopt});
  }
  void put(std::string key, std::string value, std::uint64_t cas_index) const {
    add({std::move(key), std::move(value), cas_index});
  }
  void erase(std::string key) const { add({std::move(key), std::nullopt, std::nullopt}); }
  void erase(std::string key, std::uint64_t cas_index) const {
    add({std::move(key), std::nullopt, cas_index});
  }

  /// The writes that put() and erase() have asked for so far, in their order.
  [[nodiscard]] std::vector<KvWrite> writes() const {
    const std::lock_guard lock{mutex_};
    return writes_;
  }

  /// Reports the progress of the attempt, for "lictor why": `fraction` from 0 to 1, and a line of
  /// at most 200 bytes; longer ones are cut. Cheap; the last report counts.
  void progress(double fraction, const std::string& note = {}) const {
    if (on_progress_) on_progress_(fraction, note);
  }

 private:
  void add(KvWrite write) const {
    const std::lock_guard lock{mutex_};
    writes_.push_back(std::move(write));
  }

  ReadTask read_task_;
  std::uint32_t attempt_;
  std::uint64_t fencing_token_;
  Instant deadline_;
  std::stop_token stop_;
  OnProgress on_progress_;
  mutable std::mutex mutex_;
  mutable std::optional<Task> task_;
  mutable std::vector<KvWrite> writes_;
};

/// Carries out tasks of one kind, inside the daemon. Derive from it, and hand it to a Worker.
///
/// Thread safety: run() is called from threads of lictor's own, at most `concurrency` of them at
/// once, on the same object. Between two jobs such a thread does lictor's own work, too: if run()
/// changes the thread (priority, signal mask, locale, user), it must restore it.
class Executor {
 public:
  virtual ~Executor() = default;

  /// Carries out one attempt; may block. Tasks run at least once: if an owner dies, its task is run
  /// again, so an attempt must cope with work that is half done, or done. An exception counts as
  /// JobResult::retry() with its what().
  [[nodiscard]] virtual JobResult run(const Context& context) = 0;
};

/// An executor that calls `function` with the Context; a function that returns nothing is done.
template <class Function>
requires std::is_invocable_v<Function&, const Context&>
[[nodiscard]] std::unique_ptr<Executor> make_executor(Function function) {
  class Caller : public Executor {
   public:
    explicit Caller(Function called) : function_(std::move(called)) {}
    JobResult run(const Context& context) override {
      if constexpr (std::is_void_v<std::invoke_result_t<Function&, const Context&>>) {
        function_(context);
        return JobResult::done();
      } else {
        return function_(context);
      }
    }

   private:
    Function function_;
  };
  return std::make_unique<Caller>(std::move(function));
}

}  // namespace lictor
