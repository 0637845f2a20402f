#pragma once

#include <string>

#include "base/unique_fd.h"
#include "lictor/result.h"
#include "lictor/time.h"

namespace lictor::app {

/// Makes `path` if it is missing and takes its lock. The warden inherits the lock and keeps it
/// until its last job is dead, so whoever holds it knows that nothing of an earlier daemon runs; a
/// daemon that died is therefore waited for up to `patience`. Errors: kConflict when another daemon
/// uses the folder; kPermissionDenied, kFailed.
[[nodiscard]] Result<UniqueFd> lock_state_dir(const std::string& path, Duration patience);

/// What lets others at what lies in the folder, and the way out; empty: nothing, or it is not
/// there. That the group of its owner or of who asks may write to it does not count, since a umask
/// of 002 makes it so.
[[nodiscard]] std::string state_dir_exposure(const std::string& path);

/// Whose the folder is, if it is not that of the user who asks; empty: it is, or is not there.
[[nodiscard]] std::string state_dir_owner(const std::string& path);

}  // namespace lictor::app
