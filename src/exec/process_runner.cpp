#include "exec/process_runner.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/errno_text.h"
#include "base/read_file.h"
#include "base/text.h"
#include "base/try.h"

namespace lictor::exec {
namespace {

// The largest file of a commit or a result: Consul refuses larger requests.
constexpr std::size_t kMaxHandedBytes = 524288;

std::string exit_text(const Exited& exited) {
  if (exited.code == CLD_EXITED) return fmt::format("exit status {}", exited.status);
  const char* name = sigabbrev_np(exited.status);
  return fmt::format("killed by signal {}{}{}", exited.status,
                     name ? fmt::format(" (SIG{})", name) : "",
                     exited.code == CLD_DUMPED ? ", core dumped" : "");
}

std::string cause_text(StopCause cause) {
  static constexpr std::array kTexts{
      "", "stopped: ", "stopped since the lease ran out: ", "stopped since the daemon went down: "};
  static_assert(kTexts.size() == static_cast<std::size_t>(StopCause::kDaemonGone) + 1);
  return kTexts.at(static_cast<std::size_t>(cause));
}

// Exit 0 counts even after a stop: the job has done its work, and a second run would do it twice.
Ending ending_of(const Exited& exited) {
  const bool by_itself = exited.code == CLD_EXITED;
  if (by_itself && exited.status == 0) return Ending::kDone;
  if (exited.cause != StopCause::kNone) return Ending::kStopped;
  if (by_itself && (exited.status == 64 || exited.status == 65 || exited.status == 78)) {
    return Ending::kPermanent;
  }
  return Ending::kRetry;
}

// Program, user, folder and limits come from the configuration, and this host may lack them. Only
// arguments and environment that are too large may be the task's fault.
bool is_tasks_fault(const SpawnFailed& failed) {
  return failed.step == Step::kRun && failed.error == E2BIG;
}

// The step that failed before the program could run; empty: running the program itself.
std::string step_text(Step step, const Program& program) {
  switch (step) {
    case Step::kLimits:
      return "limits: ";
    case Step::kGroups:
      return "change of groups: ";
    case Step::kUser:
      return "change of user to uid " + std::to_string(program.user ? program.user->uid : 0) + ": ";
    case Step::kDirectory:
      return "working directory " + program.directory + ": ";
    case Step::kClone:
      return "new process: ";
    case Step::kHandover:
      return "cannot give the folder of LICTOR_COMMIT to the job's user: ";
    default:
      return {};
  }
}

// "cannot run /opt/x: No such file or directory"
std::string failure_text(const SpawnFailed& failed, const Program& program,
                         const std::optional<User>& user) {
  const std::string& path = program.argv.front();
  std::string text =
      "cannot run " + path + ": " + step_text(failed.step, program) + errno_text(failed.error);
  if (failed.step != Step::kRun) return text;
  if (failed.error == ENOEXEC) return text + " (a script needs a first line like #!/bin/sh)";
  if (failed.error == ENOENT && access(path.c_str(), F_OK) == 0) {
    return text + " (the file is there; the interpreter in its first line, or its loader, is not)";
  }
  if (failed.error != EACCES) return text;
  return fmt::format(
      "{} (to {}{}; make the program executable with chmod +x, and its folders passable)", text,
      user ? "user " : "the daemon's user", user ? user->name : "");
}

// The files of LICTOR_COMMIT and LICTOR_RESULT.
struct Handover {
  std::string directory;
  std::string commit_path;  // "": there are none
  std::string result_path;
  bool other_user = false;  // the warden has given the files to this process's user
};

// Reads the file; std::nullopt if there is none. The job owns the directory, so `path` may be
// anything: a link to a file that only we may read, or a FIFO that blocks its opener.
Result<std::optional<std::string>> take_file(const std::string& path, bool other_user) {
  const UniqueFd file{open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)};
  if (!file && errno == ENOENT) return std::nullopt;
  const bool is_special = !file && (errno == ELOOP || errno == ENXIO);
  if (!file && !is_special) return fail(ErrorCode::kFailed, errno_text());
  struct stat info {};
  // A file with another name may be our own, linked to by another user.
  if (is_special || fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode) ||
      info.st_uid != geteuid() || (other_user && info.st_nlink > 1)) {
    return fail(ErrorCode::kFailed,
                "expected a regular file of the job's own user, not a symbolic link, a FIFO or the "
                "like");
  }
  auto bytes = read_up_to(file.get(), kMaxHandedBytes);
  if (!bytes) return fail(ErrorCode::kFailed, errno_text());
  if (bytes->size() > kMaxHandedBytes) {
    return fail(ErrorCode::kFailed,
                "expected at most " + std::to_string(kMaxHandedBytes) + " bytes, got more");
  }
  return bytes;
}

