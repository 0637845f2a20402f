#pragma once

#include "lictor/result.h"

namespace lictor::exec {

// Who may do what. A daemon that is not root starts with CAP_SETUID, CAP_SETGID, CAP_KILL and
// CAP_CHOWN where its jobs run as other users, else with none of them:
//
//   daemon at its start --fork--> warden: these four and no other
//      |                             |
//      | drops these four            | fork, change of user, drops all
//      v                             v
//   daemon, plug-ins, admin face    job: none
//
// A daemon of root keeps what it has, and so do jobs without a "user" of their own.

/// Whether jobs can run as another user: this process is root, or has the four capabilities, or its
/// warden took them over. `lictor check` asks it too.
[[nodiscard]] bool may_change_user();

/// For the daemon, when its warden is forked and before there is any thread: drops the four
/// capabilities from all sets, so that nothing in this process regains them. Errors: kFailed.
[[nodiscard]] Result<void> drop_job_capabilities();

/// For the warden: drops all but the four, and what a program would inherit. False with errno.
[[nodiscard]] bool keep_only_job_capabilities();

}  // namespace lictor::exec
