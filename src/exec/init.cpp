#include "exec/init.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <ctime>

#include "base/clock.h"

namespace lictor::exec {
namespace {

// Time for the warden of a killed daemon: kill_grace, and the release of its locks.
constexpr Duration kWardenPatience = std::chrono::seconds{60};

[[noreturn]] void serve_as_init(pid_t child, const sigset_t& signals) {
  prctl(PR_SET_NAME, "lictor-init");
  int status = 0;
  bool ended = false;
  Instant until = Instant::max();
  while (true) {
    constexpr timespec kLook{1, 0};
    siginfo_t info{};
    const int number = sigtimedwait(&signals, &info, &kLook);
    // Signals from a terminal (the kernel) reached the child too; forward only those of processes.
    const bool from_process = info.si_code <= 0;
    if (number > 0 && number != SIGCHLD && from_process && !ended) kill(child, number);
    pid_t reaped = 0;
    for (int how = 0; (reaped = waitpid(-1, &how, WNOHANG)) > 0;) {
      if (reaped != child) continue;
      ended = true;
      status = how;
      until = boot_now() + (WIFSIGNALED(how) ? kWardenPatience : Duration{});
    }
    const bool alone = reaped < 0 && errno == ECHILD;
    if (ended && (alone || boot_now() >= until)) break;
  }
  _exit(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
}

}  // namespace

void leave_pid_1() {
  if (getpid() != 1) return;
  sigset_t all, before;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, &before);
  const pid_t child = fork();
  if (child > 0) serve_as_init(child, all);
  // If fork() failed, run as PID 1; orphans then stay zombies.
  sigprocmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace lictor::exec
