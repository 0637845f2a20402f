#include "app/state_dir.h"

#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "base/clock.h"
#include "base/errno_text.h"
#include "base/text.h"
#include "base/time_text.h"
#include "runtime/log.h"

namespace lictor::app {
namespace {

tl::unexpected<Error> cannot(const std::string& what, const std::string& path, int error) {
  const auto code = error == EACCES || error == EPERM || error == EROFS
                        ? ErrorCode::kPermissionDenied
                        : ErrorCode::kFailed;
  return fail(code, "cannot " + what + " " + path + ": " + errno_text(error) +
                        "; state_dir must be a folder that the daemon may write to");
}

// The process that wrote the lock file last, for the message.
std::string holder_of(int fd) {
  std::array<char, 32> text{};
  const auto n = pread(fd, text.data(), text.size() - 1, 0);
  if (n <= 0) return "another lictor";
  std::string pid{text.data(), static_cast<std::size_t>(n)};
  return "process " + pid.substr(0, pid.find('\n'));
}

}  // namespace

Result<UniqueFd> lock_state_dir(const std::string& path, Duration patience) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return cannot("make", path, error.value());
  const std::string file = path + "/lock";
  UniqueFd fd{open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640)};
  if (fd.get() < 0) return cannot("open", file, errno);

  const Instant until = boot_now() + patience;
  bool told = false;
  while (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return cannot("lock", file, errno);
    if (boot_now() >= until) {
      return fail(ErrorCode::kConflict, path + " is in use by " + holder_of(fd.get()) +
                                            "; give each daemon a state_dir of its own");
    }
    if (!told) {
      told = true;
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
  const std::string pid = std::to_string(getpid()) + "\n";
  if (ftruncate(fd.get(), 0) != 0 ||
      pwrite(fd.get(), pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
    return cannot("write", file, errno);
  }
  return fd;
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

std::string state_dir_owner(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0 || status.st_uid == geteuid()) return {};
  const passwd* user = getpwuid(status.st_uid);
  return user != nullptr ? user->pw_name : "user " + std::to_string(status.st_uid);
}

}  // namespace lictor::app
