#include "exec/children.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <memory>

namespace lictor::exec {
namespace {

template <class Number>
std::optional<Number> number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The whole of a file of /proc, whose size is not known beforehand.
std::string read_whole(int fd) {
  std::string bytes;
  std::array<char, 4096> part{};
  while (true) {
    const ssize_t n = pread(fd, part.data(), part.size(), static_cast<off_t>(bytes.size()));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return bytes;
    bytes.append(part.data(), static_cast<std::size_t>(n));
  }
}

std::string read_whole(const std::string& path) {
  const UniqueFd file{open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  return file ? read_whole(file.get()) : std::string{};
}

// The parent of `pid`, or 0: the fourth field of its stat, where the second may hold anything.
pid_t parent_of(std::string_view pid) {
  const std::string stat = read_whole("/proc/" + std::string{pid} + "/stat");
  const std::size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos || name_end + 4 > stat.size()) return 0;
  const std::string_view rest = std::string_view{stat}.substr(name_end + 4);  // ") S "
  return number<pid_t>(rest.substr(0, rest.find(' '))).value_or(0);
}

}  // namespace

std::string mark(pid_t warden, AttemptId attempt) {
  return std::string{kMark} + "=" + std::to_string(warden) + "-" + std::to_string(attempt.value);
}

std::optional<AttemptId> marked_attempt(pid_t pid, pid_t warden) {
  const std::string environment = read_whole("/proc/" + std::to_string(pid) + "/environ");
  const std::string prefix = std::string{kMark} + "=" + std::to_string(warden) + "-";
  std::string_view rest = environment;
  while (!rest.empty()) {
    const std::string_view variable = rest.substr(0, rest.find('\0'));
    if (variable.starts_with(prefix)) {
      const auto id = number<std::uint64_t>(variable.substr(prefix.size()));
      if (id) return AttemptId{*id};
    }
    rest.remove_prefix(std::min(rest.size(), variable.size() + 1));
  }
  return std::nullopt;
}

std::vector<pid_t> scan_children() {
  std::vector<pid_t> found;
  const std::unique_ptr<DIR, int (*)(DIR*)> proc{opendir("/proc"), closedir};
  if (!proc) return found;
  while (const dirent* entry = readdir(proc.get())) {
    const auto pid = number<pid_t>(entry->d_name);
    if (pid && parent_of(entry->d_name) == getpid()) found.push_back(*pid);
  }
  return found;
}

Children::Children() : list_(open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC)) {}

std::vector<pid_t> Children::list() {
  if (!list_) return scan_children();
  std::vector<pid_t> found;
  const std::string text = read_whole(list_.get());
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    if (const auto pid = number<pid_t>(rest.substr(0, end))) found.push_back(*pid);
    rest.remove_prefix(std::min(rest.size(), end + 1));
  }
  return found;
}

void kill_with_group(pid_t pid) {
  const pid_t group = getpgid(pid);
  if (group > 1 && group != getpgrp()) kill(-group, SIGKILL);
  kill(pid, SIGKILL);
}

bool reap(pid_t pid) {
  while (true) {
    const pid_t reaped = waitpid(pid, nullptr, WNOHANG);
    if (reaped < 0 && errno == EINTR) continue;
    return reaped != 0;  // Also when it is not our child: nothing of it is left to wait for.
  }
}

}  // namespace lictor::exec
