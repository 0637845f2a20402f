#include <cerrno>
#include <string>

#include <doctest/doctest.h>

#include "exec/process_runner.h"

namespace lictor::exec {

TEST_SUITE_BEGIN("exec");

TEST_CASE("a start that fails because the host lacks a resource is not the job's failure") {
  Program program;
  program.argv = {"/opt/x"};
  const auto ending = [&](Step step, int error) {
    return judge(AttemptId{1}, program, {SpawnFailed{AttemptId{1}, step, error}, {}}).ending;
  };
  CHECK(ending(Step::kClone, EAGAIN) == Ending::kNotStarted);
  CHECK(ending(Step::kInputOutput, EMFILE) == Ending::kNotStarted);
  CHECK(ending(Step::kSession, EPERM) == Ending::kNotStarted);
  CHECK(ending(Step::kRun, ENOMEM) == Ending::kNotStarted);
  CHECK(ending(Step::kRun, ENFILE) == Ending::kNotStarted);
  CHECK(ending(Step::kRun, ETXTBSY) == Ending::kNotStarted);
  CHECK(ending(Step::kDirectory, EIO) == Ending::kNotStarted);

  CHECK(ending(Step::kRun, ENOENT) == Ending::kRetry);
  CHECK(ending(Step::kRun, E2BIG) == Ending::kRetry);  // the task's own parameters
  CHECK(ending(Step::kDirectory, ENOENT) == Ending::kRetry);
  CHECK(ending(Step::kUser, EPERM) == Ending::kRetry);
  CHECK(ending(Step::kLease, 0) == Ending::kStopped);

  program.limits.push_back({0, 1, 1});  // it may be these that it comes upon
  CHECK(ending(Step::kRun, ENOMEM) == Ending::kRetry);
  CHECK(ending(Step::kClone, ENOMEM) == Ending::kNotStarted);

  const Exit exit =
      judge(AttemptId{7}, program, {SpawnFailed{AttemptId{7}, Step::kClone, EAGAIN}, {}});
  CHECK(exit.attempt == AttemptId{7});
  CHECK(exit.error == "cannot run /opt/x: new process: Resource temporarily unavailable");
}

TEST_SUITE_END();

}  // namespace lictor::exec
