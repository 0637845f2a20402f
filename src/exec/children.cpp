#include "exec/children.h"

#include <dirent.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <iterator>
#include <memory>
#include <utility>

#include "base/clock.h"
#include "base/text.h"

namespace lictor::exec {
namespace {

// /proc/<pid>/stat from the third field on, the state: the second, the name, may hold any bytes.
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

// Containers number their processes anew, so a warden there may have the same pid as one here.
bool is_in_our_pid_namespace(pid_t pid) {
  struct stat ours {
  }, its{};
  return stat("/proc/self/ns/pid", &ours) == 0 &&
         stat(("/proc/" + std::to_string(pid) + "/ns/pid").c_str(), &its) == 0 &&
         ours.st_ino == its.st_ino;
}

// Neither gone nor a zombie.
bool is_alive(pid_t pid) {
  const std::string status = status_of(pid);
  return !status.empty() && status.front() != 'Z' && status.front() != 'X';
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

std::string mark(pid_t warden, AttemptId attempt) {
  return std::string{kMark} + "=" + std::to_string(warden) + "-" + std::to_string(attempt.value);
}

std::optional<AttemptId> marked_attempt(pid_t pid, pid_t warden) {
  const std::string prefix = std::string{kMark} + "=" + std::to_string(warden) + "-";
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

// A zombie's environment is empty.
LeftJobs kill_left_jobs(pid_t daemon, pid_t warden, Duration patience) {
  LeftJobs left;
  if (is_alive(daemon) || is_alive(warden)) return left;
  const Instant until = boot_now() + patience;
  do {
    const std::vector<pid_t> in_group = Cgroups::kill_group_of(daemon);
    const std::vector<pid_t> marked = all_processes_if([warden](pid_t pid) {
      return marked_attempt(pid, warden).has_value() && is_in_our_pid_namespace(pid);
    });
    for (const pid_t pid : marked) kill_with_group(pid);
    left.found.insert(in_group.begin(), in_group.end());
    left.found.insert(marked.begin(), marked.end());
    left.any_alive = !in_group.empty() || !marked.empty();
    if (left.any_alive) poll(nullptr, 0, 10);
  } while (left.any_alive && boot_now() < until);
  return left;
}

std::vector<pid_t> Children::list() {
  if (!list_.is_open()) return scan_children();
  list_.clear();
  list_.seekg(0);
  return std::vector<pid_t>(std::istream_iterator<pid_t>{list_}, {});
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

Strays::Strays(const Cgroups& cgroups) : cgroups_(cgroups), self_(getpid()) {}

void Strays::program_started(AttemptId attempt, pid_t program,
                             const std::optional<Cgroups::Group>& cgroup) {
  attempt_of_[program] = attempt;
  if (cgroup) attempt_in_[cgroup->number] = attempt;
}

void Strays::program_gone(pid_t program, const std::optional<Cgroups::Group>& cgroup) {
  attempt_of_.erase(program);
  if (cgroup) attempt_in_.erase(cgroup->number);
}

void Strays::search(const std::function<bool(pid_t)>& is_own) {
  std::unordered_map<pid_t, AttemptId> strays;
  for (const pid_t pid : children_.list()) {
    if (attempt_of_.contains(pid) || is_own(pid) || reap(pid)) continue;
    const auto known = found_.find(pid);
    strays[pid] = known != found_.end() && known->second ? known->second : owner_of(pid);
  }
  found_ = std::move(strays);
}

AttemptId Strays::owner_of(pid_t stray) const {
  if (const auto cgroup = cgroups_.group_of(stray)) {
    const auto found = attempt_in_.find(*cgroup);
    if (found != attempt_in_.end()) return found->second;
  }
  for (const pid_t leader : {getsid(stray), getpgid(stray)}) {
    const auto found = attempt_of_.find(leader);
    if (found != attempt_of_.end()) return found->second;
  }
  return marked_attempt(stray, self_).value_or(AttemptId{});
}

}  // namespace lictor::exec
