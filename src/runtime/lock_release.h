#pragma once

#include <string>
#include <vector>

#include "exec/lock_keeper.h"
#include "net/transport.h"
#include "runtime/session_file.h"
#include "wire/consul.h"

namespace lictor::runtime {

/// The queue of some locks. `binding` has no leader_value; the lock carries it.
struct LockOwner {
  wire::Binding binding;
  SessionFile session_file;
  exec::LeaseSlot first_slot = 0;  ///< of partition 0; the other partitions' slots follow
};

/// Releases the locks of a dead daemon (core/leadership/lock_release.h), all at once, over the
/// addresses of `options` in turn, until all are released or exec::kLockReleaseTimeout has passed.
/// `owners` is in the order of the slots. Leaks its transport, so call it only before the process
/// exits. Returns a line that says which locks were released.
[[nodiscard]] std::string release_locks(net::Options options, const std::vector<LockOwner>& owners,
                                        const std::vector<exec::HeldLock>& locks);

}  // namespace lictor::runtime
