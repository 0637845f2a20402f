#include "exec/init.h"

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "skip.h"
#include "support.h"

namespace lictor::exec::test {
namespace {

// PID 1 of a namespace of its own runs `body` as a daemon would. Its exit code.
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

TEST_CASE("as PID 1 a daemon leaves no orphan a zombie, gets its signals and tells its end") {
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
