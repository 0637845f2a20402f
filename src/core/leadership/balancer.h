#pragma once

// Which partitions of a queue this host should take, and which it should give to others. Locks in
// Consul decide who owns a partition; this decides who asks for them, and when. All hosts decide
// the same, without talking to each other.
//
//   owned by another <--its lock--- free ---our lock--> owned here
//          |                         ^  ^                    |
//          +-- gone, or given up ----+  +-- handed over -----+ while this host owns more than its
//                                                              share, and the fleet is settled; one
//                                                              at a time
//
// - The shares follow from the members, their weights and how many each owns (Sainte-Lague).
//   Members of equal weight have shares within one of each other. Those that own the most get the
//   larger ones, so that as few partitions move as can be.
// - Each free partition has a target: a member that owns less than its share, by rendezvous
//   hashing, so that hosts with somewhat different views mostly agree. It asks for the lock at
//   once, the others step by step. The last owner is not waited for.
// - For `distrust`, two kinds of members get no more than they have: one that did not take what it
//   was the target of, since it may hang, and one that gave up a partition without being above its
//   share, since it was asked to step down.
//
// Pure and deterministic. A view costs a sort of members x free partitions.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lictor/time.h"

namespace lictor::core {

struct BalancerMember {
  std::string id;
  std::uint32_t weight = 1;  ///< relative to the others' shares; 0 counts as 1
  bool draining = false;     ///< gives all away and takes nothing

  friend bool operator==(const BalancerMember&, const BalancerMember&) = default;
};

/// A host's knowledge of the fleet.
struct BalancerView {
  std::vector<BalancerMember> members;  ///< in any order, no id twice
  std::vector<std::string> owners;      ///< of each partition; empty: it is free
  std::vector<Instant> free_from{};     ///< for a free one: its lock can't be acquired before
  std::vector<std::size_t> jobs{};      ///< in each owned here; the one with the fewest goes first
  std::vector<bool> of_namesake{};      ///< another daemon of this name owns it
};

/// How many partitions a member owns, and should own.
struct PartitionShare {
  std::uint32_t weight = 1;
  std::size_t owned = 0;
  std::size_t share = 0;
  Instant grows_from{};  ///< until then its share is not above what it owns
};
/// By the member's id.
using PartitionShares = std::map<std::string, PartitionShare, std::less<>>;

/// The shares of the members that do not drain. Independent of the members' order.
[[nodiscard]] PartitionShares partition_shares(const BalancerView& view);

struct BalancerOptions {
  /// How long a hand-over waits after the last change of the members: hosts start one after the
  /// other, and views are up to a blocking query apart.
  Duration settle = std::chrono::seconds{10};
  /// How long each member that ranks before may take to see a free partition and to lock it.
  /// Several times a round trip, and short beside a session's TTL.
  Duration step = std::chrono::seconds{1};
  /// Time for the session of a hung daemon to end: twice its TTL.
  Duration distrust = std::chrono::seconds{30};
  /// How long the next hand-over waits for the last one if nobody takes that partition.
  Duration patience = std::chrono::seconds{10};
};

/// Not thread-safe. Times never go back.
class Balancer {
 public:
  explicit Balancer(std::string self, BalancerOptions options = {})
      : self_(std::move(self)), options_(options) {}

  /// A new view, newer than the last one, of as many partitions.
  void on_view(Instant now, BalancerView view);

  /// The free partitions whose locks this host should ask for now, in ascending order.
  [[nodiscard]] std::vector<std::uint32_t> to_take(Instant now);
  /// The partition that this host should stop working on and unlock. The answer stays until a view
  /// shows another owner, or none, or until the partition should be kept after all.
  [[nodiscard]] std::optional<std::uint32_t> to_hand_over(Instant now);
  /// The partition is not handed over before `until`: its jobs take too long.
  void keep(std::uint32_t partition, Instant until);
  /// The first time after `now` at which the answers may change without a new view.
  [[nodiscard]] Instant next_deadline(Instant now) const;

 private:
  void take_members(Instant now, const std::vector<BalancerMember>& members);
  void note_changes(Instant now, const BalancerView& view);
  void note_missed(Instant now, std::size_t partition, const std::string& owner);
  void find_targets(Instant now);
  [[nodiscard]] std::size_t rank_of_self(std::size_t partition) const;
  [[nodiscard]] bool is_mine(std::size_t partition) const {
    return owners_[partition] == self_ && !of_namesake_[partition];
  }
  [[nodiscard]] bool is_free(std::size_t partition) const { return owners_[partition].empty(); }
  [[nodiscard]] bool is_above_share() const;
  [[nodiscard]] bool somebody_takes() const;

  const std::string self_;
  const BalancerOptions options_;

  PartitionShares fleet_;           // of the members that do not drain
  bool draining_ = false;           // this host
  std::optional<Instant> started_;  // the first view
  Instant changed_{};               // when the members last changed
  std::vector<std::string> owners_;
  std::vector<std::string> last_owners_;
  std::vector<std::size_t> jobs_;
  std::vector<bool> of_namesake_;
  std::vector<Instant> kept_until_;
  std::vector<Instant> free_since_;         // its lock can be acquired; Instant::max(): it is owned
  std::vector<std::string> targets_;        // of the free partitions; empty: nobody
  Instant targets_until_ = Instant::max();  // then a member's share may grow
  std::optional<std::uint32_t> handing_;    // until somebody takes it
};

}  // namespace lictor::core
