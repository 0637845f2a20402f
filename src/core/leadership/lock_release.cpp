#include "core/leadership/lock_release.h"

#include "base/assert.h"

namespace lictor::core {

Effect LockRelease::ask(RequestId id) const {
  switch (step_) {
    case Step::kUnlock:
      return ReleaseLock{id, session_, index_, partition_};
    case Step::kRead:
      return ReadLeader{id, true, 0, partition_};
    case Step::kDestroy:
      return DestroySession{id, session_};
    case Step::kDone:
      break;
  }
  LICTOR_ASSERT(false);
}

// Refused: the key was written since, or is not ours. Unknown: the release may have landed. In both
// cases a read decides.
bool LockRelease::on(const UnlockReplied& reply) {
  const bool applied = reply.outcome == Outcome::kApplied;
  was_ours_ = was_ours_ || applied;
  step_ = applied ? Step::kDestroy : Step::kRead;
  return applied;
}

bool LockRelease::on(const LeaderRead& reply) {
  if (!reply.ok) return false;
  const bool ours = reply.session == session_;
  was_ours_ = was_ours_ || ours;
  step_ = ours ? Step::kUnlock : Step::kDestroy;
  if (ours) index_ = reply.modify_index;
  return true;
}

bool LockRelease::on(const SessionDestroyed& reply) {
  if (reply.outcome != Outcome::kApplied) return false;
  step_ = Step::kDone;
  return true;
}

}  // namespace lictor::core
