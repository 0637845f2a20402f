#pragma once

// How the daemon runs programs without being their parent. The warden starts and ends them, so that
// they end with their lease even when the daemon is dead or hangs. The host sends the orders, reads
// the programs' output and learns their ends.
//
//   loop, workers --start(), stop()--> Channel -------> warden --fork--> program
//                                                         |                |
//   host's thread  <-- Started, Exited, SpawnFailed ------+                |
//       |          <-- pipe: standard output and error --------------------+
//       |
//       +--> tail in memory, log by LogWriter --> on_end(): how it ended, and its output
//
// The host's thread must not wait, since the end of every program passes through it. Work that may
// wait for a disk goes to the LogWriter, which bounds the wait; responds() tells the loop when the
// thread is late all the same. A worker's pipes are read by its room instead (worker/room.h).
//
// If the warden dies, the kernel kills the programs with it (PR_SET_PDEATHSIG). Their descendants
// become the daemon's children, which kills them by cgroup, session and environment. Then
// every job ends as WardenDied, and the daemon stops in order, since it can start no program.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <variant>
#include <vector>

#include "base/unique_fd.h"
#include "exec/lease_board.h"
#include "exec/log_writer.h"
#include "exec/output_log.h"
#include "exec/runner.h"
#include "exec/warden.h"
#include "exec/warden_protocol.h"

namespace lictor::exec {

/// The warden is dead, and its programs were killed.
struct WardenDied {};

/// How a program's attempt ended. None of its processes is left, and all its output was read and is
/// in its log.
struct ProcessEnd {
  std::variant<Exited, SpawnFailed, WardenDied> how;
  std::string output_tail;
};

/// A worker's ends of its pipes; the other ends belong to its owner.
struct WorkerStreams {
  UniqueFd input;
  UniqueFd output;
  UniqueFd output_reader;  ///< a copy of the owner's end, for the warden
  UniqueFd replies;
};

/// A program to run for an attempt.
struct Launch {
  Spawn spawn;
  std::optional<WorkerStreams> streams{};    ///< for a worker; otherwise start() makes them
  std::shared_ptr<const std::string> input;  ///< standard input; null: empty
  std::shared_ptr<LogWriter::Log> log;       ///< null: none
  std::function<void(ProcessEnd)> on_end;    ///< runs once, on the host's thread
  std::function<void(pid_t)> on_pid;  ///< if the program starts, on that thread; may be empty
};

/// The daemon's side of the warden. One for a daemon, shared by its ProcessRunners. Thread-safe.
///
/// An attempt ends with the warden's report, not with its output: a job may close that early, and a
/// process that it left may hold it open. After the report, only the rest of the pipe is read.
class ProcessHost {
 public:
  struct Hooks {
    std::function<void(std::string)> on_warning;  ///< such as a lost log; any thread
    std::function<void()> on_warden_death;        ///< once; from now on start() fails
  };

  /// Starts the host's thread. `board` must be the warden's and outlive the host. on_warden_death()
  /// runs on the host's thread. Errors: kFailed.
  [[nodiscard]] static Result<std::unique_ptr<ProcessHost>> create(Warden warden, LeaseBoard& board,
                                                                   Hooks hooks);

  /// Has the warden end all programs (TERM, grace, KILL), and waits until every on_end has run.
  /// Releases no lock.
  ~ProcessHost();
  ProcessHost(const ProcessHost&) = delete;
  ProcessHost& operator=(const ProcessHost&) = delete;

  /// Errors: kUnavailable, the warden is dead; kFailed, no descriptors or memory. Then `on_end`
  /// never runs. `on_end` gets later failures, such as a missing program.
  [[nodiscard]] Result<void> start(Launch launch);

  /// Sends TERM to the attempt's process group, and KILL after `grace`.
  void stop(AttemptId attempt, Duration grace);

  /// LeaseBoard::extend() and clear(); wakes the warden if needed. Extending a lease that holds
  /// makes no system call.
  void set_lease(LeaseSlot slot, Instant deadline, Duration grace);
  void clear_lease(LeaseSlot slot);

  /// set_lease() for the lease of a worker's process, which follows the leases of its attempts.
  void set_worker_lease(LeaseSlot slot, Instant deadline, Duration grace);
  /// `follow` is called after each set_lease() and clear_lease(), on their thread. Call this before
  /// them, and with an empty `follow` when they are over.
  void follow_leases(std::function<void(LeaseSlot)> follow) { follow_ = std::move(follow); }

  /// Gives the warden the lock that it must release if this process dies.
  void keep_lock(HeldLock lock);

  /// Runs `work`, which may wait for a disk, on the thread that writes the logs; waits for it as
  /// LogWriter does. Only for callbacks on the host's thread.
  void on_disk(std::function<void()> work) { logs_.run(std::move(work)); }

  /// Whether the host's thread makes progress; it waits only as LogWriter does.
  [[nodiscard]] bool responds(Instant now) const noexcept;

  [[nodiscard]] LeaseBoard& board() { return board_; }
  [[nodiscard]] const std::function<void(std::string)>& on_warning() const {
    return hooks_.on_warning;
  }

 private:
  struct Job {
    OutputLog tail{"", 0};                ///< tail only, no file
    std::shared_ptr<LogWriter::Log> log;  ///< null: none
    UniqueFd output;
    UniqueFd writer;  ///< keeps the pipe open: its end of file would only cost a wake-up
    std::function<void(ProcessEnd)> on_end;
    std::function<void(pid_t)> on_pid;
    pid_t program = 0;  ///< 0: its start is not reported yet
  };

  ProcessHost(Warden warden, LeaseBoard& board, Hooks hooks, UniqueFd epoll);

  /// Makes the program's input and output; the packet gets its ends, `job` gets ours.
  [[nodiscard]] Result<Packet> make_streams(const Launch& launch, Job& job);
  /// Call with the mutex held. False: the warden is gone.
  [[nodiscard]] bool send(Packet& packet);
  void run();
  void read_reports();
  void read_output(AttemptId id);
  [[nodiscard]] bool read_once(Job& job);
  void on_report(const Started& started);
  void on_report(const auto& ended) { end(ended.attempt, ended); }
  void end(AttemptId id, std::variant<Exited, SpawnFailed, WardenDied> how);
  void lose_warden();
  void wake_warden() const;
  /// `programs`: by pid, which is also their session and process group.
  void kill_orphans(const std::vector<pid_t>& programs);

  LeaseBoard& board_;
  const Hooks hooks_;
  const pid_t warden_pid_;
  const std::string run_id_;
  const UniqueFd epoll_;
  std::function<void(LeaseSlot)> follow_;

  std::mutex mutex_;  // guards the members below, and sending
  Channel channel_;
  std::unordered_map<AttemptId, std::unique_ptr<Job>> jobs_;  // only the host's thread erases
  bool closing_ = false;
  bool warden_gone_ = false;

  std::atomic<std::int64_t> step_began_ns_ = 0;  // of the host's thread; 0: it waits for events
  std::unique_ptr<char[]> buffer_;               // used by the host's thread only
  LogWriter logs_;                               // used by the host's thread only
  std::thread thread_;
};

}  // namespace lictor::exec
