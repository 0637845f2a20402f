#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "exec/lease_board.h"
#include "exec/warden_protocol.h"
#include "lictor/time.h"

namespace lictor::exec {

/// Gives locks back, for at most about kGiveBackPatience; what it returns is told on standard
/// error. Called in a process of its own, which was forked from the warden and ends then.
using GiveBackLocks = std::function<std::string(const std::vector<HeldLock>&)>;
inline constexpr Duration kGiveBackPatience = std::chrono::seconds{5};

/// The daemon's words when it can say nothing any more. Nothing waits for who reads them.
void tell(std::string_view line);

/// The warden's knowledge of the locks that its daemon holds. They are given back by a child of the
/// warden, which stays what it was: small, of one thread, and never waiting for a network. The
/// child does not exec: what it needs, Consul's token too, it has from the warden, which was forked
/// when the configuration was read and whose memory no job may read; and a program that embeds
/// lictor need not know of it.
class LockKeeper {
 public:
  explicit LockKeeper(GiveBackLocks give_back) : give_back_(std::move(give_back)) {}

  /// The newest word on `lock.slot`.
  void take(HeldLock lock);
  /// Nothing is to be given back.
  void forget_all() { locks_.clear(); }

  /// Whether a lock is held as far as the daemon has told.
  [[nodiscard]] bool holds_any() const;
  /// Nothing is to be given back, and nobody is at it.
  [[nodiscard]] bool idle() const { return locks_.empty() && children_.empty(); }

  /// The daemon is dead: gives back the locks of all slots that are not `busy`.
  void give_back(const std::function<bool(LeaseSlot)>& busy);
  /// Whether `pid` is a child that gives back, or was: then it is reaped.
  [[nodiscard]] bool owns(pid_t pid);

 private:
  const GiveBackLocks give_back_;
  std::map<LeaseSlot, HeldLock> locks_;
  std::set<pid_t> children_;
};

}  // namespace lictor::exec
