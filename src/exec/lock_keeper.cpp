#include "exec/lock_keeper.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "exec/warden_log.h"

namespace lictor::exec {
namespace {

// This process must end whatever it waits for (a silent name server, say): until then the state
// directory stays locked.
void end_after(Duration limit) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGALRM);
  alarm(static_cast<unsigned>(std::chrono::ceil<std::chrono::seconds>(limit).count()));
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
}

}  // namespace

void LockKeeper::take(HeldLock lock) {
  if (!release_locks_ || lock.session.empty()) {
    locks_.erase(lock.slot);
  } else {
    locks_[lock.slot] = std::move(lock);
  }
}

bool LockKeeper::holds_any() const {
  return std::ranges::any_of(locks_, [](const auto& lock) { return lock.second.index != 0; });
}

// Destroying a session locks its remaining locks for the lock-delay. So destroy it with its last
// lock, after the children that release the others.
void LockKeeper::release_unused(const std::function<bool(LeaseSlot)>& busy) {
  std::vector<HeldLock> free;
  for (auto it = locks_.begin(); it != locks_.end();) {
    HeldLock& lock = it->second;
    lock.keeps_session = std::any_of(locks_.begin(), locks_.end(), [&](const auto& other) {
      return other.second.session == lock.session && busy(other.first);
    });
    const bool waits = lock.partitions > 1 && !lock.keeps_session && children_.any_runs();
    if (waits || busy(it->first)) {
      ++it;
      continue;
    }
    free.push_back(std::move(lock));
    it = locks_.erase(it);
  }
  if (free.empty()) return;
  // If fork() fails, the session's TTL and the lock-delay free the lock, as after a host's crash.
  static_cast<void>(children_.start([&] {
    end_after(2 * kLockReleaseTimeout);
    emit(release_locks_(free));
  }));
}

}  // namespace lictor::exec
