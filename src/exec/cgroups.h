#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.h"

namespace lictor::exec {

/// A cgroup (version 2) for each attempt. It identifies all processes of the attempt, also those
/// that call setsid and clear their environment, and kills them together:
///
///   <the daemon's own group>/lictor.<daemon's pid>.<Warden::run_id>/<number>
///
/// Groups are made when needed, and reused unless they were killed. No controller is enabled.
/// Create it before the warden is forked; after that only the warden takes and retires groups.
class Cgroups {
 public:
  using Number = std::uint32_t;

  struct Group {
    Number number = 0;
    UniqueFd folder;
    bool killed = false;  ///< never reused
  };

  /// No groups: attempts are identified by session, process group and environment alone.
  Cgroups() = default;

  /// Makes groups below the group of this process. If that is impossible, absence() says why: no
  /// cgroup v2 is mounted, systemd has not delegated the group (Delegate= in the unit), or Linux is
  /// older than 5.14.
  [[nodiscard]] static Cgroups create(const std::string& run_id);

  /// Kills all processes in the groups that a dead daemon made beside ours, and removes the groups.
  /// Returns the processes that are not dead yet.
  [[nodiscard]] static std::vector<pid_t> kill_group_of(pid_t daemon, const std::string& run_id);

  [[nodiscard]] bool available() const { return static_cast<bool>(top_); }
  [[nodiscard]] const std::string& absence() const { return absence_; }
  /// Descriptors to keep open across close_all_but(); -1: none.
  [[nodiscard]] int fd() const { return top_.get(); }
  [[nodiscard]] int parent_fd() const { return own_.get(); }

  /// An empty group; std::nullopt if it cannot be made.
  [[nodiscard]] std::optional<Group> take();
  /// Gives a group back, for another attempt or for removal. The group may hold only zombies.
  void retire(Group group);

  /// The group of `pid`; std::nullopt if the process is in no attempt's group.
  [[nodiscard]] std::optional<Number> group_of(pid_t pid) const;

  /// SIGKILL to every process in the group.
  void kill(Group& group) const;

  /// Removes all empty groups.
  void remove();

 private:
  std::string absence_;
  UniqueFd own_;
  UniqueFd top_;
  std::string name_;      ///< below own_
  std::string top_path_;  ///< as /proc/<pid>/cgroup shows it, with a '/' at the end
  std::vector<Group> free_;
  Number next_ = 0;
};

}  // namespace lictor::exec
