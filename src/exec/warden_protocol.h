#pragma once

// The messages between the daemon and its warden, over exec/channel.h.
//
//   Spawn --+--> SpawnFailed                   no process was made: the lease was over, say
//           |
//           +--> Started --+--> Exited         all its processes are gone
//                          +--> SpawnFailed    its process could not run the program
//
// Stop and LeaseChanged have no reply: an end that they cause comes as Exited. While the daemon and
// its channel live, each Spawn gets exactly one SpawnFailed or Exited.

#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/id.h"
#include "exec/lease_board.h"
#include "lictor/time.h"

namespace lictor::exec {

/// The user of a program, if it is not the daemon's.
struct Credentials {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;

  friend bool operator==(const Credentials&, const Credentials&) = default;
};

/// One setrlimit(2): `resource` is RLIMIT_NOFILE and the like.
struct Limit {
  int resource = 0;
  rlim_t soft = RLIM_INFINITY;
  rlim_t hard = RLIM_INFINITY;

  friend bool operator==(const Limit&, const Limit&) = default;
};

/// The input of execve(2).
struct Program {
  std::vector<std::string> argv;         ///< not empty; argv[0] is a path
  std::vector<std::string> environment;  ///< "NAME=VALUE"
  std::string directory;
  std::optional<Credentials> user;
  std::vector<Limit> limits;
};

/// The descriptor that a worker replies on.
inline constexpr int kRepliesFd = 3;

// Orders, from the daemon to the warden.

/// Comes with three descriptors: the program's standard input, and the writing and the reading end
/// of its output pipe. The warden keeps the reading end: otherwise, after the daemon's death, a job
/// that cleans up after TERM would die of SIGPIPE when it prints. A worker (src/worker) has a
/// fourth: the writing end for its replies, which becomes its kRepliesFd.
struct Spawn {
  AttemptId attempt;
  LeaseSlot slot = kNoLease;
  bool ends_with_lease = true;
  Duration grace{};  ///< between TERM and KILL after the daemon's death
  /// For a program with another user: its files for the daemon. The warden gives the folder to that
  /// user before the start, and the files to the daemon's user after the end.
  std::string handover_folder;
  std::vector<std::string> handover_files;
  /// A worker runs attempts of any lease, one after the other: no lock is released while it lives.
  /// `slot` is the lease of the worker itself.
  bool is_worker = false;
  Program program;
};

struct Stop {
  AttemptId attempt;
  Duration grace{};
};

/// A lease is new, or its deadline is now earlier: read the board.
struct LeaseChanged {};

/// The lock to release when the daemon and the last job of the lease are dead.
struct HeldLock {
  LeaseSlot slot = kNoLease;
  std::string session;      ///< "": none
  std::uint64_t index = 0;  ///< the leader key's ModifyIndex, if the session is known to hold it
  std::string value;        ///< the leader key's value: its holder
  std::uint32_t partitions = 1;  ///< of the queue
  /// Set by the warden: the session holds other locks, whose jobs have not ended.
  bool keeps_session = false;
};

using Order = std::variant<Spawn, Stop, LeaseChanged, HeldLock>;

// Reports, from the warden to the daemon.

/// The step that failed before the program ran.
enum class Step : std::uint8_t {
  kNone,
  kLease,  ///< the lease had run out
  kClone,
  kSession,
  kInputOutput,
  kLimits,
  kGroups,
  kUser,
  kDirectory,
  kRun,
  kHandover,
};

/// The program never ran; no Exited follows.
struct SpawnFailed {
  AttemptId attempt;
  Step step = Step::kNone;
  int error = 0;  ///< errno
};

/// The program's process exists. SpawnFailed may follow if the process cannot run the program.
struct Started {
  AttemptId attempt;
  pid_t pid = 0;
};

/// Why the warden ended a program.
enum class StopCause : std::uint8_t { kNone, kStop, kLease, kDaemonGone };

/// All processes of the attempt have ended.
struct Exited {
  AttemptId attempt;
  int code = 0;  ///< CLD_EXITED, CLD_KILLED or CLD_DUMPED, see waitid(2)
  int status = 0;
  StopCause cause = StopCause::kNone;
};

using Report = std::variant<SpawnFailed, Started, Exited>;

[[nodiscard]] std::string encode(const Order& order);
[[nodiscard]] std::string encode(const Report& report);

/// std::nullopt if encode() has not made `bytes`.
[[nodiscard]] std::optional<Order> decode_order(std::string_view bytes);
[[nodiscard]] std::optional<Report> decode_report(std::string_view bytes);

/// The attempt of a Spawn that was cut to its first bytes; no id: the message is no Spawn.
[[nodiscard]] AttemptId spawn_head(std::string_view bytes);

}  // namespace lictor::exec
