#pragma once

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

/// Who a program runs as, where that is not the daemon's own user.
struct Credentials {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;
};

/// One setrlimit(2): `resource` is RLIMIT_NOFILE and the like.
struct Limit {
  int resource = 0;
  rlim_t soft = RLIM_INFINITY;
  rlim_t hard = RLIM_INFINITY;
};

/// What execve(2) needs.
struct Program {
  std::vector<std::string> argv;         ///< argv[0] without '/' is looked up in the daemon's PATH
  std::vector<std::string> environment;  ///< "NAME=VALUE"
  std::string directory;                 ///< "" is "/"
  std::optional<Credentials> user;
  std::vector<Limit> limits;
};

// Orders, from the daemon to the warden.

/// Comes with three descriptors: the program's standard input, and of the pipe that takes its
/// output the end to write to and the end to read from. The latter is for when the daemon is gone:
/// a job that tidies up after TERM shall not die of SIGPIPE when it says so.
struct Spawn {
  AttemptId attempt;
  LeaseSlot slot = kNoLease;
  bool ends_with_lease = true;
  Duration grace{};  ///< between TERM and KILL when the daemon is gone
  /// Of a program with a user of its own: where it leaves files for the daemon. The warden gives
  /// the folder to that user before the start, and the files to the daemon's user after the end.
  std::string handover_folder;
  std::vector<std::string> handover_files;
  Program program;
};

struct Stop {
  AttemptId attempt;
  Duration grace{};
};

/// A lease was taken up, or its deadline moved nearer: look at the board.
struct LeaseChanged {};

/// What is to be given back of a lease when the daemon is dead and the last job under it, too.
struct HeldLock {
  LeaseSlot slot = kNoLease;
  std::string session;      ///< "": nothing is
  std::uint64_t index = 0;  ///< the leader key's ModifyIndex, where the session is known to hold it
  std::string value;        ///< who held it, as the leader key told
};

using Order = std::variant<Spawn, Stop, LeaseChanged, HeldLock>;

// Reports, from the warden to the daemon.

/// What the child was doing when it failed, before the program ran.
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

/// Nothing of the attempt ever ran; no Exited follows.
struct SpawnFailed {
  AttemptId attempt;
  Step step = Step::kNone;
  int error = 0;  ///< errno
};

/// Why the warden ended a program.
enum class StopCause : std::uint8_t { kNone, kStop, kLease, kDaemonGone };

/// The program ended, and with it every process of the attempt.
struct Exited {
  AttemptId attempt;
  int code = 0;  ///< CLD_EXITED, CLD_KILLED or CLD_DUMPED, as waitid(2) has it
  int status = 0;
  StopCause cause = StopCause::kNone;
};

using Report = std::variant<SpawnFailed, Exited>;

[[nodiscard]] std::string encode(const Order& order);
[[nodiscard]] std::string encode(const Report& report);

/// Nothing when `bytes` are not what encode() makes.
[[nodiscard]] std::optional<Order> decode_order(std::string_view bytes);
[[nodiscard]] std::optional<Report> decode_report(std::string_view bytes);

/// The attempt of a Spawn of which only the first bytes came; no id if they are not of a Spawn.
[[nodiscard]] AttemptId spawn_head(std::string_view bytes);

}  // namespace lictor::exec
