#pragma once

#include <memory>
#include <string>

#include "base/unique_fd.h"
#include "exec/warden_protocol.h"

namespace lictor::exec {

/// Starts one child, up to its execve(2).
///
///   session, cgroup, handover folder --> descriptors, limits --> groups, user, capabilities --+
///                                                                                             |
///            execve <-- signals unblocked <-- SIGKILL at the warden's death <-- directory <---+
///
/// A failing step writes its name and errno into shared memory and ends the child. The order
/// matters: after the change of user the child can give away no folder, and the change clears the
/// signal for the warden's death.
///
/// The child shares our memory (CLONE_VM), which is as cheap as vfork(2), but we do not wait for
/// its execve: a program on a dead NFS mount would block the warden and all its deadlines. So the
/// child has its own stack, makes only system calls (errno is the parent's), and leaves its error
/// here.
///
/// The child gets its own session and process group, named by its pid; open descriptors 0, 1 and 2
/// only, and 3 if it has replies; all signals at their defaults and unblocked; no capabilities,
/// unless the warden is root; SIGKILL when the warden dies. The caller must have all signals
/// blocked and at their defaults.
class Spawning {
 public:
  /// The child gives `handover_folder` to the program's user, if both are given.
  Spawning(Program program, std::string handover_folder);

  struct Child {
    pid_t pid = -1;
    UniqueFd pidfd;
    int error = 0;  ///< errno if there is no child
  };

  /// The descriptors that become the child's 0, its 1 and 2, and its kRepliesFd; -1: none.
  struct Streams {
    int input = -1;
    int output = -1;
    int replies = -1;
  };

  /// Call once. `cgroup` is the folder of the child's cgroup; -1: the warden's. The child has its
  /// own copies of the descriptors. This object must live until the child is a zombie.
  [[nodiscard]] Child start(const Streams& streams, int cgroup);

  /// Once the child is a zombie: the step that failed; kNone: the program ran.
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
