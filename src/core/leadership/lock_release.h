#pragma once

// Requests to Consul for a dead daemon, once its last job is dead: release its lock and destroy its
// session, so that the next leader need not wait for the TTL and the lock-delay.
//
//      +--------------- applied ----------------+
//      |                                        v
//   kUnlock --refused, unknown--> kRead --> kDestroy --applied--> kDone
//      ^                            |  not ours
//      +----- ours, at its index ---+
//
// No request can harm the next leader. The unlock is tied to the session and to the leader key's
// ModifyIndex, so a late unlock finds another index, even if a restarted daemon took the session up
// again. The session is destroyed only when it no longer holds the lock: destroying it earlier
// would start the lock-delay.

#include <cstdint>
#include <string>

#include "core/effect.h"
#include "core/event.h"

namespace lictor::core {

class LockRelease {
 public:
  /// `index`: the ModifyIndex of the partition's lock at which the session is known to hold it; 0:
  /// unknown whether it holds the lock.
  LockRelease(std::string session, std::uint64_t index, Partition partition = {})
      : session_(std::move(session)),
        index_(index),
        partition_(partition),
        step_(index == 0 ? Step::kRead : Step::kUnlock) {}

  /// The next request, with the id `id`. Not when done().
  [[nodiscard]] Effect ask(RequestId id) const;

  // Each takes the reply to the last request. False: the reply decided nothing, so ask again after
  // a pause.
  [[nodiscard]] bool on(const UnlockReplied& reply);
  [[nodiscard]] bool on(const LeaderRead& reply);
  [[nodiscard]] bool on(const SessionDestroyed& reply);

  /// The lock is free, or another's. From now on no daemon may resume the session.
  [[nodiscard]] bool lock_is_free() const { return step_ == Step::kDestroy || done(); }
  [[nodiscard]] bool done() const { return step_ == Step::kDone; }
  /// The session held the lock, and gave it back.
  [[nodiscard]] bool gave_back() const { return was_ours_ && lock_is_free(); }

 private:
  enum class Step { kUnlock, kRead, kDestroy, kDone };

  std::string session_;
  std::uint64_t index_;
  Partition partition_;
  Step step_;
  bool was_ours_ = false;
};

}  // namespace lictor::core
