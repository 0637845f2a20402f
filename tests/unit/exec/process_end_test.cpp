#include <cerrno>
#include <utility>

#include <doctest/doctest.h>

#include "exec/process_runner.h"

namespace lictor::exec {

TEST_CASE("a program that this host cannot run is not started: that is not the task's failure") {
  Program program;
  program.argv = {"/opt/x"};
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
  // The folder of the program is away, or is there without its rights.
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

}  // namespace lictor::exec
