#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

#include "exec/output_log.h"
#include "lictor/time.h"

namespace lictor::exec {

/// Limits for all output logs below a directory.
struct LogLimits {
  Duration max_age = std::chrono::hours{720};
  std::uint64_t max_bytes = 1ULL << 30U;  ///< on the disk

  friend bool operator==(const LogLimits&, const LogLimits&) = default;
};

struct Pruned {
  std::size_t removed = 0;
  std::uint64_t removed_bytes = 0;  ///< on the disk, at least 4 kB a file
  std::size_t kept = 0;
  std::uint64_t kept_bytes = 0;
  std::string error;  ///< the first one; empty: none
};

/// Removes from `<directory>/<queue>/` the logs that are older than the limit, then the oldest ones
/// until the rest fits. Keeps the logs of running attempts and all files but regular ones called
/// *.log. Follows no symbolic links. Blocks on the file system.
[[nodiscard]] Pruned prune_logs(const std::string& directory, const LogLimits& limits, WallTime now,
                                const ActiveLogs& active);

/// A thread that prunes at the start and every ten minutes. Its destructor waits for a pass under way.
class LogPruner {
 public:
  /// `on_pruned` runs on the pruner's thread after each pass.
  LogPruner(std::string directory, LogLimits limits, std::shared_ptr<const ActiveLogs> active,
            std::function<void(const Pruned&)> on_pruned);
  /// Prunes soon. From any thread.
  void ask();

 private:
  void run(const std::stop_token& stop);

  const std::string directory_;
  const LogLimits limits_;
  const std::shared_ptr<const ActiveLogs> active_;
  const std::function<void(const Pruned&)> on_pruned_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool asked_ = true;
  std::jthread thread_;
};

}  // namespace lictor::exec
