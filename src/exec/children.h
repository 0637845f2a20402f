#pragma once

#include <sys/types.h>

#include <fstream>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/id.h"
#include "exec/cgroups.h"
#include "lictor/time.h"

namespace lictor::exec {

/// The environment variable that names a process's warden and attempt, also after the process has
/// left the process group and the session of its attempt.
inline constexpr std::string_view kMark = "LICTOR_RUN";

/// "LICTOR_RUN=<warden>-<attempt>"
[[nodiscard]] std::string mark(pid_t warden, AttemptId attempt);

/// The attempt of `warden` that is named in the initial environment of `pid`. Nothing if there is
/// none, or we may not read it.
[[nodiscard]] std::optional<AttemptId> marked_attempt(pid_t pid, pid_t warden);

/// The children of this process, including zombies and adopted ones. Reads all of /proc.
[[nodiscard]] std::vector<pid_t> scan_children();

/// The same, but fast, and also without a free descriptor. For a process of one thread.
class Children {
 public:
  Children() : list_("/proc/thread-self/children") {}
  [[nodiscard]] std::vector<pid_t> list();

 private:
  std::ifstream list_;  ///< absent in kernels without CONFIG_PROC_CHILDREN
};

/// What the jobs of a dead daemon left.
struct LeftJobs {
  std::set<pid_t> found;
  bool any_alive = false;  ///< some could not be killed in time
};
/// Kills what the jobs of a daemon left that died together with its warden: the processes in its
/// cgroups, and those that have the warden's mark. Finds nothing if another process has one of the
/// pids by now. Blocks for `patience` at most.
[[nodiscard]] LeftJobs kill_left_jobs(pid_t daemon, pid_t warden, Duration patience);

/// Kills `pid` and its process group, unless that is ours.
void kill_with_group(pid_t pid);

/// Reaps `pid` if it is a zombie child. False while it lives.
[[nodiscard]] bool reap(pid_t pid);

/// The processes that the programs of attempts started and that outlive their parents. The warden
/// is a subreaper: a process that loses its parent becomes the warden's child, and when it dies,
/// its children follow. So an attempt is gone once its program is a zombie and no stray is its.
class Strays {
 public:
  /// `cgroups` must outlive this.
  explicit Strays(const Cgroups& cgroups);

  void program_started(AttemptId attempt, pid_t program,
                       const std::optional<Cgroups::Group>& cgroup);
  /// Call it before `program` can be reused.
  void program_gone(pid_t program, const std::optional<Cgroups::Group>& cgroup);

  /// Searches the children of this process, and reaps those that are dead. `is_own`: neither a
  /// program nor a stray.
  void search(const std::function<bool(pid_t)>& is_own);

  /// What the last search found, with its attempt; zero: of unknown attempt.
  [[nodiscard]] const std::unordered_map<pid_t, AttemptId>& found() const { return found_; }
  /// What names `attempt` in a program's environment.
  [[nodiscard]] std::string mark_of(AttemptId attempt) const { return mark(self_, attempt); }

 private:
  [[nodiscard]] AttemptId owner_of(pid_t stray) const;

  const Cgroups& cgroups_;
  const pid_t self_;
  Children children_;
  std::unordered_map<pid_t, AttemptId> attempt_of_;            // by its program
  std::unordered_map<Cgroups::Number, AttemptId> attempt_in_;  // by its cgroup
  std::unordered_map<pid_t, AttemptId> found_;
};

}  // namespace lictor::exec
