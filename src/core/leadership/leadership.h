#pragma once

// This host's leadership in a queue: one session, the trust in it, and the lease of each partition.
//
//   session: opened ----> every lease campaigns
//            gone ------> a held lock is read; with none, another session is opened
//   trust:   proof due -> one held lock is read, each in its turn: it proves the session, and so
//                         all locks that hang on it, however many there are
//   lease:   lost ------> the next held lock is read, since the session may be gone; resume() when
//                         its jobs are over: if the session lives, it campaigns again
//            released --> it campaigns again, or, after close(), the last one ends the session
//
// Session (session.h) opens, renews and ends the session. Lock (lock.h) takes the leader key of a
// partition and gives it back. Trust (trust.h) counts how long the session's locks may be trusted.
// A lease is a lock that is held, under that trust.

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "core/effect.h"
#include "core/event.h"
#include "core/leadership/balancer.h"
#include "core/leadership/lock.h"
#include "core/leadership/session.h"
#include "core/leadership/trust.h"
#include "core/options.h"
#include "core/requests.h"

namespace lictor::core {

/// The effect of an event on the lease of a partition.
enum class LeaseChange {
  kWon,
  kExpired,   // no proof within the span: no job may run, but the lock may still be ours
  kRegained,  // a proof came after all
  kLost,      // the lock is not ours any more
  kResigned,  // given up as asked
};

class Leadership {
 public:
  struct Change {
    std::uint32_t partition = 0;
    LeaseChange what = LeaseChange::kWon;
  };
  using Changes = std::vector<Change>;

  Leadership(const QueueOptions& options, Requests& requests);
  Leadership(const Leadership&) = delete;  // its parts refer to each other
  Leadership& operator=(const Leadership&) = delete;

  /// Takes up the session of an earlier daemon of this node if it still lives.
  void start(Instant now, const Started& started, Effects& out);

  /// The reply to a request about the session or a lock.
  template <class Reply>
  Changes on(Instant now, const Reply& reply, Effects& out) {
    Changes changes;
    if constexpr (requires { session_.on(now, reply, out); }) {
      on_session(now, session_.on(now, reply, out), out);
    } else {
      owners_seen_ = false;
      for (std::uint32_t i = 0; i < locks_.size(); ++i) {
        take(now, i, locks_[i].on(now, reply, out), changes, out);
      }
    }
    return changes;
  }
  Changes on_time(Instant now, Effects& out);

  /// A write that was sent at `sent_at` under the fence of some partition was applied.
  Changes proved(Instant now, Instant sent_at, Effects& out);
  /// The partition's fence refused a write.
  Changes refused(Instant now, std::uint32_t partition, Effects& out);
  /// Call when the wall clock stepped against the monotonic clock, which may have stood still.
  void clock_stepped(Instant now, Effects& out);

  /// After kLost, when every job of the partition's old term is over.
  void resume(Instant now, std::uint32_t partition, Effects& out);
  /// Gives up the partition if it is held, and leaves it to others for `standoff`.
  void resign(std::uint32_t partition, Duration standoff, Effects& out);
  /// Acquires the locks of these partitions only, in ascending order.
  void want_only(Instant now, const std::vector<std::uint32_t>& partitions);
  /// Fills in the holder of each partition; this host is `self`. False: the holders may not have
  /// changed since the last call, or the watch has not shown each yet.
  [[nodiscard]] bool read_owners(const std::string& self, BalancerView& view);
  /// Acquires no more locks; held ones stay held.
  void retire(Effects& out);
  /// Gives up all locks and the session. Tries until `until`, then leaves it to its TTL.
  void close(Instant until, Effects& out);
  /// Whether the session is gone, or was left to its TTL.
  [[nodiscard]] bool closed() const { return session_.closed(); }

  [[nodiscard]] const Lock& lock(std::uint32_t partition) const { return locks_[partition]; }
  /// Whether the lock is ours as far as known, trusted or not.
  [[nodiscard]] bool holds(std::uint32_t partition) const { return locks_[partition].held(); }
  [[nodiscard]] bool holds_any() const;
  /// Before this time no lost lock may be acquired.
  [[nodiscard]] Instant free_from() const;
  /// The trust in all held locks.
  [[nodiscard]] const Trust& trust() const { return trust_; }
  [[nodiscard]] const std::string& session() const { return session_.id(); }
  /// Consul refused a lock, since the queue has another number of partitions than requested.
  [[nodiscard]] bool count_changed() const { return count_changed_; }
  [[nodiscard]] Instant next_deadline() const;

 private:
  void on_session(Instant now, Session::Change change, Effects& out);
  void take(Instant now, std::uint32_t partition, const Lock::Verdict& verdict, Changes& changes,
            Effects& out);
  void win(Instant now, std::uint32_t partition, Instant sent_at, Changes& changes, Effects& out);
  void lose(Instant now, std::uint32_t partition, Changes& changes, Effects& out);
  bool prove_with(Instant now, Instant sent_at, Changes& changes, Effects& out);
  void extend(std::uint32_t partition, Effects& out) const;
  [[nodiscard]] Lock& lock_to_read();
  void prove_by_next() { proving_ = proving_ + 1 == locks_.size() ? 0 : proving_ + 1; }
  void end_trust_if_free();
  void end_session_if_free(Instant now, Effects& out);
  [[nodiscard]] bool all_follow() const;

  StoreTrouble trouble_;
  Session session_;
  Trust trust_;
  std::deque<Lock> locks_;     // by partition
  std::uint32_t proving_ = 0;  // the partition whose lock is the next proof
  bool owners_seen_ = true;
  bool count_changed_ = false;
  bool retired_ = false;
  bool closing_ = false;
};

}  // namespace lictor::core
