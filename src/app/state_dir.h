#pragma once

#include <string>

#include "exec/unique_fd.h"
#include "lictor/result.h"
#include "lictor/time.h"

namespace lictor::app {

/// Makes `path` if it is missing and takes its lock. The warden inherits the lock and keeps it
/// until its last job is dead, so whoever holds it knows that nothing of an earlier daemon runs; a
/// daemon that died is therefore waited for up to `patience`. Errors: kConflict when another daemon
/// uses the folder; kPermissionDenied, kFailed.
[[nodiscard]] Result<exec::UniqueFd> lock_state_dir(const std::string& path, Duration patience);

}  // namespace lictor::app
