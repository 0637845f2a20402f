#pragma once

#include <optional>
#include <string>

#include "lictor/time.h"

namespace lictor::runtime {

/// Keeps the id of a session, a queue's or the member's, across restarts, so that a daemon that is
/// restarted within the TTL resumes its session and its lock instead of waiting for the lock-delay.
/// A file that cannot be written or read only causes a warning.
class SessionFile {
 public:
  /// A daemon resumes a session only if node and timing are the same: trusting a session beyond its
  /// own, shorter lock-delay would let two leaders run. So would a copy of the file, while the
  /// original's daemon runs. A file that was copied, or saved before the last boot, is ignored.
  SessionFile(std::string state_dir, const std::string& name, std::string node, Duration ttl,
              Duration lock_delay);

  [[nodiscard]] std::optional<std::string> load() const;
  /// An empty id forgets the session.
  void save(const std::string& session) const;

 private:
  std::string path_;
  std::string node_;
  Duration ttl_;
  Duration lock_delay_;
};

}  // namespace lictor::runtime
