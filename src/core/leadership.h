#pragma once

// What this host leads of a queue: one session, and with it the lease of each partition.
//
//   session: opened ----> every lease campaigns
//            gone ------> leases that hold the lock ask for a proof; with none, another is opened
//   lease:   proof due --> one proof for all that hold their locks
//            lost ------> resume() when its jobs are over: if the session lives, it campaigns again
//            released --> it campaigns again, or, after close(), the last one ends the session
//
// Session (core/session.h) opens, renews and ends the session; Lease (core/lease.h) is a
// partition's lock and the trust in it.

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "core/balancer.h"
#include "core/effect.h"
#include "core/event.h"
#include "core/lease.h"
#include "core/options.h"
#include "core/requests.h"
#include "core/session.h"

namespace lictor::core {

class Leadership {
 public:
  struct Change {
    std::uint32_t partition = 0;
    Lease::Change what = Lease::Change::kNone;
  };
  using Changes = std::vector<Change>;

  Leadership(const QueueOptions& options, Requests& requests);
  Leadership(const Leadership&) = delete;  // its parts refer to each other
  Leadership& operator=(const Leadership&) = delete;

  /// `previous_session`: of an earlier daemon of this node; it is taken up if it still lives.
  void start(Instant now, const std::optional<std::string>& previous_session, Effects& out);

  void on(Instant now, const SessionCreated& reply, Effects& out);
  void on(Instant now, const SessionRenewed& reply, Effects& out);
  void on(Instant now, const SessionDestroyed& reply, Effects& out);
  template <class LockReply>
  Changes on(Instant now, const LockReply& reply, Effects& out) {
    Changes changes;
    owners_seen_ = false;
    for (std::uint32_t i = 0; i < leases_.size(); ++i) {
      note(now, i, leases_[i].on(now, reply, out), changes, out);
    }
    return changes;
  }
  Changes on(Instant now, const LocksProved& reply, Effects& out);
  Changes on_time(Instant now, Effects& out);

  /// A write that was sent at `sent_at` under the partition's fence was applied.
  Changes proved(Instant now, std::uint32_t partition, Instant sent_at, Effects& out);
  /// The partition's fence refused a write.
  Changes refused(Instant now, std::uint32_t partition, Effects& out);
  /// The wall clock stepped against the monotonic clock, which may have stood still.
  void clock_stepped(Instant now, Effects& out);

  /// After kLost, when every job of the partition's old term is over.
  void resume(Instant now, std::uint32_t partition, Effects& out);
  /// Gives up the partition if it is held, and leaves it to others for `standoff`.
  void resign(std::uint32_t partition, Duration standoff, Effects& out) {
    leases_[partition].resign(standoff, out);
  }
  /// Acquires the locks of these partitions alone, in ascending order.
  void want_only(Instant now, const std::vector<std::uint32_t>& partitions);
  /// Fills in who holds each partition; this host is `self`. False: it may not have changed since
  /// the last call, or the watch has not told of each yet.
  [[nodiscard]] bool read_owners(const std::string& self, BalancerView& view);
  /// Acquires no lock any more; what is held stays held.
  void retire(Effects& out);
  /// Gives up all locks and the session. Tries until `until`, then leaves it to its TTL.
  void close(Instant until, Effects& out);
  /// The session is gone, or was left to its TTL.
  [[nodiscard]] bool closed() const { return session_.closed(); }

  [[nodiscard]] const Lease& lease(std::uint32_t partition) const { return leases_[partition]; }
  [[nodiscard]] const std::string& session() const { return session_.id(); }
  [[nodiscard]] Instant next_deadline() const;

 private:
  void on_session(Instant now, Session::Change change, Effects& out);
  void note(Instant now, std::uint32_t partition, Lease::Change change, Changes& changes,
            Effects& out);
  void replace_session(Effects& out);
  void prove_all(Instant now, Effects& out);
  void end_session_if_free(Instant now, Effects& out);
  [[nodiscard]] bool any_holds() const;
  [[nodiscard]] bool all_follow() const;

  const QueueOptions& options_;
  Requests& requests_;
  StoreTrouble trouble_;
  Session session_;
  std::deque<Lease> leases_;  // by partition
  RequestId proof_;           // of several partitions; zero when none is in flight
  Instant proof_sent_{};
  Instant prove_again_at_ = Instant::max();  // after trouble
  std::vector<std::uint32_t> proving_;       // held since before it was sent
  bool owners_seen_ = true;
  bool retired_ = false;
  bool closing_ = false;
};

}  // namespace lictor::core
