#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/id.h"
#include "exec/cgroups.h"
#include "exec/children.h"

namespace lictor::exec {

/// The processes that the programs of attempts started and that outlive their parents. The warden is
/// a subreaper: a process that loses its parent becomes the warden's child, and when it dies, its
/// children follow. So an attempt is gone once its program is a zombie and no stray is its.
class Strays {
 public:
  /// `cgroups` must outlive this.
  explicit Strays(const Cgroups& cgroups);

  void program_started(AttemptId attempt, pid_t program, std::optional<Cgroups::Number> cgroup);
  /// Call it before `program` can be reused.
  void program_gone(pid_t program, std::optional<Cgroups::Number> cgroup);

  /// Searches the children of this process, and reaps those that are dead. `is_own`: neither a
  /// program nor a stray.
  void search(const std::function<bool(pid_t)>& is_own);

  /// What the last search found, with its attempt; zero: of unknown attempt.
  [[nodiscard]] const std::unordered_map<pid_t, AttemptId>& found() const { return found_; }
  /// What names `attempt` in a program's environment.
  [[nodiscard]] std::string mark_of(AttemptId attempt) const { return mark(self_, attempt); }

 private:
  [[nodiscard]] AttemptId owner_of(pid_t stray) const;

  const Cgroups& cgroups_;
  const pid_t self_;
  Children children_;
  std::unordered_map<pid_t, AttemptId> attempt_of_;            // by its program
  std::unordered_map<Cgroups::Number, AttemptId> attempt_in_;  // by its cgroup
  std::unordered_map<pid_t, AttemptId> found_;
};

}  // namespace lictor::exec
