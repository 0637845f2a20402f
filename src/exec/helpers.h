#pragma once

#include <sys/types.h>

#include <functional>
#include <set>

namespace lictor::exec {

/// Children of the warden for work that may wait for a disk or for a reader of standard error. The
/// warden waits for none of them, not even at its end.
class Helpers {
 public:
  /// Runs `work` in a child. The child has no descriptors but 0, 1 and 2, so that it keeps no lock,
  /// and `kept`, if given, as kKept. Returns its pid; -1: no child could be made.
  pid_t start(const std::function<void()>& work, int kept = -1);
  static constexpr int kKept = 3;

  /// Whether `pid` is a helper; reaps it if it has ended.
  [[nodiscard]] bool owns(pid_t pid);
  /// Whether owns() has not reaped it yet.
  [[nodiscard]] bool runs(pid_t pid) const { return pids_.contains(pid); }
  [[nodiscard]] bool any_runs() const { return !pids_.empty(); }

 private:
  std::set<pid_t> pids_;
};

}  // namespace lictor::exec
