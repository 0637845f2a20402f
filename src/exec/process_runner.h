#pragma once

// One program for each attempt (`exec` in the configuration). The runner is a translation only: the
// attempt becomes a Launch for the host, and the end of the program becomes the end of the attempt.
//
//   Attempt --> environment, record on standard input, log path, two handover paths --> Launch
//   ProcessEnd --> to_exit() --> done? --> take_file(): commit, result --> ExitCallback
//
// A job hands over its KV writes and its result in two files, LICTOR_COMMIT and LICTOR_RESULT, in a
// folder of its user. The daemon reads them after the end, when no process of the job is left to
// change them. They are untrusted: the job may leave a link to a file that only the daemon may
// read, or a FIFO that blocks its opener. If the job runs as another user, the warden gives the
// folder to that user before the start, and the files to the daemon after the end, since only the
// warden may change owners.

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "exec/environment.h"
#include "exec/output_log.h"
#include "exec/privileges.h"
#include "exec/process_host.h"
#include "exec/runner.h"

namespace lictor::exec {

/// The meaning of `end` for the task (jobs.md): exit 0 is done, also after a stop; any
/// other end after a stop is kStopped; 64, 65 and 78 are permanent (sysexits.h: EX_USAGE,
/// EX_DATAERR, EX_CONFIG); all others are retried, including 75 (EX_TEMPFAIL). A program that could
/// not run is not started, unless its arguments are too large. `user`: the program's user.
[[nodiscard]] Exit to_exit(AttemptId attempt, const Program& program, ProcessEnd end,
                           const std::optional<User>& user = {});

struct ProcessOptions {
  std::vector<std::string> argv;  ///< as configured; runs without a shell
  std::vector<std::pair<std::string, std::string>> environment;
  std::string directory;     ///< "": the daemon's
  std::optional<User> user;  ///< std::nullopt: the daemon's
  std::vector<Limit> limits;

  LeaseSlot slot = kNoLease;
  bool ends_with_lease = true;               ///< false: `on_lease_lost: finish`
  Duration grace = std::chrono::seconds{5};  ///< between TERM and KILL after the daemon's death

  std::string log_directory;       ///< "": no logs
  std::size_t log_cap = 1 << 20U;  ///< bytes of one attempt's output in its log
  std::shared_ptr<ActiveLogs> active_logs = std::make_shared<ActiveLogs>();  ///< not null
  std::string scratch_directory;  ///< for LICTOR_COMMIT and LICTOR_RESULT; "": neither

  friend bool operator==(const ProcessOptions&, const ProcessOptions&) = default;
};

/// The input of execve(2) except for the environment.
[[nodiscard]] Program make_program(const ProcessOptions& options);

/// Runs a program for each attempt (jobs.md).
class ProcessRunner : public Runner {
 public:
  /// `host` must outlive the runner; attempts may outlive the runner.
  /// Errors: kFailed, the scratch directory cannot be made; kInvalid, there is no program.
  [[nodiscard]] static Result<std::unique_ptr<ProcessRunner>> create(ProcessHost& host,
                                                                     ProcessOptions options);

  /// Errors: as ProcessHost::start(). `on_exit` reports a program that cannot be run.
  [[nodiscard]] Result<void> start(Attempt attempt, Instant deadline,
                                   ExitCallback on_exit) override;
  void stop(AttemptId attempt, std::chrono::milliseconds grace) override {
    host_.stop(attempt, grace);
  }
  [[nodiscard]] bool reports_pid() const override { return true; }

 private:
  struct Settings;  // shared with attempts under way, which may outlive the runner
  ProcessRunner(ProcessHost& host, std::shared_ptr<const Settings> settings)
      : host_(host), settings_(std::move(settings)) {}

  ProcessHost& host_;
  std::shared_ptr<const Settings> settings_;
};

}  // namespace lictor::exec
