#pragma once

#include <sys/types.h>

#include <string>

#include "exec/cgroups.h"
#include "exec/channel.h"
#include "exec/lease_board.h"
#include "exec/lock_keeper.h"
#include "lictor/result.h"

namespace lictor::exec {

/// The daemon's side of its warden.
struct Warden {
  Channel channel;
  pid_t pid = 0;
  std::string run_id;  ///< of this run of the daemon; unique
  Cgroups cgroups;
};

struct WardenOptions {
  /// The lock of the state directory; -1: none. The warden inherits the lock and keeps it until all
  /// processes of all attempts are gone and all locks are released. So a daemon that gets it knows
  /// that no job of its predecessor runs, unless the warden was killed too (see app/state_dir.h),
  /// and that no request of its predecessor is under way to Consul.
  int lock_fd = -1;
  /// While the daemon holds a lock in Consul: if its loop makes no progress (LeaseBoard::beat())
  /// for this long, the warden kills the daemon and its jobs. Zero: only the end of the lease ends
  /// them.
  Duration hang_timeout{};
  /// Called in a child of the warden when the daemon and all jobs of a lease are dead; empty: the
  /// sessions' TTL frees the locks.
  ReleaseLocks release_locks{};
  /// Whether each attempt gets a cgroup, if this process may make them.
  bool cgroups = true;
};

/// Forks the warden, the small process that is the parent of all programs and ends them when the
/// daemon dies, hangs, or says so. Call it once, before there is any thread.
///
/// The states of the warden:
///
///   serving --the daemon ended, hangs, or closed the channel--> ending (TERM, grace, KILL) --+
///   exit <-- a dead daemon's locks are released, each when the last job under it is dead <---+
///
/// and of each attempt:
///
///   running --stop, lease passed, daemon gone--> stopping --grace--> KILL
///      |                                             |
///      +----------- its program ended ---------------+--> sweeping: its processes are killed
///                                                              |
///                                                   all gone --+--> reported
///
/// The warden ignores the signals that a terminal or systemd sends to all processes (TERM, INT,
/// HUP) and ends with the daemon. Without pidfd_open(2), as in some containers and valgrind, the
/// end of the channel means the end of the daemon.
///
/// Makes the calling process a child subreaper (prctl(2)): if the warden dies, its programs become
/// the daemon's children, which can then kill them. Drops the capabilities that only the warden
/// needs (privileges.h).
/// Errors: kFailed.
[[nodiscard]] Result<Warden> start_warden(const LeaseBoard& board, WardenOptions options);

}  // namespace lictor::exec
