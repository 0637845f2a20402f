#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lictor/time.h"

namespace lictor::runtime {

/// Keeps the id of a session, a queue's or the member's, across restarts, so that a daemon that is
/// restarted within the TTL resumes its session and its lock instead of waiting for the lock-delay.
/// A file that cannot be written or read only causes a warning.
class SessionFile {
 public:
  /// A daemon resumes a session only if node and timing are the same: trusting a session beyond its
  /// own, shorter lock-delay would let two leaders run. So would a copy of the file, or another
  /// file `state_dir`/lock, while the daemon that saved it runs. A file that was copied, saved
  /// under another lock, or saved before the last boot, is ignored. The daemon has the lock by now.
  SessionFile(const std::string& state_dir, const std::string& name, std::string node, Duration ttl,
              Duration lock_delay);

  [[nodiscard]] std::optional<std::string> load() const;
  /// An empty id forgets the session.
  void save(const std::string& session) const;

  /// The ModifyIndexes at which the locks of the queue's partitions were last seen held; 0: never.
  /// Kept in a file of its own, which outlives sessions and boots.
  [[nodiscard]] std::vector<std::uint64_t> load_held(std::size_t partitions) const;
  void save_held(const std::vector<std::uint64_t>& indexes) const;

 private:
  [[nodiscard]] std::string held_path() const { return path_ + ".held"; }

  std::string path_;
  std::string lock_;  // identity of the file
  std::string node_;
  Duration ttl_;
  Duration lock_delay_;
};

}  // namespace lictor::runtime
