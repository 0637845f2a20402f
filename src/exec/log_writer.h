#pragma once

// Keeps the disk away from the thread that starts and ends programs. That thread hands bytes over
// and goes on; the writer's own thread does everything that may wait for the disk.
//
//   caller --write(), finish(), run()--> orders, 8 MiB at most --writer's thread--> files
//              |
//              +-- no room, or no result yet: the caller waits, for kPatience in ten seconds,
//                  waits below 0.1 s not counted
//                     +-- nothing was done meanwhile: the disk stands still; from now on nobody
//                         waits, and logs are lost, until an order is done again
//
// A caller that waited for a dead NFS server would report no end of any program, and the warden
// would kill the daemon as one that hangs. So the job goes on and its log is lost, with a warning
// and with the reason in the log's outcome.
//
// A thread that waits for a dead disk cannot be ended. So the state is shared, and the destructor
// leaves such a thread behind.

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "exec/output_log.h"
#include "lictor/time.h"

namespace lictor::exec {

/// Writes output logs on a thread of its own. All calls except those of the callbacks come from one
/// thread.
class LogWriter {
 public:
  static constexpr Duration kPatience = std::chrono::seconds{1};
  static constexpr std::size_t kMostBytes = 8U << 20U;

  /// The log of one attempt. It is among the `active` logs, if these are given, up to finish().
  struct Log {
    Log(const std::string& its_path, std::size_t cap, std::shared_ptr<ActiveLogs> active = {});
    ~Log() { close({}); }
    Log(const Log&) = delete;
    Log& operator=(const Log&) = delete;
    void close(const LogOutcome& outcome);

    const std::string path;
    const std::shared_ptr<ActiveLogs> active_logs;
    OutputLog file;     ///< touched by the writer's thread only, up to finish()
    bool used = false;  ///< something was written
    bool lost = false;  ///< later output is dropped
    bool closed = false;
  };

  /// `on_warning` gets the losses as text, at most every ten seconds, from any thread.
  explicit LogWriter(std::function<void(std::string)> on_warning);
  /// Waits until all orders are done, unless the disk stands still.
  ~LogWriter();
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  /// Copies `bytes`. Once the log is lost, drops them.
  void write(const std::shared_ptr<Log>& log, std::string_view bytes);
  /// Closes the log after everything written to it. Returns at once for a log without output.
  LogOutcome finish(const std::shared_ptr<Log>& log);

  /// Runs `work` on the writer's thread, after all earlier orders. False: `work` is not done yet,
  /// or there is no room for it and it is dropped.
  bool run(std::function<void()> work);

 private:
  struct State;

  [[nodiscard]] LogOutcome close_file(const std::shared_ptr<Log>& log);
  /// The disk takes no more of the log. Warns, and returns the error for its outcome.
  [[nodiscard]] std::string lose(Log& log);

  const std::shared_ptr<State> state_;  // outlives this while the disk stands still
  std::thread thread_;
};

}  // namespace lictor::exec
