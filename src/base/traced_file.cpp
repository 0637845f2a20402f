#include "base/traced_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "base/text.h"

namespace lictor {
namespace {

constexpr int kMaxLinks = 40;  // as the kernel
constexpr int kStep = O_PATH | O_NOFOLLOW | O_CLOEXEC;

// The user as which a user namespace shows all users outside of it. Nobody inside is this user.
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

// What others could do to it, in words; empty if they cannot.
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

bool is_on_proc(int fd) {
  struct statfs system {};
  return ::fstatfs(fd, &system) == 0 && system.f_type == PROC_SUPER_MAGIC;
}

// The walk along one path.
class Walk {
 public:
  Walk(std::string path, int flags, uid_t owner)
      : flags_(flags | O_CLOEXEC), owner_(owner), left_(std::move(path)) {}

  std::optional<TracedFile> run() {
    if (left_.empty()) return failed(ENOENT);
    if (left_.front() != '/') {
      std::error_code error;
      left_ = (std::filesystem::current_path(error) / left_).string();
      if (error) return failed(error.value());
    }
    while (!left_.empty()) {
      if (left_.front() == '/' && !enter_root()) return std::nullopt;
      const std::string name = next_name();
      if (!step(name)) return std::nullopt;
    }
    return std::move(file_);
  }

 private:
  static std::nullopt_t failed(int error) {
    errno = error;
    return std::nullopt;
  }

  bool enter_root() {
    left_.erase(0, left_.find_first_not_of('/'));
    way_ = "/";
    return take(UniqueFd{::open("/", left_.empty() ? flags_ : kStep)});
  }

  std::string next_name() {
    const std::size_t end = left_.find('/');
    std::string name = left_.substr(0, end);
    left_.erase(0, left_.find_first_not_of('/', end));
    ends_in_slash_ = end != std::string::npos && left_.empty();
    return name;
  }

  // To `name` in the folder that was reached.
  bool step(const std::string& name) {
    if (name.empty()) return true;
    const std::filesystem::path folder = way_;
    way_ = name == ".." ? folder.parent_path() : name == "." ? folder : folder / name;
    const UniqueFd place = open_in_folder(name, kStep);
    struct stat status {};
    if (!place || ::fstat(place.get(), &status) != 0) return false;
    if (!S_ISLNK(status.st_mode)) {
      // O_DIRECTORY triggers a mount on demand.
      const int folder_flag = left_.empty() && !ends_in_slash_ ? 0 : O_DIRECTORY;
      return take(
          open_in_folder(name, (left_.empty() ? flags_ | O_NOFOLLOW : kStep) | folder_flag));
    }
    note(status);
    if (++links_ > kMaxLinks) return failed(ELOOP), false;
    if (is_on_proc(place.get())) {  // Its target may have no path, as a pipe.
      return take(open_in_folder(name, left_.empty() ? flags_ : O_PATH | O_CLOEXEC));
    }
    std::array<char, PATH_MAX> target{};
    const ssize_t length = ::readlinkat(place.get(), "", target.data(), target.size());
    if (length <= 0 || length == ssize_t{target.size()}) return failed(ENAMETOOLONG), false;
    std::string rest{target.data(), static_cast<std::size_t>(length)};
    if (!left_.empty() || ends_in_slash_) rest += '/' + left_;
    left_ = std::move(rest);
    way_ = folder;
    return true;
  }

  [[nodiscard]] UniqueFd open_in_folder(const std::string& name, int flags) const {
    return UniqueFd{::openat(file_.fd.get(), name.c_str(), flags)};
  }

  bool take(UniqueFd place) {
    if (!place || ::fstat(place.get(), &file_.status) != 0) return false;
    note(file_.status);
    file_.fd = std::move(place);
    return true;
  }

  void note(const struct stat& status) {
    if (!file_.fault.empty()) return;
    const std::string fault = fault_of(status, owner_);
    if (fault.empty()) return;
    file_.culprit = way_.string();
    file_.fault =
        (S_ISDIR(status.st_mode) ? "the folder " : "") + excerpt(file_.culprit, 200) + ' ' + fault;
  }

  const int flags_;
  const uid_t owner_;
  std::string left_;           // of the path
  std::filesystem::path way_;  // so far, without links
  bool ends_in_slash_ = false;
  int links_ = 0;
  TracedFile file_;
};

}  // namespace

std::optional<TracedFile> open_traced(const std::string& path, int flags, uid_t owner) {
  return Walk{path, flags, owner}.run();
}

std::string distrust(const TracedFile& file, const std::string& deed) {
  if (::geteuid() != 0 || file.fault.empty()) return {};
  return file.fault + ", and lictor runs as root: they could " + deed +
         "; chown root and chmod go-w " + excerpt(file.culprit, 200);
}

}  // namespace lictor
