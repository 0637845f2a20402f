#include "exec/spawn.h"

#include <fcntl.h>
#include <sys/wait.h>

#include <cerrno>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "support.h"

namespace lictor::exec::test {
namespace {

// Of this process; a larger one is a candidate for the kernel's OOM killer before others.
void set_oom_score(const char* value) {
  std::ofstream{"/proc/self/oom_score_adj"} << value << std::flush;
}

struct Ended {
  Step step = Step::kNone;
  int error = 0;
};

// Runs a program to its end, its output into a file.
Ended run_protected(std::vector<std::string> argv, const std::string& output) {
  Program program;
  program.argv = std::move(argv);
  Spawning spawning{std::move(program), "/usr/bin:/bin", ""};
  const UniqueFd input{open("/dev/null", O_RDONLY | O_CLOEXEC)};
  const UniqueFd file{open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)};
  const Spawning::Child child = spawning.start({input.get(), file.get()}, -1, true);
  REQUIRE(child.pid > 0);
  REQUIRE(waitpid(child.pid, nullptr, 0) == child.pid);
  return {spawning.failed_step(), spawning.error()};
}

}  // namespace

// Protection itself needs CAP_SYS_RESOURCE; any other value is inherited and left in the same way.
TEST_CASE("a job leaves its parent's place with the kernel's OOM killer, and the parent keeps it") {
  const TemporaryFolder dir;
  set_oom_score("300");
  const Ended ended = run_protected({"cat", "/proc/self/oom_score_adj"}, dir / "job");
  const std::string own = contents("/proc/self/oom_score_adj");
  set_oom_score("0");
  CHECK(ended.step == Step::kNone);
  CHECK(contents(dir / "job") == "0\n");
  CHECK(own == "300\n");
}

TEST_CASE("a child with a copy of the warden's memory tells why it could not run its program") {
  const TemporaryFolder dir;
  const Ended ended = run_protected({"/no/such/program"}, dir / "job");
  CHECK(ended.step == Step::kRun);
  CHECK(ended.error == ENOENT);
}

}  // namespace lictor::exec::test
