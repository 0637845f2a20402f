#pragma once

#include <sys/types.h>

#include "exec/channel.h"
#include "exec/lease_board.h"
#include "exec/program_table.h"
#include "exec/unique_fd.h"
#include "lictor/result.h"

namespace lictor::exec {

/// The daemon's side of its warden.
struct Warden {
  Channel channel;
  pid_t pid = 0;
  ProgramTable programs;
};

/// Forks the warden, the small process that is the parent of all programs, so that they end when
/// the daemon dies, hangs past its lease, or says so. Call it once, before there is any thread.
///
/// The warden, by what it hears of the daemon:
///
///   serving --the daemon ended, or closed the channel--> ending (TERM, grace, KILL) --> exit
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
/// end is that of the channel alone. It inherits `lock_fd` (-1: none), which holds the lock of the state directory, and
/// keeps it until the last process of the last attempt is gone: a daemon that takes that lock knows
/// that nothing of its predecessor runs.
///
/// Makes the calling process a child subreaper (prctl(2)): should the warden die, its programs fall
/// to the daemon, which can then still end them.
/// Errors: kFailed.
[[nodiscard]] Result<Warden> start_warden(const LeaseBoard& board, int lock_fd);

}  // namespace lictor::exec
