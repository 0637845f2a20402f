#pragma once

#include <sys/types.h>

#include <string>

#include "base/unique_fd.h"
#include "lictor/result.h"
#include "lictor/time.h"

namespace lictor::app {

/// Makes `path` if it is missing and takes its lock; waits for it up to `patience`. The warden
/// inherits the lock and keeps it until its last job is dead. If the last daemon and its warden
/// were killed together, kills what their jobs left. So no job of an earlier daemon runs once this
/// returns. Errors: kConflict, another daemon uses the folder, or a job cannot be killed;
/// kPermissionDenied, kFailed.
[[nodiscard]] Result<UniqueFd> lock_state_dir(const std::string& path, Duration patience);

/// Notes this run of the daemon in the lock file of `path`, for the next daemon. Errors:
/// kPermissionDenied, kFailed.
[[nodiscard]] Result<void> note_run(const std::string& path, const UniqueFd& lock,
                                    const std::string& run_id);

/// Says which other users may write to the folder, and what to do; empty: none, or there is no
/// folder. Write permission of the owner's group and of the caller's is accepted: a umask of 002
/// sets it.
[[nodiscard]] std::string state_dir_exposure(const std::string& path);

/// Why the calling user could not make or use the folder; empty: it seems that they can.
[[nodiscard]] std::string state_dir_fault(const std::string& path);

/// The folder's owner, if that is another user than the caller; else empty, also without a folder.
[[nodiscard]] std::string state_dir_owner(const std::string& path);

}  // namespace lictor::app
