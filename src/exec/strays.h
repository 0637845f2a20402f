#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>

#include "base/id.h"
#include "exec/cgroups.h"
#include "exec/children.h"

namespace lictor::exec {

/// The processes that the programs of attempts started and that outlive their parents. The warden
/// is a subreaper: a process that loses its parent becomes the warden's child, and when it dies,
/// its children follow. So an attempt is gone once its program is a zombie and it has no strays.
///
///   search(): cgroup or session of an attempt? ---------yes--> found(), with the attempt
///                |                                                  ^
///                +--no--> found() with zero, and unread()           |
///                            +--a helper reads the mark, learn()----+--no mark--> unknown for good
class Strays {
 public:
  /// `cgroups` must outlive this.
  Strays(const Cgroups& cgroups, std::string run_id);

  void program_started(AttemptId attempt, pid_t program,
                       const std::optional<Cgroups::Group>& cgroup);
  /// Call it before `program` can be reused.
  void program_gone(pid_t program, const std::optional<Cgroups::Group>& cgroup);

  /// Searches the children of this process, and reaps the dead ones. `is_own(pid)`: the child is
  /// neither a program nor a stray.
  void search(const std::function<bool(pid_t)>& is_own);

  /// Kills `pid` and its group. Once dead, the process is no stray, even while its tracer keeps it.
  void kill(pid_t pid);
  /// `pid`, the program of a gone attempt, is a zombie that its tracer keeps.
  void leave_to_tracer(pid_t pid) { killed_.insert(pid); }

  /// The strays of the last search, each with its attempt; zero: unknown.
  [[nodiscard]] const std::unordered_map<pid_t, AttemptId>& found() const { return found_; }
  /// The strays whose attempt only their environment may name, and whose mark is not learned yet.
  /// Reading it takes as long as the process holds its memory, so leave it to a helper.
  [[nodiscard]] const std::set<pid_t>& unread() const { return unread_; }
  [[nodiscard]] AttemptId read_mark(pid_t stray) const;
  /// Takes the answer of read_mark(); zero: there is no mark, or reading takes too long.
  void learn(pid_t stray, AttemptId attempt);
  /// The environment entry that marks `attempt`.
  [[nodiscard]] std::string mark_of(AttemptId attempt) const;

 private:
  [[nodiscard]] AttemptId owner_of(pid_t stray) const;

  const Cgroups& cgroups_;
  const std::string run_id_;
  Children children_;
  std::unordered_map<pid_t, AttemptId> attempt_of_;            // by its program
  std::unordered_map<Cgroups::Number, AttemptId> attempt_in_;  // by its cgroup
  std::unordered_map<pid_t, AttemptId> found_;
  std::set<pid_t> unread_;
  std::set<pid_t> learned_;  // and not reaped yet
  std::set<pid_t> killed_;   // and not reaped yet
};

}  // namespace lictor::exec
