#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lictor/result.h"

namespace lictor::cli {

/// One attempt's output, where it lies.
struct LogEntry {
  std::uint32_t attempt = 0;
  std::uint64_t token = 0;  ///< the fencing token: the newest attempt has the highest
  std::uint64_t size = 0;   ///< bytes until now
  bool running = false;
  std::string modified;  ///< RFC 3339; empty: nothing was printed yet
};

/// The output logs of one task on one host. Every call blocks.
class LogSource {
 public:
  virtual ~LogSource() = default;

  /// Oldest first. Errors: kUnavailable, kTimeout, kPermissionDenied, kFailed.
  [[nodiscard]] virtual Result<std::vector<LogEntry>> list() = 0;
  /// What there is from `offset` on, at most about a megabyte; where there is nothing and the
  /// attempt runs, waits up to `wait` for more.
  [[nodiscard]] virtual Result<std::string> read(const LogEntry& log, std::uint64_t offset,
                                                 std::chrono::seconds wait) = 0;
};

/// Over the admin face at `addresses`, tried in turn. Never shows it a token of Consul's.
[[nodiscard]] Result<std::unique_ptr<LogSource>> remote_logs(std::vector<std::string> addresses,
                                                             const std::string& queue,
                                                             const std::string& id);

/// Out of a state folder of this host. Cannot tell what runs: nothing does.
[[nodiscard]] std::unique_ptr<LogSource> local_logs(const std::string& state_dir,
                                                    const std::string& queue,
                                                    const std::string& id);

}  // namespace lictor::cli
