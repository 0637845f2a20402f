#pragma once

#include <string>
#include <vector>

#include "exec/lock_keeper.h"
#include "net/transport.h"
#include "runtime/session_file.h"
#include "wire/consul.h"

namespace lictor::runtime {

/// A queue as its lock is given back; `binding` without leader_value, which the lock brings.
struct LockOwner {
  wire::Binding binding;
  SessionFile session_file;
};

/// Gives back the locks of a daemon that is dead (core/give_back.h), all at once, over the
/// addresses of `options` in turn; tries until it is done or exec::kGiveBackPatience is over.
/// `owners`: by lease slot. For a process that ends afterwards: what the network still holds is
/// left to that. Returns a line that says what was given back, and what was not.
[[nodiscard]] std::string give_back_locks(net::Options options,
                                          const std::vector<LockOwner>& owners,
                                          const std::vector<exec::HeldLock>& locks);

}  // namespace lictor::runtime
