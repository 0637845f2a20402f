#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lictor/result.h"
#include "lictor/time.h"

namespace lictor::exec {

class ActiveLogs;

/// The output log of one attempt.
struct StoredLog {
  std::string path;
  std::uint32_t attempt = 0;
  std::uint64_t token = 0;
  std::uint64_t size = 0;  ///< bytes; 0: also before the first output of a running attempt
  WallTime modified{};     ///< the epoch: there is no file yet
  bool running = false;
  std::string error{};  ///< why not all of the output could be kept; empty: it was, or unknown
};

/// The logs of a task below `directory`, oldest first: by fencing token, which never decreases,
/// while a new task under an old id begins again with attempt 1. `active`, if not null, says which
/// attempts run. Blocks on the file system. Errors: kPermissionDenied, kFailed.
[[nodiscard]] Result<std::vector<StoredLog>> stored_logs(const std::string& directory,
                                                         std::string_view queue,
                                                         std::string_view task_id,
                                                         const ActiveLogs* active);

/// Up to `limit` bytes of the log, which are not 0, from `offset` on; "" at its end, and if there is
/// no file. Follows no symbolic link. Errors: kPermissionDenied, kFailed.
[[nodiscard]] Result<std::string> read_log(const std::string& path, std::uint64_t offset,
                                           std::size_t limit);

}  // namespace lictor::exec
