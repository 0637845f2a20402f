#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.h"

namespace lictor::exec {

/// A cgroup (version 2) for each attempt, so that whatever an attempt starts is told to be its own
/// and is killed with it, even after setsid and with an empty environment:
///
///   <the daemon's own group>/lictor.<daemon's pid>/<number>
///
/// Groups are made when they are needed, and used again unless they were killed. No controller is enabled. Made before the
/// warden is forked; then the warden alone takes groups and gives them back.
class Cgroups {
 public:
  using Number = std::uint32_t;

  struct Group {
    Number number = 0;
    UniqueFd folder;
    bool killed = false;  ///< not to be used again
  };

  /// None at all: attempts are told apart by session, process group and environment alone.
  Cgroups() = default;

  /// Below the group of this process. Where that is not possible, absence() says why: no cgroup v2
  /// is mounted, the group is not this process's to divide (Delegate= in the unit), or Linux is
  /// older than 5.14.
  [[nodiscard]] static Cgroups create();

  [[nodiscard]] bool available() const { return static_cast<bool>(top_); }
  [[nodiscard]] const std::string& absence() const { return absence_; }
  /// What is open for it; -1: nothing.
  [[nodiscard]] int fd() const { return top_.get(); }
  [[nodiscard]] int parent_fd() const { return own_.get(); }

  /// An empty group; nothing when there is none to be had.
  [[nodiscard]] std::optional<Group> take();
  /// No process but zombies may be in it.
  void give_back(Group group);

  /// The group that `pid` is in, if it is one of these.
  [[nodiscard]] std::optional<Number> group_of(pid_t pid) const;

  /// SIGKILL to every process in the group, or in all of them.
  void kill(Group& group) const;
  void kill_all() const;

  /// Removes all groups that no process is in.
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
