#pragma once

// Which partitions of a queue this host should take, and which it should give to others. Locks in
// Consul decide who owns a partition; this decides who asks for them, and when. All hosts decide
// alike, without talking to each other.
//
//   owned by another <--its lock--- free ---our lock--> owned here
//          |                         ^  ^                    |
//          +-- gone, or given up ----+  +-- handed over -----+ if another is its target, and the
//                                                              fleet is settled; one at a time
//
// A free partition's target asks for the lock at once, the others step by step. The last owner is
// not waited for.
//
// Each partition has a target: its home, or, while its home is absent, a stand-in.
//
// - Homes follow from the members and their weights alone: rendezvous hashing, where no member
//   takes more than its share (Sainte-Lague; members of equal weight have shares within one of each
//   other). A host's share is the partitions that it is the target of; what it owns beyond them it
//   hands over.
// - A member that leaves or drains keeps its homes for `absence`. So a restart moves its partitions
//   to stand-ins and back, and nothing else. Later its homes go to the others; then one to three
//   times its share moves (the unit test bounds this).
// - A daemon that has just started does not know who left before, and two hosts that disagree about
//   a home could pass a partition to and fro. All agree on the shares, though. So for `absence` it
//   hands over to members that were there before it only while they own less than their share, and
//   no partition twice within `repeat`.
// - A stand-in need not be the owner: another may have been faster. An owner hands over to
//   stand-ins only while it owns more than its share. That ends, for each such hand-over leaves
//   fewer partitions away from their targets.
// - A member that did not take what it is the target of gets nothing for `distrust`: it may hang.
//   Nor does one that gave up what it was the target of: it was asked to step down.
//
// Pure and deterministic. A change of the members costs a sort of members x partitions.

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
  std::uint32_t weight = 1;  ///< its share relative to those of others; 0 counts as 1
  bool draining = false;     ///< it gives all away and takes nothing

  friend bool operator==(const BalancerMember&, const BalancerMember&) = default;
};

/// What a host knows of the fleet.
struct BalancerView {
  std::vector<BalancerMember> members;  ///< in any order, no id twice
  std::vector<std::string> owners;      ///< of each partition; empty: it is free
  std::vector<Instant> free_from{};     ///< of a free one: its lock can't be acquired before
  std::vector<std::size_t> jobs{};      ///< in each owned here; the one with the fewest goes first
};

/// The member that should own each partition once all members have been there for long; empty:
/// none. Depends neither on the members' order nor on who owns what.
[[nodiscard]] std::vector<std::string> targets(const BalancerView& view);

struct BalancerOptions {
  /// What a hand-over waits for after the last change of the members: hosts that start one after
  /// the other, and views that are up to a blocking query apart.
  Duration settle = std::chrono::seconds{10};
  /// Covers a restart of the host, not just of the daemon.
  Duration absence = std::chrono::minutes{5};
  /// How long each of those that rank before may take to see a free partition and to lock it.
  /// Several times a round trip, and short beside a session's TTL.
  Duration step = std::chrono::seconds{1};
  /// Until the session of a daemon that hangs has ended: twice its TTL.
  Duration distrust = std::chrono::seconds{30};
  /// While two hosts may disagree: how long a partition that was handed over and came back stays.
  Duration repeat = std::chrono::seconds{90};
  /// How long the next hand-over waits for a partition that was handed over and that nobody takes.
  Duration patience = std::chrono::seconds{10};
};

/// Not thread-safe. Times never go back.
class Balancer {
 public:
  explicit Balancer(std::string self, BalancerOptions options = {})
      : self_(std::move(self)), options_(options) {}

  /// A new view, newer than the last one. The number of partitions may be another one.
  void on_view(Instant now, BalancerView view);

  /// The free partitions whose locks this host should ask for now, in ascending order.
  [[nodiscard]] std::vector<std::uint32_t> to_take(Instant now);
  /// The partition that this host should stop working on and unlock. The same until a view shows
  /// another owner, or none, or until it should be kept after all.
  [[nodiscard]] std::optional<std::uint32_t> to_hand_over(Instant now);
  /// The partition is not handed over before `until`: its jobs take too long.
  void keep(std::uint32_t partition, Instant until);
  /// The first time after `now` at which the answers may be others without a new view.
  [[nodiscard]] Instant next_deadline(Instant now) const;

 private:
  struct Known {
    std::uint32_t weight = 1;
    bool useful = false;               // there, and not draining
    bool younger = false;              // it came after this host's first view
    Instant absent_since{};            // if it is not useful
    Instant not_before{};              // nothing is handed over to it
    std::vector<std::uint64_t> costs;  // of each partition; the lowest ranks first
    std::size_t share = 0;             // as a target
    std::size_t owned = 0;
  };
  using Fleet = std::map<std::string, Known, std::less<>>;

  void take_members(Instant now, const std::vector<BalancerMember>& members);
  void take_owners(Instant now, BalancerView view);
  void forget_absent(Instant now);
  void find_targets();
  void note_missed(Instant now, std::size_t partition, const std::string& owner);
  [[nodiscard]] std::size_t rank_of_self(std::size_t partition) const;
  [[nodiscard]] bool is_mine(std::size_t partition) const { return owners_[partition] == self_; }
  [[nodiscard]] bool is_to_go(Instant now, std::size_t partition) const;
  [[nodiscard]] bool knows_absent(Instant now) const { return now >= *started_ + options_.absence; }
  [[nodiscard]] bool somebody_takes() const;
  [[nodiscard]] const Known* own() const;

  const std::string self_;
  const BalancerOptions options_;

  Fleet fleet_;                     // those that are there, and those that have homes
  bool draining_ = false;           // this host
  std::optional<Instant> started_;  // the first view
  Instant changed_{};               // the members
  std::vector<std::string> owners_;
  std::vector<std::string> last_owners_;
  std::vector<std::size_t> jobs_;
  std::vector<Instant> kept_until_;
  std::vector<Instant> given_again_from_;  // while two hosts may disagree
  std::vector<Instant> free_since_;        // its lock can be acquired; Instant::max(): it is owned
  struct Target {
    std::string id;       // empty: there is nobody
    bool is_home = true;  // and no stand-in
  };
  std::vector<Target> targets_;
  std::optional<std::uint32_t> handing_;  // until it is taken
};

}  // namespace lictor::core
