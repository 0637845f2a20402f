#pragma once

#include <optional>
#include <string>

#include "lictor/time.h"

namespace lictor::runtime {

/// Keeps the id of a queue's session across restarts of the daemon, so that a daemon that comes
/// back within the TTL takes up its session, and with it the lock, instead of waiting for the
/// lock-delay. What cannot be written or read is worth a warning and no more.
class SessionFile {
 public:
  /// A session is taken up again only by a daemon with the same node and timing: to trust a
  /// session of a shorter lock-delay for longer would let two leaders run.
  SessionFile(std::string state_dir, const std::string& queue, std::string node, Duration ttl,
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
