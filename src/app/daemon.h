#pragma once

// The daemon, from the first system call of `lictor run` to its exit code. The order of the start
// is fixed:
//
//   1  state_dir is locked     no job of an earlier daemon runs any more
//   2  the warden is forked    a fork copies one thread only, so no other thread exists before it
//   3  host, worker room,      from here on there are threads
//      clients of Consul
//   4  the admin API listens   its addresses are in this daemon's entry among the members
//   5  queues are made         executors, plug-ins among them, whose code may start threads
//   6  the loop runs           READY=1 does not wait for Consul: a boot must not hang on it
//
// The main thread runs the loop: all queues, the member entry, the registration, transactions and
// signals. Everything that may block has a thread of its own: HTTP to Consul, the output of
// programs, the disk, the admin API, a reload, the removal of old logs. They hand over by
// Loop::post() or by an inbox and Loop::wake().
//
//   running --SIGHUP--> file read off the loop --> applied on the loop; a file with an error is not
//      |
//      +--SIGTERM, SIGINT, warden died, --once and nothing due--> stopping --> all queues stopped
//                                                                    |
//                             a second signal after a second: _Exit, and the warden kills the jobs
//
// A C++ executor that ignores its stop keeps a thread that nothing can end. Then the process exits
// without its destructors, which would wait for that thread; the warden releases the locks.

#include <functional>
#include <string>
#include <vector>

#include "app/config.h"
#include "app/executors.h"
#include "lictor/result.h"

namespace lictor::app {

struct RunOptions {
  bool once = false;                       ///< end when no due tasks are left
  std::function<Result<Config>()> reload;  ///< reads the configuration again, for SIGHUP
  /// Called once, with the admin API's addresses, before the daemon joins its queues. An error
  /// ends the daemon.
  std::function<Result<void>(const std::vector<std::string>& urls)> on_listen = {};
};

/// `lictor run`: leads or follows in every queue of `config` until SIGTERM or SIGINT. Forks the
/// warden first, so no thread may exist yet. Returns the process's exit code (commands.md).
[[nodiscard]] int run_daemon(const Config& config, const Registry& registry,
                             const RunOptions& options);

}  // namespace lictor::app
