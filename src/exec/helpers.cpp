#include "exec/helpers.h"

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>

#include "exec/children.h"

namespace lictor::exec {

pid_t Helpers::start(const std::function<void()>& work, int kept) {
  const pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_NAME, "lictor-helper");
    const bool keeps = kept >= 0 && dup2(kept, kKept) >= 0;
    syscall(SYS_close_range, keeps ? 4U : 3U, ~0U, 0);
    work();
    _exit(EXIT_SUCCESS);
  }
  if (pid > 0) pids_.insert(pid);
  return pid;
}

bool Helpers::owns(pid_t pid) {
  if (!pids_.contains(pid)) return false;
  if (reap(pid)) pids_.erase(pid);
  return true;
}

}  // namespace lictor::exec
