#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <fstream>
#include <utility>

#include "exec/init.h"
#include "exec/process_runner.h"
#include "skip.h"
#include "support.h"

namespace lictor::exec::test {

// Protection itself needs CAP_SYS_RESOURCE; any other value is left in the same way.
TEST_CASE("the warden leaves its daemon's place with the kernel's OOM killer") {
  const pid_t child = fork();
  if (child == 0) {
    std::ofstream{"/proc/self/oom_score_adj"} << "300" << std::flush;
    if (is_protected_from_oom()) _exit(1);
    leave_oom_protection();
    _exit(contents("/proc/self/oom_score_adj") == "0\n" ? 0 : 2);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("a program that this host cannot run is not started: that is not the task's failure") {
  Program program{.argv = {"/opt/x"}};
  const auto ending = [&](Step step, int error) {
    return to_exit(AttemptId{1}, program, {SpawnFailed{AttemptId{1}, step, error}, {}}).ending;
  };
  const std::pair<Step, int> of_this_host[] = {
      {Step::kClone, EAGAIN},  {Step::kInputOutput, EMFILE}, {Step::kSession, EPERM},
      {Step::kDirectory, EIO}, {Step::kDirectory, ENOENT},   {Step::kUser, EPERM},
      {Step::kLimits, EPERM},  {Step::kRun, ENOMEM},         {Step::kRun, ENFILE},
      {Step::kRun, ETXTBSY}};
  for (const auto& [step, error] : of_this_host) {
    CAPTURE(error);
    CHECK(ending(step, error) == Ending::kNotStarted);
  }
  // The program's folder is away, or exists without its rights.
  for (const int error : {ENOENT, ENOTDIR, EACCES, EPERM, ELOOP, ESTALE, ENOTCONN, EIO, ENOEXEC}) {
    CAPTURE(error);
    CHECK(ending(Step::kRun, error) == Ending::kNotStarted);
  }
  CHECK(ending(Step::kRun, E2BIG) == Ending::kRetry);  // the task's own parameters
  CHECK(ending(Step::kLease, 0) == Ending::kStopped);
  program.limits.push_back({0, 1, 1});  // the configuration's, too
  CHECK(ending(Step::kRun, ENOMEM) == Ending::kNotStarted);
  const Exit exit =
      to_exit(AttemptId{7}, program, {SpawnFailed{AttemptId{7}, Step::kClone, EAGAIN}, {}});
  CHECK(exit.attempt == AttemptId{7});
  CHECK(exit.error == "cannot run /opt/x: new process: Resource temporarily unavailable");
}

namespace {

// PID 1 of a namespace of its own runs `body` as a daemon would. Returns its exit code.
int as_pid_1(const std::function<int()>& body) {
  const pid_t outside = fork();
  if (outside == 0) {
    if (unshare(CLONE_NEWPID) != 0) _exit(99);
    const pid_t first = fork();
    if (first == 0) {
      leave_pid_1();
      _exit(body());
    }
    int status = 0;
    waitpid(first, &status, 0);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 98);
  }
  int status = 0;
  REQUIRE(waitpid(outside, &status, 0) == outside);
  return WEXITSTATUS(status);
}

volatile sig_atomic_t got = 0;

}  // namespace

TEST_CASE("as PID 1 a daemon leaves no orphan a zombie, gets its signals and reports its end") {
  if (!is_root()) return;
  CHECK(as_pid_1([] {
          if (getpid() == 1 || getppid() != 1) return 1;
          int ends[2];
          if (pipe(ends) != 0) return 2;
          const pid_t parent = fork();
          if (parent == 0) {  // whose child loses it, and ends
            const pid_t orphan = fork();
            if (orphan == 0) {
              (void)eventually([] { return getppid() == 1; });
              _exit(0);
            }
            (void)!write(ends[1], &orphan, sizeof orphan);
            _exit(0);
          }
          pid_t orphan = 0;
          if (read(ends[0], &orphan, sizeof orphan) != sizeof orphan) return 3;
          waitpid(parent, nullptr, 0);
          if (!eventually([&] { return kill(orphan, 0) != 0 && errno == ESRCH; })) return 4;
          signal(SIGTERM, [](int) { got = 1; });
          kill(1, SIGTERM);
          return eventually([] { return got == 1; }) ? 7 : 5;
        }) == 7);
  CHECK(as_pid_1([] { return raise(SIGKILL); }) == 128 + SIGKILL);
}

}  // namespace lictor::exec::test
