#include "exec/children.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>
#include <utility>

#include "base/clock.h"
#include "base/read_file.h"
#include "base/text.h"
#include "exec/cgroups.h"

namespace lictor::exec {
namespace {

// Fields 3 and on of /proc/<pid>/stat. Field 2, the name, may hold any bytes, also a ')'.
std::string status_of(pid_t pid) {
  std::ifstream file{"/proc/" + std::to_string(pid) + "/stat"};
  std::string stat;
  std::getline(file, stat, '\0');  // all of it
  const std::size_t name_end = stat.rfind(')');
  return name_end == std::string::npos || name_end + 4 > stat.size() ? std::string{}
                                                                     : stat.substr(name_end + 2);
}

// 0: unknown.
pid_t parent_of(pid_t pid) {
  const std::string status = status_of(pid);
  if (status.size() < 2) return 0;
  const std::string_view rest = std::string_view{status}.substr(2);
  return to_number<pid_t>(rest.substr(0, rest.find(' '))).value_or(0);
}

std::vector<pid_t> all_processes_if(const std::function<bool(pid_t)>& is_wanted) {
  std::vector<pid_t> found;
  const std::unique_ptr<DIR, int (*)(DIR*)> proc{opendir("/proc"), closedir};
  while (const dirent* entry = proc ? readdir(proc.get()) : nullptr) {
    const auto pid = to_number<pid_t>(entry->d_name);
    if (pid && is_wanted(*pid)) found.push_back(*pid);
  }
  return found;
}

}  // namespace

std::optional<AttemptId> marked_attempt(pid_t pid, const std::string& run_id) {
  const std::string prefix = std::string{kMark} + "=" + run_id + "-";
  std::ifstream environment{"/proc/" + std::to_string(pid) + "/environ"};
  for (std::string variable; std::getline(environment, variable, '\0');) {
    if (!variable.starts_with(prefix)) continue;
    const auto id = to_number<std::uint64_t>(std::string_view{variable}.substr(prefix.size()));
    if (id) return AttemptId{*id};
  }
  return std::nullopt;
}

std::vector<pid_t> scan_children() {
  return all_processes_if([](pid_t pid) { return parent_of(pid) == getpid(); });
}

// A killed process leaves the list once it is a zombie: a zombie's environment is empty.
LeftJobs kill_left_jobs(pid_t daemon, const std::string& run_id, Duration patience,
                        const std::function<bool(pid_t)>& is_job) {
  LeftJobs left;
  const Instant until = boot_now() + patience;
  while (true) {
    const std::vector<pid_t> in_group = Cgroups::kill_group_of(daemon, run_id);
    const std::vector<pid_t> others = all_processes_if([&](pid_t pid) {
      return marked_attempt(pid, run_id).has_value() || (is_job && is_job(pid));
    });
    for (const pid_t pid : others) kill_with_group(pid);
    left.alive = {in_group.begin(), in_group.end()};
    left.alive.insert(others.begin(), others.end());
    left.killed.insert(left.alive.begin(), left.alive.end());
    if (left.alive.empty() || boot_now() >= until) break;
    poll(nullptr, 0, 10);
  }
  for (const pid_t pid : left.alive) left.killed.erase(pid);
  return left;
}

Children::Children() : list_(open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC)) {}

std::vector<pid_t> Children::list() {
  constexpr std::size_t kMostBytes = 64U << 20U;  // the kernel has at most 4 million processes
  if (!list_ || lseek(list_.get(), 0, SEEK_SET) != 0) return scan_children();
  std::istringstream list{read_up_to(list_.get(), kMostBytes).value_or("")};
  return std::vector<pid_t>(std::istream_iterator<pid_t>{list}, {});
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
    return reaped != 0;  // Also true if it is not our child: there is nothing to wait for.
  }
}

bool is_dead(pid_t pid) {
  const UniqueFd process{static_cast<int>(syscall(SYS_pidfd_open, pid, 0))};
  pollfd end{process.get(), POLLIN, 0};
  return process && poll(&end, 1, 0) == 1;
}

}  // namespace lictor::exec
