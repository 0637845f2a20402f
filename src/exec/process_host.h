#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>

#include "base/unique_fd.h"
#include "exec/lease_board.h"
#include "exec/output_log.h"
#include "exec/process_end.h"
#include "exec/program_table.h"
#include "exec/runner.h"
#include "exec/warden.h"
#include "exec/warden_protocol.h"

namespace lictor::exec {

/// A program to be run for an attempt.
struct Launch {
  Spawn spawn;
  std::shared_ptr<const std::string> input;  ///< its standard input; null is none
  std::string log_path;                      ///< where its output goes; "" is nowhere
  std::size_t log_cap = 0;
  std::function<void(ProcessEnd)> on_end;  ///< runs once, on the host's thread
};

/// The daemon's side of the warden: sends it orders, reads what programs print, hears how they end.
/// One for a daemon, shared by all its ProcessRunners. Thread-safe.
///
/// An attempt's end is the warden's report, not the end of its output, which a job may close early
/// and what it left behind may hold open. After the report what is in the pipe is read, and no
/// more.
class ProcessHost {
 public:
  struct Hooks {
    std::function<void(std::string)> on_warning;  ///< an output log that cannot be written
    std::function<void()> on_warden_death;        ///< once; nothing can be started any more
  };

  /// Starts the host's thread. `board` is the one that the warden was started with and must outlive
  /// the host. The hooks run on the host's thread. Errors: kFailed.
  [[nodiscard]] static Result<std::unique_ptr<ProcessHost>> create(Warden warden, LeaseBoard& board,
                                                                   Hooks hooks);

  /// Has the warden end what still runs (TERM, grace, KILL), and waits for it: every on_end has run
  /// then. It gives back no lock.
  ~ProcessHost();
  ProcessHost(const ProcessHost&) = delete;
  ProcessHost& operator=(const ProcessHost&) = delete;

  /// Errors: kUnavailable when the warden is dead; kFailed when the system is out of descriptors or
  /// memory. Then `on_end` never runs. What fails later, a program that is not there too, is an
  /// end.
  [[nodiscard]] Result<void> start(Launch launch);

  /// TERM to the attempt's process group, and KILL after `grace`.
  void stop(AttemptId attempt, Duration grace);

  /// LeaseBoard::extend() and clear(), and the warden told where it has to be. No system call while
  /// a lease that holds is extended.
  void set_lease(LeaseSlot slot, Instant deadline, Duration grace);
  void clear_lease(LeaseSlot slot);

  /// What the warden is to give back of a lease should this process die.
  void keep_lock(HeldLock lock);

  [[nodiscard]] LeaseBoard& board() { return board_; }

 private:
  struct Job {
    OutputLog log;
    UniqueFd output;
    UniqueFd writer;  ///< of the same pipe, whose end of file would be no news but a wake-up
    std::function<void(ProcessEnd)> on_end;
  };

  ProcessHost(Warden warden, LeaseBoard& board, Hooks hooks, UniqueFd epoll, UniqueFd wake);

  [[nodiscard]] bool send(Packet& packet);
  void watch_channel();
  void run();
  void read_reports();
  void handle(const Report& report);
  void read_output(AttemptId id);
  [[nodiscard]] bool read_once(Job& job);
  void close_output(Job& job);
  void warn(std::string problem);
  void end(AttemptId id, std::variant<Exited, SpawnFailed, WardenDied> how);
  void lose_warden();
  void wake_warden() const;
  void kill_orphans();
  [[nodiscard]] Job* find(AttemptId id);

  LeaseBoard& board_;
  const Hooks hooks_;
  const pid_t warden_pid_;
  const ProgramTable programs_;
  Cgroups cgroups_;
  const UniqueFd epoll_;
  const UniqueFd wake_;

  std::mutex mutex_;  // for what follows, and the channel's sending side
  Channel channel_;
  std::unordered_map<AttemptId, std::unique_ptr<Job>> jobs_;  // erased by the host's thread alone
  bool closing_ = false;
  bool warden_gone_ = false;
  std::uint32_t watched_events_ = 0;

  Instant last_warning_{};          // the host's thread only
  std::unique_ptr<char[]> buffer_;  // likewise
  std::thread thread_;
};

}  // namespace lictor::exec
