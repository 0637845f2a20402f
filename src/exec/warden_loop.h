#pragma once

// One thread that must never be late: a missed deadline lets a job run on while another host
// already leads. So nothing in the loop waits, and each turn has the same order: first read all
// sources, then act on deadlines.
//
//   channel   orders: start, stop, a lease changed, a lock -----------+
//   daemon    its pidfd: it is dead, so all attempts are stopped      |
//   timer     a lease ends, a KILL is due, or ends are checked again  |
//   signals   SIGCHLD: programs or strays ended                       |
//   heartbeat a timer: has the daemon's loop stopped?                 |
//   outputs   of a dead daemon's jobs: read and dropped               v
//
//             leases --> kills --> sweep --> timer armed --> locks of a dead daemon released
//
// An attempt is over only when every process that it started is gone, since only then may another
// host run the task again. The end of the program kills its process group. A process outside it is
// a stray: it lost its parent and became the warden's child. Each sweep searches the children for
// strays, finds their attempt by cgroup, session or environment, and kills those of ended
// attempts. Their deaths bring SIGCHLD and the next sweep; the attempt is reported after the last.
//
// warden_loop.cpp has the turn and the orders, warden_ends.cpp the end of attempts.

#include <sys/types.h>

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/id.h"
#include "base/unique_fd.h"
#include "exec/cgroups.h"
#include "exec/channel.h"
#include "exec/helpers.h"
#include "exec/lease_board.h"
#include "exec/lock_keeper.h"
#include "exec/spawn.h"
#include "exec/strays.h"
#include "exec/warden_protocol.h"
#include "lictor/time.h"

namespace lictor::exec {

/// The loop of the warden (warden.h): one thread, which only blocks in epoll_wait(2). It never
/// waits for another process, a disk or a reader: helpers do (Helpers), and the programs' own
/// processes before their execve. A debugger that has a program by ptrace(2) keeps its SIGCHLD and
/// its zombie, so the loop looks again for whatever it has killed.
class WardenLoop {
 public:
  /// `daemon` is its pidfd, which may be missing. All signals are blocked, and 0, 1 and 2 open.
  /// `board` must outlive the loop.
  WardenLoop(const LeaseBoard& board, Channel channel, Cgroups cgroups, UniqueFd daemon,
             pid_t daemon_pid, std::string run_id, Duration hang_timeout,
             ReleaseLocks release_locks);

  /// Returns when the daemon and all processes that it started are gone, and its locks are
  /// released.
  void run();

 private:
  struct Attempt {
    Spawn order;  ///< its program is in `spawning`
    Spawning spawning;
    pid_t pid = -1;
    UniqueFd pidfd;
    UniqueFd output;  ///< the daemon reads it as long as it lives
    uid_t uid = 0;    ///< the owner of order.handover_files
    std::optional<Cgroups::Group> cgroup;
    StopCause cause = StopCause::kNone;  ///< the first; a program that ended by itself has none
    Instant kill_at = Instant::max();    ///< the earliest of all orders to end it
    bool killed = false;
    bool ended = false;  ///< its program is a zombie, so its pid and process group stay valid
    Instant ended_at{};
    std::optional<Exited> exit{};  ///< its program is reaped, or left to its tracer
    pid_t file_helper = 0;         ///< the helper that takes over its files; -1: none could start
  };

  void read_orders();
  void obey(Spawn& spawn, Packet& packet);
  void obey(const Stop& stop, Packet& packet);
  void obey(const LeaseChanged& changed, Packet& packet);
  void obey(HeldLock& lock, Packet& packet);
  void send(const Report& report);

  // In warden_ends.cpp:
  [[nodiscard]] static Instant after(Instant start, Duration wait);
  void check_leases(Instant now);
  void kill_what_is_due(Instant now);
  void lose_channel();
  void lose_daemon();
  void kill_daemon(std::string_view why);
  void check_heartbeat();
  [[nodiscard]] bool daemon_is_dead() const;
  void release_locks();
  void stop(Attempt& attempt, StopCause cause, Instant kill_at);
  void find_ended();
  void program_ended(AttemptId id);
  void arm_timer();
  void sweep();
  [[nodiscard]] bool reads_marks();
  [[nodiscard]] bool read_exit(AttemptId id, Attempt& attempt);
  [[nodiscard]] bool take_over_files(Attempt& attempt);
  void report_exit(AttemptId id, const Attempt& attempt);

  void watch_heartbeat();
  void discard_outputs();
  void discard_output(AttemptId id);

  const LeaseBoard& board_;
  Channel channel_;
  Cgroups cgroups_;
  UniqueFd daemon_;
  pid_t daemon_pid_;

  UniqueFd epoll_;
  /// An epoll set of the programs' pidfds. It wakes nobody: the SIGCHLD that follows does, and then
  /// one call finds all ended programs.
  UniqueFd ends_;
  UniqueFd timer_;
  UniqueFd signals_;
  UniqueFd heartbeat_timer_;  ///< for hang_watch_
  Strays strays_;
  Helpers helpers_;
  /// Reading another process's environment may take long, so a helper does. Until it has answered,
  /// for a second at most, ended attempts wait: an unread stray may be theirs.
  struct MarkReader {
    pid_t helper = -1;
    UniqueFd answers;
    std::set<pid_t> strays;
    Instant until{};
  };
  std::optional<MarkReader> mark_reader_;
  LockKeeper locks_;
  HangWatch hang_watch_;

  std::unordered_map<AttemptId, Attempt> attempts_;
  std::size_t ended_unreported_ = 0;  ///< attempts
  Instant armed_ = Instant::max();
  Instant checked_at_{};  ///< the leases; a deadline that passed since then is still to be seen
  Instant recheck_at_ = Instant::max();  ///< for ends without a signal
  bool daemon_gone_ = false;
  bool kill_is_logged_ = false;
  bool discarding_ = false;  ///< reads and drops outputs for a dead daemon
  bool leases_changed_ = false;
  bool kill_unknown_strays_ = false;
  bool sweep_due_ = false;
  bool watches_heartbeat_ = false;
};

}  // namespace lictor::exec
