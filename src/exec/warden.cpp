#include "exec/warden.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <utility>
#include <vector>

#include "base/errno_text.h"
#include "base/random.h"
#include "base/try.h"
#include "exec/privileges.h"
#include "exec/warden_log.h"
#include "exec/warden_loop.h"

namespace lictor::exec {
namespace {

// Closes inherited descriptors: a dead daemon's sockets would stay open while its jobs run.
void close_all_but(std::vector<int> kept) {
  std::sort(kept.begin(), kept.end());
  unsigned first = 0;
  for (const int fd : kept) {
    if (fd < 0) continue;
    const auto number = static_cast<unsigned>(fd);
    if (number > first) syscall(SYS_close_range, first, number - 1, 0);
    first = number + 1;
  }
  syscall(SYS_close_range, first, ~0U, 0);
}

// All signals except the ones that our own faults raise.
sigset_t common_signals() {
  sigset_t signals;
  sigfillset(&signals);
  for (const int fault : {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP}) {
    sigdelset(&signals, fault);
  }
  return signals;
}

// Programs would inherit ignored signals, and a handler would run in a child that shares our
// memory.
void reset_signals() {
  for (int number = 1; number < NSIG; ++number) {
    if (number != SIGKILL && number != SIGSTOP) signal(number, SIG_DFL);
  }
}

[[noreturn]] void run_warden(const LeaseBoard& board, Channel channel, Cgroups cgroups,
                             UniqueFd daemon, pid_t daemon_pid, std::string run_id,
                             WardenOptions options) {
  reset_signals();
  setsid();
  prctl(PR_SET_NAME, "lictor-warden");
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  prctl(PR_SET_PDEATHSIG, SIGCHLD);  // only a wake-up, see WardenLoop::daemon_is_dead()
  if (is_protected_from_oom()) leave_oom_protection();
  // The environment may hold Consul's token: jobs of our user must not read it or trace us.
  prctl(PR_SET_DUMPABLE, 0);
  const auto must = [](bool done, const std::string& what) {
    if (done) return;
    emit("the warden cannot " + what + ": " + errno_text());
    _exit(EXIT_FAILURE);
  };
  must(keep_only_job_capabilities(),
       "drop capabilities (allow the system call capset, see job-user.conf)");
  must(chdir("/") == 0, "change to the folder /");

  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  must(null >= 0 && dup2(null, 0) >= 0 && dup2(null, 1) >= 0 &&
           (fcntl(2, F_GETFD) >= 0 || dup2(null, 2) >= 0),
       "open /dev/null");
  close_all_but(
      {0, 1, 2, channel.fd(), daemon.get(), options.lock_fd, cgroups.fd(), cgroups.parent_fd()});

  WardenLoop loop{
      board,      std::move(channel), std::move(cgroups),   std::move(daemon),
      daemon_pid, std::move(run_id),  options.hang_timeout, std::move(options.release_locks)};
  loop.run();
  _exit(EXIT_SUCCESS);  // without the daemon's exit handlers
}

}  // namespace

Result<Warden> start_warden(const LeaseBoard& board, WardenOptions options) {
  LICTOR_TRY(auto ends, Channel::create());
  UniqueFd daemon{static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0))};
  if (!daemon && errno != ENOSYS && errno != EPERM) {
    return fail(ErrorCode::kFailed, "cannot watch a process (pidfd_open): " + errno_text());
  }
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) {
    return fail(ErrorCode::kFailed, "cannot become a child subreaper: " + errno_text());
  }

  const std::string run_id = Random{random_seed()}.hex();
  Cgroups cgroups = options.cgroups ? Cgroups::create(run_id) : Cgroups{};

  // Block before the fork: a signal to all processes could kill the warden at its start.
  const sigset_t blocked = common_signals();
  sigset_t before;
  pthread_sigmask(SIG_BLOCK, &blocked, &before);
  const pid_t daemon_pid = getpid();
  const pid_t pid = fork();
  const int fork_error = errno;
  if (pid != 0) pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) {
    return fail(ErrorCode::kFailed, "cannot fork the warden: " + errno_text(fork_error));
  }
  if (pid == 0) {
    { const Channel daemons_end = std::move(ends.first); }
    run_warden(board, std::move(ends.second), std::move(cgroups), std::move(daemon), daemon_pid,
               run_id, std::move(options));
  }
  if (auto dropped = drop_job_capabilities(); !dropped) return tl::unexpected(dropped.error());
  return Warden{std::move(ends.first), pid, run_id, std::move(cgroups)};
}

}  // namespace lictor::exec
