#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/id.h"
#include "base/unique_fd.h"
#include "exec/cgroups.h"
#include "lictor/time.h"

namespace lictor::exec {

/// The environment variable that names a process's daemon and attempt, also after the process has
/// left the process group and the session of its attempt: "LICTOR_RUN=<Warden::run_id>-<attempt>".
inline constexpr std::string_view kMark = "LICTOR_RUN";

/// The attempt of this run that is named in the initial environment of `pid`. std::nullopt if there
/// is none, or we may not read it.
[[nodiscard]] std::optional<AttemptId> marked_attempt(pid_t pid, const std::string& run_id);

/// The children of this process, including zombies and adopted ones. Reads all of /proc.
[[nodiscard]] std::vector<pid_t> scan_children();

/// Lists the children by an open descriptor: fast, and needs no free one. For a single thread.
class Children {
 public:
  Children();
  [[nodiscard]] std::vector<pid_t> list();

 private:
  UniqueFd list_;  ///< absent in kernels without CONFIG_PROC_CHILDREN
};

/// The processes that the jobs of a dead daemon left.
struct LeftJobs {
  std::set<pid_t> killed;
  std::set<pid_t> alive;  ///< could not be killed in time
};
/// Kills the processes that outlived a daemon and its warden, found by cgroup and by mark. Blocks
/// for `patience` at most.
[[nodiscard]] LeftJobs kill_left_jobs(pid_t daemon, const std::string& run_id, Duration patience);

/// Kills `pid` and its process group, unless that group is ours.
void kill_with_group(pid_t pid);

/// Reaps `pid` if it is a zombie child. False while it lives, or a tracer (ptrace(2)) keeps it.
[[nodiscard]] bool reap(pid_t pid);
/// Whether `pid`, a child, is a zombie. Also finds a zombie that its tracer keeps from us:
/// waitpid(2) does not show it, its pidfd does.
[[nodiscard]] bool is_dead(pid_t pid);

/// Children of the warden for work that may wait for a disk or for a reader of standard error. The
/// warden waits for none of them, not even at its end.
class Helpers {
 public:
  /// Runs `work` in a child. The child has no descriptors but 0, 1 and 2, so that it keeps no lock,
  /// and `kept`, if given, as kKept. Returns its pid; -1: no child could be made.
  pid_t start(const std::function<void()>& work, int kept = -1);
  static constexpr int kKept = 3;

  /// Whether `pid` is a helper; reaps it if it has ended.
  [[nodiscard]] bool owns(pid_t pid);
  /// Whether owns() has not reaped it yet.
  [[nodiscard]] bool runs(pid_t pid) const { return pids_.contains(pid); }
  [[nodiscard]] bool any_runs() const { return !pids_.empty(); }

 private:
  std::set<pid_t> pids_;
};

/// The processes that the programs of attempts started and that outlive their parents. The warden
/// is a subreaper: a process that loses its parent becomes the warden's child, and when it dies,
/// its children follow. So an attempt is gone once its program is a zombie and it has no strays.
///
///   search(): cgroup, session or group of an attempt? --yes--> found(), with the attempt
///                |                                                  ^
///                +--no--> found() with zero, and unread()           |
///                            +--a helper reads the mark, learn()----+--no mark--> unknown for good
class Strays {
 public:
  /// `cgroups` must outlive this.
  Strays(const Cgroups& cgroups, std::string run_id);

  void program_started(AttemptId attempt, pid_t program,
                       const std::optional<Cgroups::Group>& cgroup);
  /// Call it before `program` can be reused.
  void program_gone(pid_t program, const std::optional<Cgroups::Group>& cgroup);

  /// Searches the children of this process, and reaps the dead ones. `is_own(pid)`: the child is
  /// neither a program nor a stray.
  void search(const std::function<bool(pid_t)>& is_own);

  /// Kills `pid` and its group. Once dead, the process is no stray, even while its tracer keeps it.
  void kill(pid_t pid);
  /// `pid`, the program of a gone attempt, is a zombie that its tracer keeps.
  void leave_to_tracer(pid_t pid) { killed_.insert(pid); }

  /// The strays of the last search, each with its attempt; zero: unknown.
  [[nodiscard]] const std::unordered_map<pid_t, AttemptId>& found() const { return found_; }
  /// The strays whose attempt only their environment may name, and whose mark is not learned yet.
  /// Reading it takes as long as the process holds its memory, so leave it to a helper.
  [[nodiscard]] const std::set<pid_t>& unread() const { return unread_; }
  [[nodiscard]] AttemptId read_mark(pid_t stray) const;
  /// Takes the answer of read_mark(); zero: there is no mark, or reading takes too long.
  void learn(pid_t stray, AttemptId attempt);
  /// The environment entry that marks `attempt`.
  [[nodiscard]] std::string mark_of(AttemptId attempt) const;

 private:
  [[nodiscard]] AttemptId owner_of(pid_t stray) const;

  const Cgroups& cgroups_;
  const std::string run_id_;
  Children children_;
  std::unordered_map<pid_t, AttemptId> attempt_of_;            // by its program
  std::unordered_map<Cgroups::Number, AttemptId> attempt_in_;  // by its cgroup
  std::unordered_map<pid_t, AttemptId> found_;
  std::set<pid_t> unread_;
  std::set<pid_t> learned_;  // and not reaped yet
  std::set<pid_t> killed_;   // and not reaped yet
};

}  // namespace lictor::exec
