// One daemon at a time uses a state_dir, and none starts while jobs of its predecessor run:
//
//   flock(lock) --taken--> a daemon there runs, or its warden still ends jobs: wait, then give up
//        |
//        +--free--> the file names a run? --yes--> daemon and warden died together: kill what the
//                          | no                    jobs of that run left, by cgroup and by mark
//                          v                                          |
//                   write our pid <-----------------------------------+
//                   ... the warden is forked, and inherits the lock: note_run() adds its run

#include "app/state_dir.h"

#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <sstream>
#include <system_error>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/errno_text.h"
#include "base/read_file.h"
#include "base/text.h"
#include "base/time_text.h"
#include "exec/children.h"
#include "runtime/log.h"

namespace lictor::app {
namespace {

tl::unexpected<Error> cannot(const std::string& what, const std::string& path, int error) {
  const auto code = error == EACCES || error == EPERM || error == EROFS
                        ? ErrorCode::kPermissionDenied
                        : ErrorCode::kFailed;
  return fail(code, "cannot " + what + " " + path + ": " + errno_text(error) +
                        (error == ENOSPC || error == EDQUOT
                             ? "; make room on the disk of state_dir"
                             : "; state_dir must be a folder that the daemon may write to"));
}

// The content of the lock file: its last writer.
struct Holder {
  pid_t daemon = 0;
  std::string run_id;    // empty: it had no warden yet
  std::string identity;  // of the file: in a copy it differs
};

Holder read_holder(int fd) {
  std::array<char, 256> bytes{};
  const auto n = pread(fd, bytes.data(), bytes.size() - 1, 0);
  std::istringstream text{
      std::string{bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(n, 0))}};
  Holder holder;
  text >> holder.daemon >> holder.run_id >> holder.identity;
  return holder;
}

std::string holder_of(int fd) {
  const pid_t pid = read_holder(fd).daemon;
  return pid == 0 ? "another lictor" : "process " + std::to_string(pid);
}

Result<void> write_holder(const std::string& path, int fd, const std::string& text) {
  if (ftruncate(fd, 0) == 0 &&
      pwrite(fd, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size())) {
    return {};
  }
  return cannot("write", path + "/lock", errno);
}

// Daemon and warden are dead, since we have the lock.
Result<void> kill_jobs_of(const Holder& last) {
  constexpr Duration kPatience = std::chrono::seconds{5};
  const exec::LeftJobs left = exec::kill_left_jobs(last.daemon, last.run_id, kPatience);
  if (!left.alive.empty()) {
    return fail(ErrorCode::kConflict,
                fmt::format("the last daemon and its warden were killed together, and these "
                            "processes of their jobs could not be killed: {}; end them, then start "
                            "lictor again",
                            fmt::join(left.alive, " ")));
  }
  if (left.killed.empty()) return {};
  runtime::log(runtime::Level::kWarn,
               "the last daemon and its warden were killed together; killed what their jobs left",
               {{"pids", fmt::format("{}", fmt::join(left.killed, " "))}});
  return {};
}

}  // namespace

Result<UniqueFd> lock_state_dir(const std::string& path, Duration patience) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return cannot("make", path, error.value());
  if (const std::string owner = state_dir_owner(path); ::geteuid() == 0 && !owner.empty()) {
    return fail(ErrorCode::kPermissionDenied,
                "state_dir " + path + " belongs to " + owner +
                    ", who could put other files where root's daemon writes; run lictor as " +
                    owner + ", or chown root the folder");
  }
  const std::string file = path + "/lock";
  UniqueFd fd{open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640)};
  if (fd.get() < 0) return cannot("open", file, errno);

  const Instant until = boot_now() + patience;
  bool is_logged = false;
  while (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return cannot("lock", file, errno);
    if (boot_now() >= until) {
      return fail(ErrorCode::kConflict, path + " is in use by " + holder_of(fd.get()) +
                                            "; give each daemon a state_dir of its own");
    }
    if (!is_logged) {
      is_logged = true;
      runtime::log(
          runtime::Level::kWarn,
          "the state_dir is in use: waiting for the daemon there and the last of its jobs to "
          "end; a second daemon on this host needs a state_dir of its own",
          {{"state_dir", path},
           {"held_by", holder_of(fd.get())},
           {"waits", format_duration(patience)}});
    }
    poll(nullptr, 0, 50);
  }
  const Holder last = read_holder(fd.get());
  if (!last.run_id.empty() && last.identity == file_identity(fd.get())) {
    if (auto killed = kill_jobs_of(last); !killed) return tl::unexpected(killed.error());
  }
  if (auto written = write_holder(path, fd.get(), std::to_string(getpid()) + "\n"); !written) {
    return tl::unexpected(written.error());
  }
  return fd;
}

Result<void> note_run(const std::string& path, const UniqueFd& lock, const std::string& run_id) {
  return write_holder(path, lock.get(),
                      fmt::format("{}\n{}\n{}\n", getpid(), run_id, file_identity(lock.get())));
}

std::string state_dir_exposure(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) return {};
  const passwd* owner = getpwuid(status.st_uid);
  const bool own_group =
      status.st_gid == getegid() || (owner != nullptr && status.st_gid == owner->pw_gid);
  const bool by_group = (status.st_mode & S_IWGRP) != 0 && !own_group;
  const bool by_all = (status.st_mode & S_IWOTH) != 0;
  if (!by_group && !by_all) return {};
  const std::string name = excerpt(path, 200);
  return "state_dir " + name + " may be written by " + (by_all ? "everybody" : "another group") +
         ": they could change its logs, and what jobs hand over for the daemon to write; chmod " +
         (by_all ? "go-w " : "g-w ") + name;
}

std::string state_dir_fault(const std::string& path) {
  std::filesystem::path there = path;
  struct stat status {};
  while (stat(there.c_str(), &status) != 0) {
    if (errno != ENOENT || !there.has_relative_path())
      return cannot("use", path, errno).value().message;
    there = there.parent_path();
  }
  if (S_ISDIR(status.st_mode) && access(there.c_str(), W_OK | X_OK) == 0) return {};
  const int error = S_ISDIR(status.st_mode) ? errno : ENOTDIR;
  return cannot(there == path ? "write to" : "make", path, error).value().message;
}

std::string state_dir_owner(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0 || status.st_uid == geteuid()) return {};
  const passwd* user = getpwuid(status.st_uid);
  return user != nullptr ? user->pw_name : "user " + std::to_string(status.st_uid);
}

}  // namespace lictor::app
