#include "core/leadership/leadership.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace lictor::core {

Leadership::Leadership(const QueueOptions& options, Requests& requests)
    : session_(options, requests, trouble_), trust_(options) {
  for (std::uint32_t i = 0; i < options.partitions; ++i) {
    locks_.emplace_back(options, i, requests, trouble_);
  }
}

void Leadership::start(Instant now, const Started& started, Effects& out) {
  for (std::uint32_t i = 0; i < started.held_indexes.size() && i < locks_.size(); ++i) {
    locks_[i].know_held(started.held_indexes[i]);
  }
  session_.start(now, started.previous_session, out);
}

void Leadership::on_session(Instant now, Session::Change change, Effects& out) {
  switch (change) {
    case Session::Change::kNone:
      break;
    case Session::Change::kAlive:
      if (retired_) break;
      for (Lock& lock : locks_) {
        if (lock.state() == Lock::State::kIdle) lock.campaign(now, session_.id(), out);
      }
      break;
    case Session::Change::kGone:
      // A lagging server can also say this of a live session; a read of one of its locks decides.
      if (holds_any()) {
        lock_to_read().prove(now, out);
        session_.renew_soon(now);
      } else if (!retired_ && all_follow()) {
        for (Lock& lock : locks_) lock.stop(out);
        session_.replace(out);
      }
      break;
    case Session::Change::kClosed:
      for (Lock& lock : locks_) lock.stop(out);
      trust_.end();
      break;
  }
}

// Applies the verdict on a partition's lock to session and trust; the caller does the rest.
void Leadership::take(Instant now, std::uint32_t partition, const Lock::Verdict& verdict,
                      Changes& changes, Effects& out) {
  switch (verdict.change) {
    case Lock::Change::kNone:
      if (!verdict.proof) return;
      if (partition == proving_) prove_by_next();
      prove_with(now, *verdict.proof, changes, out);
      return;
    case Lock::Change::kAcquired:
      return win(now, partition, *verdict.proof, changes, out);
    case Lock::Change::kLost:
      return lose(now, partition, changes, out);
    case Lock::Change::kReleased:
      out.emplace_back(EndLease{partition});
      if (closing_) {
        end_session_if_free(now, out);
      } else if (!retired_) {
        locks_[partition].campaign(now, session_.id(), out);
      }
      changes.push_back({partition, LeaseChange::kResigned});
      return;
    case Lock::Change::kSessionGone:
      locks_[partition].stop(out);
      return on_session(now, Session::Change::kGone, out);
    case Lock::Change::kCountChanged:
      count_changed_ = true;
      return;
  }
}

// The first lock begins the trust. A further lock proves the session again. If no deadline moves,
// the partition still needs a lease, under the common deadline.
void Leadership::win(Instant now, std::uint32_t partition, Instant sent_at, Changes& changes,
                     Effects& out) {
  changes.push_back({partition, LeaseChange::kWon});
  if (trust_.state() == Trust::State::kNone) trust_.begin(sent_at);
  if (!prove_with(now, sent_at, changes, out)) extend(partition, out);
  if (trust_.state() != Trust::State::kTrusted) lock_to_read().prove_again(now, out);
}

// The whole session may be gone with a lock: check the next lock.
void Leadership::lose(Instant now, std::uint32_t partition, Changes& changes, Effects& out) {
  changes.push_back({partition, LeaseChange::kLost});
  end_trust_if_free();
  if (holds_any()) lock_to_read().prove(now, out);
}

// False: the leases' deadlines do not move.
bool Leadership::prove_with(Instant now, Instant sent_at, Changes& changes, Effects& out) {
  const bool was_doubtful = trust_.state() == Trust::State::kExpired;
  if (!trust_.prove(now, sent_at)) return false;
  trouble_.over();
  for (std::uint32_t i = 0; i < locks_.size(); ++i) {
    if (!holds(i)) continue;
    extend(i, out);
    if (was_doubtful) changes.push_back({i, LeaseChange::kRegained});
  }
  return true;
}

void Leadership::extend(std::uint32_t partition, Effects& out) const {
  if (trust_.state() != Trust::State::kTrusted) return;
  out.emplace_back(ExtendLease{trust_.until(), partition});
}

// Some lock must be held. Returns the same lock until its answer has come: if Consul does not
// answer, no more of them are asked for.
Lock& Leadership::lock_to_read() {
  while (!holds(proving_)) prove_by_next();
  return locks_[proving_];
}

void Leadership::end_trust_if_free() {
  if (!holds_any()) trust_.end();
}

