#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/id.h"
#include "base/unique_fd.h"
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
/// Kills the processes that outlived a warden, found by cgroup, by mark and by `is_job`, if given.
/// Blocks for `patience` at most.
[[nodiscard]] LeftJobs kill_left_jobs(pid_t daemon, const std::string& run_id, Duration patience,
                                      const std::function<bool(pid_t)>& is_job = {});

/// Kills `pid` and its process group, unless that group is ours.
void kill_with_group(pid_t pid);

/// Reaps `pid` if it is a zombie child. False while it lives, or a tracer (ptrace(2)) keeps it.
[[nodiscard]] bool reap(pid_t pid);
/// Whether `pid`, a child, is a zombie. Also finds a zombie that its tracer keeps from us:
/// waitpid(2) does not show it, its pidfd does.
[[nodiscard]] bool is_dead(pid_t pid);

}  // namespace lictor::exec