void take_handover(const Handover& handover, Exit& exit) {
  if (handover.commit_path.empty()) return;
  if (exit.ending != Ending::kDone) return;
  auto commit = take_file(handover.commit_path, handover.other_user);
  auto result = take_file(handover.result_path, handover.other_user);
  if (commit && result && !*commit && !*result && access(handover.directory.c_str(), F_OK) != 0) {
    // The job may have ignored a failed write.
    exit.ending = Ending::kRetry;
    exit.error =
        "the directory of LICTOR_COMMIT is gone: " + handover.directory + ": " + errno_text();
    return;
  }
  if (!commit) {
    exit.ending = Ending::kRetry;
    exit.error = "cannot take over the file LICTOR_COMMIT: " + commit.error().message;
    return;
  }
  exit.commit = std::move(*commit);
  if (result) {
    exit.result = std::move(*result);
  } else {
    exit.result_fault = "cannot take over the file LICTOR_RESULT: " + result.error().message;
  }
}

// Removes only existing files: on a disk that stands still, even removing a missing file waits.
void remove_handover(const Handover& handover, ProcessHost& host) {
  if (handover.commit_path.empty()) return;
  for (const std::string& path : {handover.commit_path, handover.result_path}) {
    struct stat info {};
    if (lstat(path.c_str(), &info) == 0) host.on_disk([path] { unlink(path.c_str()); });
  }
}

Result<std::string> make_scratch(const std::string& directory, const std::optional<User>& user) {
  const uid_t uid = user ? user->credentials.uid : geteuid();
  const std::string own = directory + "/" + std::to_string(uid);
  mkdir(directory.c_str(), 0711);  // The next mkdir() reports a failure.
  // Despite the umask, jobs of other users may pass through; they cannot list it.
  chmod(directory.c_str(), 0711);
  if (mkdir(own.c_str(), 0700) != 0 && errno != EEXIST) {
    return fail(ErrorCode::kFailed, "cannot make the directory " + own + " below state_dir: " +
                                        errno_text() + "; no job can start on this host");
  }
  // The warden gives it to that user; this process still reads it as a member of the group.
  if (user) chmod(own.c_str(), 0770);
  return own;
}

}  // namespace

Exit to_exit(AttemptId attempt, const Program& program, ProcessEnd end,
             const std::optional<User>& user) {
  Exit exit{};
  exit.attempt = attempt;
  exit.output_tail = std::move(end.output_tail);
  if (const auto* exited = std::get_if<Exited>(&end.how)) {
    exit.ending = ending_of(*exited);
    if (exit.ending != Ending::kDone) exit.error = cause_text(exited->cause) + exit_text(*exited);
    const bool failed = exit.ending == Ending::kRetry || exit.ending == Ending::kPermanent;
    const std::string said = failed ? last_line(exit.output_tail) : std::string{};
    if (!said.empty()) exit.error += ": " + said;
  } else if (const auto* failed = std::get_if<SpawnFailed>(&end.how)) {
    const bool lease = failed->step == Step::kLease;
    exit.ending = lease                     ? Ending::kStopped
                  : is_tasks_fault(*failed) ? Ending::kRetry
                                            : Ending::kNotStarted;
    exit.error = lease ? kLeaseOver : failure_text(*failed, program, user);
  } else {
    exit.ending = Ending::kLost;
    exit.error = "the warden died";
  }
  return exit;
}

