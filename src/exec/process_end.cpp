#include "exec/process_end.h"

#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "base/errno_text.h"

namespace lictor::exec {
namespace {

std::string signal_text(int number) {
  const char* name = sigabbrev_np(number);
  return "signal " + std::to_string(number) + (name ? std::string{" (SIG"} + name + ")" : "");
}

std::string exit_text(const Exited& exited) {
  if (exited.code == CLD_EXITED) return "exit status " + std::to_string(exited.status);
  return "killed by " + signal_text(exited.status) +
         (exited.code == CLD_DUMPED ? ", core dumped" : "");
}

std::string cause_text(StopCause cause) {
  switch (cause) {
    case StopCause::kStop:
      return "stopped: ";
    case StopCause::kLease:
      return "stopped since the lease ran out: ";
    case StopCause::kDaemonGone:
      return "stopped since the daemon went down: ";
    case StopCause::kNone:
      break;
  }
  return {};
}

Ending ending_of(const Exited& exited) {
  const bool by_itself = exited.code == CLD_EXITED;
  if (by_itself && exited.status == 0) return Ending::kDone;
  if (exited.cause != StopCause::kNone) return Ending::kStopped;
  if (by_itself && (exited.status == 64 || exited.status == 65 || exited.status == 78)) {
    return Ending::kPermanent;
  }
  return Ending::kRetry;
}

// What the next program would come upon, too, whatever its name; but what may come of limits of its
// own.
bool is_hosts_fault(const SpawnFailed& failed, const Program& program) {
  if (failed.step == Step::kClone || failed.step == Step::kSession ||
      failed.step == Step::kInputOutput || failed.step == Step::kHandover) {
    return true;
  }
  if (failed.step == Step::kRun && failed.error == ETXTBSY) return true;  // being installed
  const bool shortage = failed.error == ENOMEM || failed.error == EAGAIN ||
                        failed.error == EMFILE || failed.error == ENFILE || failed.error == EIO;
  return shortage && program.limits.empty();
}

// "cannot run /opt/x: No such file or directory"
std::string failure_text(const SpawnFailed& failed, const Program& program) {
  std::string text =
      "cannot run " + (program.argv.empty() ? "nothing" : program.argv.front()) + ": ";
  switch (failed.step) {
    case Step::kLimits:
      text += "limits: ";
      break;
    case Step::kGroups:
      text += "change of groups: ";
      break;
    case Step::kUser:
      text += "change of user to uid " +
              std::to_string(program.user ? program.user->uid : uid_t{0}) + ": ";
      break;
    case Step::kDirectory:
      text += "working directory " + program.directory + ": ";
      break;
    case Step::kClone:
      text += "new process: ";
      break;
    case Step::kHandover:
      text += "the folder of LICTOR_COMMIT, to be given to the job's user: ";
      break;
    default:
      break;
  }
  text += errno_text(failed.error);
  if (failed.step == Step::kRun && failed.error == ENOEXEC) {
    text += " (a script needs a first line like #!/bin/sh)";
  }
  return text;
}

}  // namespace

Exit judge(AttemptId attempt, const Program& program, ProcessEnd end) {
  Exit exit{};
  exit.attempt = attempt;
  exit.output_tail = std::move(end.output_tail);
  if (const auto* exited = std::get_if<Exited>(&end.how)) {
    exit.ending = ending_of(*exited);
    if (exit.ending != Ending::kDone) exit.error = cause_text(exited->cause) + exit_text(*exited);
  } else if (const auto* failed = std::get_if<SpawnFailed>(&end.how)) {
    const bool lease = failed->step == Step::kLease;
    exit.ending = lease                              ? Ending::kStopped
                  : is_hosts_fault(*failed, program) ? Ending::kNotStarted
                                                     : Ending::kRetry;
    exit.error = lease ? "the lease ran out before it started" : failure_text(*failed, program);
  } else {
    exit.ending = Ending::kStopped;
    exit.error = "the warden died";
  }
  return exit;
}

}  // namespace lictor::exec
