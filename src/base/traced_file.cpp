#include "base/traced_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "base/text.h"

namespace lictor {
namespace {

constexpr int kMaxLinks = 40;  // as the kernel

// The user id that a user namespace shows for all users outside of it. Nobody inside has it.
std::optional<uid_t> outsiders() {
  std::ifstream map{"/proc/self/uid_map"};
  std::uint64_t inside = 0;
  std::uint64_t outside = 0;
  std::uint64_t count = 0;
  const bool is_first = !(map >> inside >> outside >> count) || count >= 0xffffffffU;
  uid_t shown_as = 0;
  if (is_first || !(std::ifstream{"/proc/sys/kernel/overflowuid"} >> shown_as)) return std::nullopt;
  return shown_as;
}

// How others could change the file, in words; empty if they cannot.
std::string fault_of(const struct stat& status, uid_t owner) {
  if (status.st_uid != 0 && status.st_uid != owner && status.st_uid != outsiders()) {
    return "belongs to another user than root";
  }
  const bool is_shared = S_ISDIR(status.st_mode) && (status.st_mode & S_ISVTX) != 0;
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0 && !is_shared && !S_ISLNK(status.st_mode)) {
    return "may be written by others than root";
  }
  return {};
}

bool is_on_proc(const std::filesystem::path& folder) {
  struct statfs system {};
  return ::statfs(folder.c_str(), &system) == 0 && system.f_type == PROC_SUPER_MAGIC;
}

// Follows `path` as the kernel does, and notes in `file` the first step that others could change.
// Behind a step without a fault only root can change the next. False: this is not the way to the
// opened file; somebody has changed it meanwhile.
bool walk(const std::string& path, uid_t owner, TracedFile& file) {
  namespace fs = std::filesystem;
  const auto note = [&](const fs::path& step, const struct stat& status) {
    const std::string fault = file.fault.empty() ? fault_of(status, owner) : std::string{};
    if (fault.empty()) return;
    file.culprit = step.string();
    file.fault =
        (S_ISDIR(status.st_mode) ? "the folder " : "") + excerpt(file.culprit, 200) + ' ' + fault;
  };
  std::error_code error;
  fs::path left = fs::absolute(path, error);
  fs::path way;  // so far, without links
  int links = 0;
  struct stat status {};
  while (!left.empty()) {
    const fs::path name = *left.begin();
    fs::path rest;
    for (auto it = std::next(left.begin()); it != left.end(); ++it) rest /= *it;
    left = std::move(rest);
    if (name.empty() || name == ".") continue;
    const fs::path step = name == ".." ? way.parent_path() : way / name;
    if (lstat(step.c_str(), &status) != 0) return false;
    note(step, status);
    // A link on /proc may have a target without a path, such as a pipe: the kernel follows it.
    if (!S_ISLNK(status.st_mode) || is_on_proc(way)) {
      way = step;
      continue;
    }
    const fs::path target = fs::read_symlink(step, error);
    if (error || ++links > kMaxLinks) return false;
    left = left.empty() ? target : target / left;
    if (target.is_absolute()) way.clear();
  }
  if (stat(way.c_str(), &status) != 0) return false;
  note(way, status);
  return status.st_dev == file.status.st_dev && status.st_ino == file.status.st_ino;
}

}  // namespace

std::optional<TracedFile> open_traced(const std::string& path, int flags, uid_t owner) {
  constexpr int kMostTries = 1000;
  for (int i = 0; i < kMostTries; ++i) {
    TracedFile file;
    file.fd.reset(::open(path.c_str(), flags | O_CLOEXEC));
    if (!file.fd || ::fstat(file.fd.get(), &file.status) != 0) return std::nullopt;
    if (walk(path, owner, file)) return file;
  }
  errno = EAGAIN;
  return std::nullopt;
}

std::string distrust(const TracedFile& file, const std::string& deed) {
  if (::geteuid() != 0 || file.fault.empty()) return {};
  return file.fault + ", and lictor runs as root: they could " + deed +
         "; chown root and chmod go-w " + excerpt(file.culprit, 200);
}

}  // namespace lictor
