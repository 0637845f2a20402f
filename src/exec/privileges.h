#pragma once

#include <string>

#include "exec/warden_protocol.h"
#include "lictor/result.h"

namespace lictor::exec {

/// A user that programs run as, with its groups.
struct User {
  std::string name;
  std::string home;
  std::string shell;
  Credentials credentials;

  friend bool operator==(const User&, const User&) = default;
};

/// Looks up a user by name or number. Blocks: a directory service may answer.
/// Errors: kNotFound; kFailed, the look-up failed.
[[nodiscard]] Result<User> find_user(const std::string& name);

// To run jobs as other users, a daemon that is not root needs CAP_SETUID, CAP_SETGID, CAP_KILL and
// CAP_CHOWN at its start; otherwise it needs no capability:
//
//   daemon at its start --fork--> warden: these four and no other
//      |                             |
//      | drops these four            | fork, change of user, drops all
//      v                             v
//   daemon, plug-ins, admin API    job: none
//
// A root daemon keeps its capabilities, and so do its jobs without a "user".

/// Whether jobs can run as another user: this process is root or has the four capabilities, or its
/// warden has them.
[[nodiscard]] bool may_change_user();

/// For the daemon, after the fork of the warden and before any thread: drops the four capabilities
/// from all sets, so that nothing in this process can regain them. Errors: kFailed.
[[nodiscard]] Result<void> drop_job_capabilities();

/// For the warden: drops all other capabilities, and all that a program would inherit. On false
/// errno says why.
[[nodiscard]] bool keep_only_job_capabilities();

/// Whether the kernel spares this process when memory is short (a negative oom_score_adj).
[[nodiscard]] bool is_protected_from_oom();
/// For the warden, and for its jobs, which inherit it: makes the kernel end a job before the
/// daemon. The warden has little memory and so comes last anyway. Makes the process dumpable.
void leave_oom_protection();

}  // namespace lictor::exec
