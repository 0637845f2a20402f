#pragma once

#include <sys/types.h>

#include "base/unique_fd.h"
#include "exec/cgroups.h"
#include "exec/channel.h"
#include "exec/lease_board.h"
#include "exec/lock_keeper.h"
#include "exec/program_table.h"
#include "lictor/result.h"

namespace lictor::exec {

/// The daemon's side of its warden.
struct Warden {
  Channel channel;
  pid_t pid = 0;
  ProgramTable programs;
  Cgroups cgroups;
};

struct WardenOptions {
  /// Holds the lock of the state directory; -1: none. The warden inherits it, and keeps it until
  /// the last process of the last attempt is gone and the locks are given back: a daemon that takes
  /// that lock knows that nothing of its predecessor runs, or asks Consul for anything.
  int lock_fd = -1;
  /// While the daemon holds a lock in Consul its loop has to turn (LeaseBoard::beat()): one that
  /// stood still for this long is killed, with its jobs. Zero: the end of the lease does for them.
  Duration hang_timeout{};
  /// Called in a child of the warden, when the daemon is dead, for each lease whose last job is;
  /// empty: locks are left to their sessions' TTL.
  GiveBackLocks give_back{};
  /// Whether each attempt gets a cgroup, where this process may make them.
  bool cgroups = true;
};

/// Forks the warden, the small process that is the parent of all programs, so that they end when
/// the daemon dies, hangs, or says so. Call it once, before there is any thread.
///
/// The warden, by what it hears of the daemon:
///
///   serving --the daemon ended, hangs, or closed the channel--> ending (TERM, grace, KILL) --+
///   exit <-- a dead daemon's locks are given back, each when the last job under it is dead <-+
///
/// and each attempt in it:
///
///   running --stop, lease passed, daemon gone--> stopping --grace--> KILL
///      |                                             |
///      +----------- its program ended ---------------+--> sweeping: whatever it left is killed
///                                                              |
///                                                   all gone --+--> reported
///
/// The warden ignores what a terminal or systemd sends to all (TERM, INT, HUP): the daemon's end is
/// its signal. Where the system has no pidfd_open(2), as some containers and valgrind, the daemon's
/// end is that of the channel alone.
///
/// Makes the calling process a child subreaper (prctl(2)): should the warden die, its programs fall
/// to the daemon, which can then still end them. Takes from it the capabilities that only the
/// warden needs (capabilities.h).
/// Errors: kFailed.
[[nodiscard]] Result<Warden> start_warden(const LeaseBoard& board, WardenOptions options);

}  // namespace lictor::exec
