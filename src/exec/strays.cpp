#include "exec/strays.h"

#include <unistd.h>

#include <utility>

namespace lictor::exec {

Strays::Strays(const Cgroups& cgroups, std::string run_id)
    : cgroups_(cgroups), run_id_(std::move(run_id)) {}

std::string Strays::mark_of(AttemptId attempt) const {
  return std::string{kMark} + "=" + run_id_ + "-" + std::to_string(attempt.value);
}

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
  unread_.clear();
  for (const pid_t pid : children_.list()) {
    if (attempt_of_.contains(pid) || is_own(pid)) continue;
    if (reap(pid)) {
      killed_.erase(pid);
      learned_.erase(pid);
      continue;
    }
    if (killed_.contains(pid) && is_dead(pid)) continue;
    const auto known = found_.find(pid);
    strays[pid] = known != found_.end() && known->second ? known->second : owner_of(pid);
    if (!strays[pid] && !learned_.contains(pid)) unread_.insert(pid);
  }
  found_ = std::move(strays);
}

void Strays::kill(pid_t pid) {
  killed_.insert(pid);
  kill_with_group(pid);
}

AttemptId Strays::owner_of(pid_t stray) const {
  if (const auto cgroup = cgroups_.group_of(stray)) {
    const auto found = attempt_in_.find(*cgroup);
    if (found != attempt_in_.end()) return found->second;
  }
  const auto found = attempt_of_.find(getsid(stray));
  return found != attempt_of_.end() ? found->second : AttemptId{};
}

AttemptId Strays::read_mark(pid_t stray) const {
  return marked_attempt(stray, run_id_).value_or(AttemptId{});
}

void Strays::learn(pid_t stray, AttemptId attempt) {
  const auto found = found_.find(stray);
  if (found == found_.end()) return;
  learned_.insert(stray);
  unread_.erase(stray);
  if (attempt) found->second = attempt;
}

}  // namespace lictor::exec
