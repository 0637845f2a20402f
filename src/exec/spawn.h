#pragma once

#include <memory>
#include <string_view>

#include "base/unique_fd.h"
#include "exec/warden_protocol.h"

namespace lictor::exec {

/// One child on its way to execve(2).
///
/// The child is a clone that shares our memory (CLONE_VM), so nothing is copied and it costs what
/// vfork(2) costs, but we do not wait for its execve as vfork does: a program on a dead NFS mount
/// would hold up the warden, and with it every deadline. Hence the child has its own stack, makes
/// system calls and nothing else (errno is the parent's), and leaves an error here.
///
/// What the child gets: a session and a process group of its own, which have its pid; nothing open
/// but 0, 1 and 2; all signals at their defaults and unblocked; no capabilities, unless the warden
/// is root; death by SIGKILL if the warden dies. The caller has all signals blocked and at their defaults.
class Spawning {
 public:
  /// `path` is what argv[0] is looked up in if it has no '/'.
  Spawning(Program program, std::string_view path);

  struct Child {
    pid_t pid = -1;
    UniqueFd pidfd;
    int error = 0;  ///< errno, if there is no child
  };

  /// Call once. `cgroup` is the folder of the cgroup that the child runs in; -1: the warden's. The
  /// child has its own copies of the descriptors. This object must live until the child was reaped,
  /// or is at least a zombie.
  [[nodiscard]] Child start(int input, int output, int cgroup);

  /// Once the child is a zombie: what went wrong before the program ran. kNone if it ran.
  [[nodiscard]] Step failed_step() const;
  [[nodiscard]] int error() const;

  Spawning(Spawning&&) noexcept;
  Spawning& operator=(Spawning&&) noexcept;
  ~Spawning();

 private:
  struct Block;
  std::unique_ptr<Block> block_;
};

}  // namespace lictor::exec