Leadership::Changes Leadership::proved(Instant now, Instant sent_at, Effects& out) {
  Changes changes;
  prove_with(now, sent_at, changes, out);
  return changes;
}

// Consul evaluated the fence inside the transaction, so no further read is needed: the lock is
// gone.
Leadership::Changes Leadership::refused(Instant now, std::uint32_t partition, Effects& out) {
  Changes changes;
  if (!holds(partition)) return changes;
  locks_[partition].lose(out);
  lose(now, partition, changes, out);
  return changes;
}

void Leadership::clock_stepped(Instant now, Effects& out) {
  trust_.clock_stepped(now);
  if (holds_any()) lock_to_read().prove_again(now, out);
}

// The lock can be lost while the session lives: the leader key was deleted or taken by force.
void Leadership::resume(Instant now, std::uint32_t partition, Effects& out) {
  LICTOR_ASSERT(locks_[partition].state() == Lock::State::kLost);
  out.emplace_back(EndLease{partition});
  locks_[partition].stop(out);
  if (closing_) {
    end_session_if_free(now, out);
  } else if (!retired_) {
    session_.check(now, out);
  }
}

void Leadership::resign(std::uint32_t partition, Duration standoff, Effects& out) {
  if (!holds(partition)) return;
  locks_[partition].release(standoff, out);
  end_trust_if_free();
}

void Leadership::want_only(Instant now, const std::vector<std::uint32_t>& partitions) {
  auto next = partitions.begin();
  for (std::uint32_t i = 0; i < locks_.size(); ++i) {
    const bool wanted = next != partitions.end() && *next == i;
    locks_[i].want(now, wanted);
    if (wanted) ++next;
  }
}

bool Leadership::read_owners(const std::string& self, BalancerView& view) {
  if (owners_seen_) return false;
  std::vector<std::string> owners;
  std::vector<Instant> free_from;
  std::vector<bool> of_namesake;
  for (const Lock& lock : locks_) {
    const bool is_ours = !lock.follows() && lock.state() != Lock::State::kLost;
    if (!is_ours && !lock.other_owner()) return false;
    // A lock of another daemon of our name, or of our last session, is not ours to give away.
    owners.push_back(is_ours ? self : *lock.other_owner());
    of_namesake.push_back(!is_ours && owners.back() == self);
    free_from.push_back(lock.free_from());
  }
  view.owners = std::move(owners);
  view.free_from = std::move(free_from);
  view.of_namesake = std::move(of_namesake);
  owners_seen_ = true;
  return true;
}

Instant Leadership::free_from() const {
  Instant latest = Instant::min();
  for (const Lock& lock : locks_) latest = std::max(latest, lock.free_from());
  return latest;
}

void Leadership::retire(Effects& out) {
  retired_ = true;
  for (Lock& lock : locks_) {
    if (lock.follows()) lock.stop(out);
  }
}

void Leadership::close(Instant until, Effects& out) {
  if (closing_) return;
  retired_ = closing_ = true;
  session_.close_until(until);
  for (std::uint32_t i = 0; i < locks_.size(); ++i) resign(i, Duration::zero(), out);
  end_session_if_free(until, out);
}

// Destroying the session also releases a lock that is just being acquired.
void Leadership::end_session_if_free(Instant now, Effects& out) {
  if (!all_follow()) return;
  for (Lock& lock : locks_) lock.stop(out);
  on_session(now, session_.close(out), out);
}

Leadership::Changes Leadership::on_time(Instant now, Effects& out) {
  Changes changes;
  on_session(now, session_.on_time(now, out), out);
  if (now >= trust_.proof_due()) {
    trust_.asked(now);
    lock_to_read().prove(now, out);
  }
  for (Lock& lock : locks_) lock.on_time(now, out);
  if (!trust_.expire(now)) return changes;
  for (std::uint32_t i = 0; i < locks_.size(); ++i) {
    if (holds(i)) changes.push_back({i, LeaseChange::kExpired});
  }
  return changes;
}

bool Leadership::holds_any() const {
  return std::any_of(locks_.begin(), locks_.end(), [](const Lock& lock) { return lock.held(); });
}

bool Leadership::all_follow() const {
  return std::all_of(locks_.begin(), locks_.end(), [](const Lock& lock) { return lock.follows(); });
}

Instant Leadership::next_deadline() const {
  Instant next = std::min(session_.next_deadline(), trust_.next_deadline());
  for (const Lock& lock : locks_) next = std::min(next, lock.next_deadline());
  return next;
}

}  // namespace lictor::core
