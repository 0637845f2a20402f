#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/id.h"
#include "base/job_ending.h"
#include "exec/lease_board.h"
#include "lictor/result.h"
#include "lictor/time.h"

namespace lictor::exec {

/// One run of one task.
struct Attempt {
  AttemptId id;
  std::string queue;
  std::string task_id;   ///< as in the record
  std::string task_key;  ///< the whole KV key
  std::string key_id;    ///< the key's last part: commands name the task by it, whatever its id
  std::string task_type;
  std::uint32_t number = 1;         ///< attempts begun, this one included
  std::uint64_t fencing_token = 0;  ///< ModifyIndex of the claim
  std::uint32_t partition = 0;      ///< the attempt's lease slot is the runner's plus this
  /// The task's JSON object without lictor's own members.
  std::shared_ptr<const std::string> record;
  /// Gets the pid of the attempt's program once it is known, on any thread. Only runners with
  /// reports_pid() call it. May be empty.
  std::function<void(pid_t)> on_pid{};
};

/// The lease of the attempt, if the runner's partition 0 has the lease `first`.
[[nodiscard]] inline LeaseSlot slot_of(LeaseSlot first, const Attempt& attempt) {
  return first == kNoLease ? kNoLease : first + attempt.partition;
}

using Ending = JobEnding;

/// How an attempt ended. `error` is one line for a person ("exit status 3: no such image", "killed
/// by signal 9 (SIGKILL)"). `output_tail` is the last output, valid UTF-8. `commit` and `result`
/// come from a successful job and are not validated yet.
struct Exit {
  AttemptId attempt;
  Ending ending = Ending::kDone;
  std::string error;
  std::string output_tail;
  std::optional<std::string> commit;  ///< KV writes, as JSON
  std::optional<std::string> result;  ///< a JSON value
  /// On kRetry: the least delay before the next attempt, even if the backoff is shorter.
  std::optional<std::chrono::milliseconds> retry_after;
  JobTaken taken = JobTaken::kYes;  ///< if not, `ending` counts only where that goes on
  /// On kDone: why the job's result is left out, one line.
  std::string result_fault;
  /// The thread that runs on_exit holds no lock and has no other job: `on_exit` may run long and
  /// may call start() and stop().
  bool spares_thread = false;
};

/// An end without output.
[[nodiscard]] inline Exit ended(AttemptId attempt, Ending ending, std::string error = {}) {
  Exit exit{};
  exit.attempt = attempt;
  exit.ending = ending;
  exit.error = std::move(error);
  return exit;
}

using ExitCallback = std::function<void(Exit)>;

/// Runs attempts of one kind of task. start() and stop() are called from one thread at a time.
class Runner {
 public:
  virtual ~Runner() = default;

  /// Begins `attempt` and returns without waiting for it. At `deadline` the caller stops the
  /// attempt; Instant::max() means never.
  /// On success `on_exit` runs exactly once, from any thread, also after stop(), when no process or
  /// thread of the attempt is left. On an error nothing was started and `on_exit` never runs.
  [[nodiscard]] virtual Result<void> start(Attempt attempt, Instant deadline,
                                           ExitCallback on_exit) = 0;

  /// Asks the attempt to end, and ends it by force after `grace`. Does not block. Idempotent; an
  /// attempt that is not running is ignored.
  virtual void stop(AttemptId attempt, std::chrono::milliseconds grace) = 0;

  /// Whether an attempt is a program whose pid `on_pid` gets.
  [[nodiscard]] virtual bool reports_pid() const { return false; }

  /// The attempt's last progress report, {"fraction": 0.5, "note": "..."} as text; "" if there is
  /// none or the attempt does not run. From any thread.
  [[nodiscard]] virtual std::string progress(AttemptId) { return {}; }
};

}  // namespace lictor::exec
