#include "exec/strays.h"

#include <unistd.h>

#include <utility>

namespace lictor::exec {

Strays::Strays(const Cgroups& cgroups) : cgroups_(cgroups), self_(getpid()) {}

void Strays::program_started(AttemptId attempt, pid_t program,
                             std::optional<Cgroups::Number> cgroup) {
  attempt_of_[program] = attempt;
  if (cgroup) attempt_in_[*cgroup] = attempt;
}

void Strays::program_gone(pid_t program, std::optional<Cgroups::Number> cgroup) {
  attempt_of_.erase(program);
  if (cgroup) attempt_in_.erase(*cgroup);
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
