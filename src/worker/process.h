#pragma once

// One process of a worker, seen from the daemon: three pipes.
//
//   standard input   <-- {"run": ...}, {"cancel": ...}      written without waiting; what the pipe
//                                                           does not take stays in outgoing_
//   descriptor 3     --> {"ready"}, {"progress"}, {"done"}, {"failed"}     one a line
//   output           --> the log, and the tail for an error
//
// The daemon knows how far the process has read its standard input (bytes_read()). So when the
// process ends, an attempt whose message it has not begun to read was certainly not started, and
// another process can have it.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/unique_fd.h"
#include "exec/log_writer.h"
#include "exec/process_host.h"
#include "exec/process_runner.h"
#include "lictor/time.h"
#include "worker/messages.h"

namespace lictor::worker {

/// A worker's settings, with the defaults of its keys.
struct WorkerOptions {
  exec::ProcessOptions program;
  std::uint32_t processes = 1;          ///< the most on this host
  std::uint32_t tasks_per_process = 1;  ///< attempts at a time
  std::uint64_t max_tasks = 0;          ///< then the process is replaced; 0: never
  Duration idle_timeout = std::chrono::minutes{5};
  Duration start_timeout = std::chrono::seconds{30};

  // Set from the queue and the type, not read from the settings:
  std::string queue;
  std::string type;

  friend bool operator==(const WorkerOptions&, const WorkerOptions&) = default;
};

/// The most processes of all workers of a daemon: each takes a lease slot, and the warden looks at
/// all of them. Twice as many as a configuration may ask for, since a reload starts the new ones
/// while the old ones end.
inline constexpr std::uint32_t kMostConfigured = 512;
inline constexpr std::uint32_t kMostProcesses = 2 * kMostConfigured;

/// An attempt that a process has, or that waits for one.
struct Job {
  exec::Attempt attempt;
  exec::LeaseSlot lease = exec::kNoLease;  ///< the attempt ends with it
  Instant deadline = Instant::max();
  exec::ExitCallback on_exit;
  std::uint64_t begins_at = 0;      ///< of its "run", in the bytes of standard input
  bool was_unread = false;          ///< by a process that ended
  Instant end_at = Instant::max();  ///< it was cancelled: its process is ended then
  std::string progress;
  std::shared_ptr<exec::LogWriter::Log> log;
  exec::OutputLog tail{"", 0};
};

/// Why a process ended: a label of the metrics.
enum class EndReason {
  kExited,
  kIdle,
  kMaxTasks,
  kReplaced,
  kNotReady,
  kProtocol,
  kUnanswered,
  kLease
};
inline constexpr std::size_t kEndReasons = static_cast<std::size_t>(EndReason::kLease) + 1;
[[nodiscard]] const char* name_of(EndReason reason);

/// The pipes to one process of a worker, and its lease. A passive object: its pool decides. Never
/// blocks.
///
///   starting --"ready"--> ready --standard input closed--> closing --+
///      |                    |                                |       | it exits
///      +--------------------+------- end() --------------> ending ---+--> gone
class Process {
 public:
  enum class State { kStarting, kReady, kClosing, kEnding };

  /// Identifies a process to the warden and to epoll.
  struct Identity {
    std::uint64_t number = 0;
    AttemptId id;
    exec::LeaseSlot slot = exec::kNoLease;
    int epoll = -1;
    char* buffer = nullptr;  ///< kReadBytes of the room's
  };
  /// The source of an epoll event of the process `number`.
  enum class Source : std::uint64_t { kInput, kOutput, kReplies };
  static constexpr std::uint64_t kSources = 4;
  /// A pipe's usual capacity: one read empties it.
  static constexpr std::size_t kReadBytes = 65536;

  /// `launch` has the callbacks. Errors: kFailed, kUnavailable: as ProcessHost::start().
  [[nodiscard]] static Result<std::unique_ptr<Process>> start(exec::ProcessHost& host,
                                                              const WorkerOptions& options,
                                                              exec::Program program,
                                                              Identity identity,
                                                              exec::Launch launch);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  /// Adds a line to the standard input's data. False: nobody reads that any more.
  [[nodiscard]] bool send(std::string_view line);
  /// Writes as much as the pipe takes. False: nobody reads that any more.
  [[nodiscard]] bool flush();
  void close_input();
  /// Whether nobody reads standard input any more.
  [[nodiscard]] bool is_deaf() const;
  /// Ends the events of standard input. It stays open, for bytes_read().
  void forget_input();
  /// The offset of the next message in all data for standard input, whether or not the pipe has
  /// taken it yet.
  [[nodiscard]] std::uint64_t bytes_sent() const { return sent_; }
  /// The part of bytes_sent() that the process has read.
  [[nodiscard]] std::uint64_t bytes_read() const;

  /// Up to 64 KiB of the output; "": there is none now. Valid until the next call.
  [[nodiscard]] std::string_view read_output();
  /// Reads replies into `lines`. False: there are none now.
  [[nodiscard]] bool read_replies();
  [[nodiscard]] bool replies_open() const { return static_cast<bool>(replies_); }

  /// Limits the process's lease to `lease` from now on. Call it before the attempt is sent.
  void bind(exec::LeaseSlot lease);
  /// Call it when `lease` has changed, or no attempt of it is left. Leases that are over and have
  /// no attempt are let go, so an idle process, or one busy for another partition, lives on.
  void follow(exec::LeaseSlot lease);

  /// TERM, and KILL after `grace`.
  void end(Duration grace) { host_.stop(identity.id, grace); }

  const Identity identity;
  State state = State::kStarting;
  bool said_ready = false;
  pid_t pid = 0;
  std::map<std::string, Job, std::less<>> jobs;  ///< by the attempt's name in messages
  std::uint64_t given = 0;                       ///< tasks, in all
  Instant since{};                               ///< the start of its state, or of its idleness
  /// The process closed the descriptor of its replies, as at its exit. If it lives on, it is ended.
  Instant mute_since = Instant::max();
  EndReason reason = EndReason::kExited;
  std::string fault;   ///< how it broke the protocol; empty: it did not
  bool alone = false;  ///< its attempt may have no other beside it
  std::optional<exec::ProcessEnd> ended;
  LineReader lines;
  std::shared_ptr<exec::LogWriter::Log> log;  ///< output of no attempt
  exec::OutputLog tail{"", 0};

 private:
  Process(exec::ProcessHost& host, const WorkerOptions& options, Identity the_identity)
      : identity(the_identity), host_(host), grace_(options.program.grace) {}

  [[nodiscard]] std::uint64_t event(Source source) const {
    return identity.number * kSources + static_cast<std::uint64_t>(source);
  }
  [[nodiscard]] std::string_view read_some(UniqueFd& from);
  void take_over_leases();

  exec::ProcessHost& host_;
  const Duration grace_;
  UniqueFd input_, output_, replies_;
  std::string outgoing_;
  std::uint64_t sent_ = 0;
  bool waits_for_room_ = false;         // waits for an event when the pipe takes more
  std::set<exec::LeaseSlot> leases_;    // of its attempts, until follow() lets them go
  Instant lease_end_ = Instant::max();  // the earliest deadline of them, as the board has it
};

}  // namespace lictor::worker