Program make_program(const ProcessOptions& options) {
  Program program{options.argv, {}, options.directory, {}, options.limits};
  if (program.directory.empty()) {
    std::error_code error;
    program.directory = std::filesystem::current_path(error).string();
    if (error) program.directory = "/";
  }
  if (options.user) program.user = options.user->credentials;
  return program;
}

struct ProcessRunner::Settings {
  ProcessOptions options;
  Program program;  // without its environment
  Variables base;
  std::string handover_directory;  // "": no handover
  std::string handover_stem;
};

Result<std::unique_ptr<ProcessRunner>> ProcessRunner::create(ProcessHost& host,
                                                             ProcessOptions options) {
  if (options.argv.empty() || options.argv.front().empty()) {
    return fail(ErrorCode::kInvalid, "exec: expected a program and its arguments, got nothing");
  }
  auto settings = std::make_shared<Settings>();
  if (!options.scratch_directory.empty()) {
    LICTOR_TRY(settings->handover_directory, make_scratch(options.scratch_directory, options.user));
    // Names are unique across daemons, so that an attempt never gets an older file.
    settings->handover_stem = settings->handover_directory + "/" +
                              std::to_string(boot_now().time_since_epoch().count()) + "-";
  }
  settings->program = make_program(options);
  settings->base = base_environment(environ, options.user ? &*options.user : nullptr);
  settings->options = std::move(options);
  return std::unique_ptr<ProcessRunner>{new ProcessRunner{host, std::move(settings)}};
}

Result<void> ProcessRunner::start(Attempt attempt, Instant deadline, ExitCallback on_exit) {
  const ProcessOptions& options = settings_->options;

  Launch launch;
  launch.spawn.attempt = attempt.id;
  launch.spawn.slot = slot_of(options.slot, attempt);
  launch.spawn.ends_with_lease = options.ends_with_lease;
  launch.spawn.grace = options.grace;
  launch.spawn.program = settings_->program;
  launch.spawn.program.environment =
      job_environment(settings_->base, options.environment, attempt, to_wall_time(deadline));
  launch.input = attempt.record;
  if (!options.log_directory.empty()) {
    launch.log = std::make_shared<LogWriter::Log>(
        output_log_path(options.log_directory, attempt.queue, attempt.key_id, attempt.number,
                        attempt.fencing_token),
        options.log_cap, options.active_logs);
  }

  Handover handover;
  if (!settings_->handover_directory.empty()) {
    handover.directory = settings_->handover_directory;
    if (access(handover.directory.c_str(), F_OK) != 0) {  // it was removed
      LICTOR_TRY(handover.directory, make_scratch(options.scratch_directory, options.user));
    }
    const std::string stem = settings_->handover_stem + std::to_string(attempt.fencing_token) +
                             "-" + std::to_string(attempt.id.value);
    handover.commit_path = stem + ".commit";
    handover.result_path = stem + ".result";
    handover.other_user = options.user.has_value();
    if (handover.other_user) {
      launch.spawn.handover_folder = handover.directory;
      launch.spawn.handover_files = {handover.commit_path, handover.result_path};
    }
    launch.spawn.program.environment.push_back("LICTOR_COMMIT=" + handover.commit_path);
    launch.spawn.program.environment.push_back("LICTOR_RESULT=" + handover.result_path);
  }

  launch.on_pid = std::move(attempt.on_pid);
  launch.on_end = [id = attempt.id, settings = settings_, handover = std::move(handover),
                   on_exit = std::move(on_exit), &host = host_](ProcessEnd end) {
    Exit exit = to_exit(id, settings->program, std::move(end), settings->options.user);
    take_handover(handover, exit);
    remove_handover(handover, host);
    on_exit(std::move(exit));
  };
  return host_.start(std::move(launch));
}

}  // namespace lictor::exec
