#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/id.h"
#include "base/unique_fd.h"

namespace lictor::exec {

/// The environment variable that says of which attempt a process is, and of which warden: it stays
/// with what leaves the process group and the session of its attempt.
inline constexpr std::string_view kMark = "LICTOR_RUN";

/// "LICTOR_RUN=<warden>-<attempt>"
[[nodiscard]] std::string mark(pid_t warden, AttemptId attempt);

/// The attempt that is named in the environment that `pid` was given, if it is one of `warden`'s
/// and we may read it.
[[nodiscard]] std::optional<AttemptId> marked_attempt(pid_t pid, pid_t warden);

/// The children of the calling process, zombies and adopted ones included. Reads all of /proc.
[[nodiscard]] std::vector<pid_t> scan_children();

/// The same for a process of one thread, quickly: the thread that made this object.
class Children {
 public:
  Children();
  [[nodiscard]] std::vector<pid_t> list();

 private:
  UniqueFd list_;  ///< of this thread; only where the kernel has it (CONFIG_PROC_CHILDREN)
};

/// Kills `pid`, and the process group it is in unless that is ours.
void kill_with_group(pid_t pid);

/// Reaps `pid` if it is a zombie of ours. False while it lives.
[[nodiscard]] bool reap(pid_t pid);

}  // namespace lictor::exec
