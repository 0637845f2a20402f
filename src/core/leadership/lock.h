#pragma once

// The lock on the leader key: who holds it, and when we may take it.
//
//                                     acquired
//   kIdle ---campaign---> kWatching -----------> kHeld ---release---> kReleasing ---> kIdle
//                          |  ^   ^                |                  (reads whose it is until
//         free, but not    |  |   | held,          | not ours          it is not ours)
//         released in      v  |   | changed        v
//         order         kWaiting  |              kLost ---campaign---> kWatching
//                          |      |
//         free, released,  v      |  lock-delay: ask again
//         key absent -> kAcquiring
//
// Consul keeps a lock-delay in memory only; servers restored from a snapshot don't know it. So a
// candidate enforces it as well: when it sees the key free without an orderly release, it waits for
// the last holder's lock_delay on its own clock. By then that holder no longer trusts its lease. A
// lock that was released in order, or never held, is acquired at once. A release, or a lock
// of our own session, that is older than a holder which this host has seen comes from a snapshot. A
// key missing after such a holder was deleted or restored away. A restarted daemon still knows of
// that holder.
//
// A lock that is not wanted is watched, and never acquired.
//
// The watch may show an old state. So the lock is acquired only at the ModifyIndex at which it was
// seen free: then nobody has held it since.

#include <cstdint>
#include <optional>
#include <string>

#include "core/effect.h"
#include "core/event.h"
#include "core/options.h"
#include "core/requests.h"

namespace lictor::core {

/// The owner's name if the holder has none, or another member's.
inline constexpr const char* kUnknownOwner = "?";

class Lock {
 public:
  enum class State { kIdle, kWatching, kWaiting, kAcquiring, kHeld, kReleasing, kLost };
  enum class Change {
    kNone,
    kAcquired,
    kLost,
    kReleased,
    kSessionGone,   // no lock can be acquired with it any more
    kCountChanged,  // the queue has another number of partitions
  };
  struct Verdict {
    Change change = Change::kNone;
    // When the request was sent whose answer shows that the lock is ours.
    std::optional<Instant> proof;
  };

  Lock(const QueueOptions& options, std::uint32_t partition, Requests& requests,
       StoreTrouble& trouble)
      : options_(options),
        partition_{options.partitions, partition},
        requests_(requests),
        trouble_(trouble) {}

  /// An earlier daemon of this node has seen that the lock was held at this ModifyIndex.
  void know_held(std::uint64_t index) { held_index_ = index; }
  /// Acquires the lock with `session` as soon as it may.
  void campaign(Instant now, const std::string& session, Effects& out);
  /// Sets whether the lock should be acquired (at first: yes). A held lock stays held.
  void want(Instant now, bool wanted);
  /// Waits for nothing any more. A held lock is left to the end of its session.
  void stop(Effects& out);
  /// Gives the lock up. The next campaign waits for `standoff`, or until another host has taken it.
  void release(Duration standoff, Effects& out);
  /// Asks Consul whether the lock is ours.
  void prove(Instant now, Effects& out);
  /// Asks again, since an answer to an earlier request proves nothing any more.
  void prove_again(Instant now, Effects& out);
  /// The lock is not ours: a write was refused for that.
  void lose(Effects& out);

  Verdict on(Instant now, const LockReplied& reply, Effects& out);
  Verdict on(Instant now, const UnlockReplied& reply, Effects& out);
  Verdict on(Instant now, const LeaderRead& reply, Effects& out);
  void on_time(Instant now, Effects& out);

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] bool held() const { return state_ == State::kHeld; }
  /// Whether another host may hold the lock, and no job of a term of ours is left.
  [[nodiscard]] bool follows() const {
    return !held() && state_ != State::kReleasing && state_ != State::kLost;
  }
  /// The other node that held the lock at the watch's last answer; empty if nobody did.
  /// std::nullopt if that is not known.
  [[nodiscard]] const std::optional<std::string>& other_owner() const { return other_owner_; }
  /// While nobody holds the lock: no candidate may acquire it before.
  [[nodiscard]] Instant free_from() const { return free_from_; }
  /// While held: how long we had seen the lock free when we got it.
  [[nodiscard]] Duration takeover_gap() const { return takeover_gap_; }
  /// "a released the lock", "a was lost"; empty: no earlier holder is known.
  [[nodiscard]] const std::string& predecessor() const { return predecessor_; }
  [[nodiscard]] Instant next_deadline() const;

 private:
  void watch(std::uint64_t index, Effects& out);
  void watch_on(Instant now, const LeaderRead& reply, Effects& out);
  void watch_after(Instant when);
  [[nodiscard]] bool may_acquire(Instant now) const { return wanted_ && now >= standoff_until_; }
  void acquire(Instant now, std::uint64_t free_at, std::uint64_t held_at, Effects& out);
  void request_lock(Instant now, Effects& out);
  void restore_value(Instant now, std::uint64_t held_at, Effects& out);
  void unlock(Effects& out);
  void cancel_requests(Effects& out);
  void emit(Fact::Kind kind, Effects& out, std::string text = {}, Duration took = {}) const;
  void emit_waiting(Duration left, Effects& out);
  void note_held(std::uint64_t index, Effects& out);

  void on_watch_as_candidate(Instant now, const LeaderRead& reply, Effects& out);
  void on_seen_held(Instant now, const LeaderRead& reply, Effects& out);
  void on_seen_gone(Instant now, Effects& out);
  void on_seen_free(Instant now, const LeaderRead& reply, Effects& out);
  void on_watch_as_holder(Instant now, const LeaderRead& reply, Effects& out);
  Verdict on_consistent_read(Instant now, const LeaderRead& reply, Effects& out);
  Verdict on_acquired(Instant now, const LockReplied& reply, Effects& out);
  Verdict on_value_restored(Instant now, const LockReplied& reply, Effects& out);

  const QueueOptions& options_;
  const Partition partition_;
  Requests& requests_;
  StoreTrouble& trouble_;

  State state_ = State::kIdle;
  std::string session_;
  bool wanted_ = true;
  std::string other_holder_;
  std::optional<std::string> other_owner_;
  std::string predecessor_;
  std::uint64_t own_index_ = 0;  // ModifyIndex of the leader key when we last wrote it

  // Results of the watch; zero: none.
  std::uint64_t held_index_ = 0;  // the greatest ModifyIndex with a holder, since we held it last
  std::uint64_t free_index_ = 0;  // the ModifyIndex without a holder
  Instant freed_seen_{};          // when free_index_ was first seen
  Instant free_from_{};           // when the lock may be acquired
  Duration takeover_gap_{};

  // Requests in flight; zero when none.
  RequestId lock_, unlock_, read_, watch_;
  Instant lock_sent_{}, read_sent_{};
  std::uint64_t lock_free_at_ = 0, lock_held_at_ = 0;  // the indexes that lock_ asks for
  bool read_again_ = false;  // something happened after the read in flight was sent
  std::uint64_t watch_index_ = 0;
  std::uint64_t retry_index_ = 0;  // of the failed watch; 0: read again
  WatchFailures failures_;         // of the watch

  // Deadlines; Instant::max() when none.
  Instant acquire_at_ = Instant::max();    // in kWaiting
  Instant read_at_ = Instant::max();       // when to read the leader key, to restore its value
  Instant retry_at_ = Instant::max();      // when to repeat the request that the state waits for
  Instant restore_from_ = Instant::min();  // restore the leader key's value no earlier
  Instant quiet_until_ = Instant::min();
  Instant standoff_until_ = Instant::min();
  Duration standoff_{};
  bool waiting_reported_ = false;
};

}  // namespace lictor::core
