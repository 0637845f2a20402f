#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "exec/active_logs.h"
#include "exec/environment.h"
#include "exec/process_host.h"
#include "exec/runner.h"
#include "exec/user.h"

namespace lictor::exec {

struct ProcessOptions {
  std::vector<std::string> argv;  ///< as configured; no shell looks at it
  std::vector<std::pair<std::string, std::string>> environment;
  std::string directory;     ///< "" is the daemon's own
  std::optional<User> user;  ///< none is the daemon's own
  std::vector<Limit> limits;

  LeaseSlot slot = kNoLease;
  bool ends_with_lease = true;               ///< false is `on_lease_lost: finish`
  Duration grace = std::chrono::seconds{5};  ///< between TERM and KILL when the daemon is gone

  std::string log_directory;                ///< "" keeps no logs
  std::size_t log_cap = 1 << 20U;           ///< bytes of one attempt's output that are kept
  std::shared_ptr<ActiveLogs> active_logs;  ///< is told which logs are being written; may be null
  std::string scratch_directory;  ///< for LICTOR_COMMIT and LICTOR_RESULT; "" is without them
};

/// Runs a program for each attempt (DESIGN.md, section 5, exec).
class ProcessRunner : public Runner {
 public:
  /// `host` must outlive the runner; the runner may go while its attempts run.
  /// Errors: kFailed when the scratch directory cannot be made; kInvalid without a program.
  [[nodiscard]] static Result<std::unique_ptr<ProcessRunner>> create(ProcessHost& host,
                                                                     ProcessOptions options);

  /// Errors: those of ProcessHost::start(). A program that cannot be run is not one, but an end.
  [[nodiscard]] Result<void> start(Attempt attempt, Instant deadline,
                                   ExitCallback on_exit) override;
  void stop(AttemptId attempt, std::chrono::milliseconds grace) override;

 private:
  struct Settings;
  ProcessRunner(ProcessHost& host, std::shared_ptr<const Settings> settings)
      : host_(host), settings_(std::move(settings)) {}

  ProcessHost& host_;
  std::shared_ptr<const Settings> settings_;
};

}  // namespace lictor::exec
