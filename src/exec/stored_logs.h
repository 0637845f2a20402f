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
  std::uint64_t size = 0;  ///< bytes; 0 also while a running attempt has printed nothing
  WallTime modified{};     ///< the epoch while there is no file
  bool running = false;
};

/// The logs of a task below `directory`, oldest first: by fencing token, which never falls, since a
/// task that is written anew under its old id begins with attempt 1 again. `active`, if there is
/// one, tells which of them run. Blocks on the file system. Errors: kPermissionDenied, kFailed.
[[nodiscard]] Result<std::vector<StoredLog>> stored_logs(const std::string& directory,
                                                         std::string_view queue,
                                                         std::string_view task_id,
                                                         const ActiveLogs* active);

/// Up to `limit` bytes of the log from `offset` on; "" when there are no more yet, and of a file
/// that does not exist. Never follows a symbolic link. Errors: kPermissionDenied, kFailed.
[[nodiscard]] Result<std::string> read_log(const std::string& path, std::uint64_t offset,
                                           std::size_t limit);

}  // namespace lictor::exec
