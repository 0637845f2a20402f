#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "exec/helpers.h"
#include "exec/lease_board.h"
#include "exec/warden_protocol.h"
#include "lictor/time.h"

namespace lictor::exec {

/// Releases locks within about kLockReleaseTimeout and returns the line to emit(). Runs in a
/// child of the warden, which exits afterwards.
using ReleaseLocks = std::function<std::string(const std::vector<HeldLock>&)>;
inline constexpr Duration kLockReleaseTimeout = std::chrono::seconds{5};

/// The locks that the daemon holds, as far as the warden knows. A child of the warden
/// releases them, so that the warden itself never waits for the network. The child does not exec:
/// it inherits the configuration and Consul's token from the warden, whose memory no job may read,
/// and a program that embeds lictor needs no extra binary.
class LockKeeper {
 public:
  explicit LockKeeper(ReleaseLocks release_locks) : release_locks_(std::move(release_locks)) {}

  /// Updates the lock of `lock.slot`.
  void take(HeldLock lock);
  void forget_all() { locks_.clear(); }

  /// Whether the daemon is known to hold a lock.
  [[nodiscard]] bool holds_any() const;
  /// No lock is left to release, and no child is at work.
  [[nodiscard]] bool idle() const { return locks_.empty() && !children_.any_runs(); }

  /// For a dead daemon: releases the locks of all slots that are not `busy`. Call it again when a
  /// slot is not busy any more, or a child has ended.
  void release_unused(const std::function<bool(LeaseSlot)>& busy);
  /// Whether `pid` is a child that releases locks; reaps it if it has ended.
  [[nodiscard]] bool owns(pid_t pid) { return children_.owns(pid); }

 private:
  const ReleaseLocks release_locks_;
  std::map<LeaseSlot, HeldLock> locks_;
  Helpers children_;
};

}  // namespace lictor::exec
