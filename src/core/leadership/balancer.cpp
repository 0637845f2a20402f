#include "core/leadership/balancer.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/assert.h"
#include "base/siphash.h"
#include "core/partition.h"

namespace lictor::core {
namespace {

// The rank of a member for a partition; the lowest comes first.
std::uint64_t rank_hash(const std::string& id, std::size_t partition) {
  return siphash<2, 4>(kPartitionKey, id + '/' + std::to_string(partition));
}

PartitionShares members_of(const std::vector<BalancerMember>& members) {
  PartitionShares shares;
  for (const BalancerMember& member : members) {
    if (!member.draining) shares[member.id].weight = std::max(member.weight, 1U);
  }
  return shares;
}

void count_owned(PartitionShares& shares, const std::vector<std::string>& owners) {
  for (auto& [id, member] : shares) member.owned = 0;
  for (const std::string& owner : owners) {
    if (const auto member = shares.find(owner); member != shares.end()) ++member->second.owned;
  }
}

// Each partition goes to the member that has the fewest for its weight (Sainte-Lague); of equal
// members, to one that owns it already.
void share_out(Instant now, PartitionShares& shares, std::size_t partitions) {
  for (auto& [id, member] : shares) member.share = 0;
  const auto before = [](const PartitionShare& a, const PartitionShare& b) {
    const std::uint64_t cost_a = (2 * a.share + 1) * b.weight;
    const std::uint64_t cost_b = (2 * b.share + 1) * a.weight;
    return cost_a != cost_b ? cost_a < cost_b : a.owned > a.share && b.owned <= b.share;
  };
  for (std::size_t i = 0; i < partitions; ++i) {
    PartitionShare* best = nullptr;
    for (auto& [id, member] : shares) {
      if (now < member.grows_from && member.share >= member.owned) continue;
      if (best == nullptr || before(member, *best)) best = &member;
    }
    if (best == nullptr) return;
    ++best->share;
  }
}

// Assigns each free partition to the best-ranking member that owns less than its share. The best
// pairs come first, so a member fills up with the partitions that it ranks best for.
std::vector<std::string> assign_free(const PartitionShares& shares,
                                     const std::vector<std::string>& owners) {
  std::map<std::string_view, std::size_t> room;
  std::vector<std::tuple<std::uint64_t, std::size_t, std::string_view>> pairs;
  for (const auto& [id, member] : shares) {
    if (member.share <= member.owned) continue;
    room[id] = member.share - member.owned;
    for (std::size_t i = 0; i < owners.size(); ++i) {
      if (owners[i].empty()) pairs.emplace_back(rank_hash(id, i), i, id);
    }
  }
  std::sort(pairs.begin(), pairs.end());
  std::vector<std::string> targets(owners.size());
  for (const auto& [hash, partition, id] : pairs) {
    if (!targets[partition].empty() || room[id] == 0) continue;
    targets[partition] = id;
    --room[id];
  }
  return targets;
}

}  // namespace

PartitionShares partition_shares(const BalancerView& view) {
  PartitionShares shares = members_of(view.members);
  count_owned(shares, view.owners);
  share_out({}, shares, view.owners.size());
  return shares;
}

void Balancer::on_view(Instant now, BalancerView view) {
  if (!started_) {
    owners_.assign(view.owners.size(), {});
    last_owners_ = targets_ = owners_;
    free_since_.assign(view.owners.size(), Instant::max());
    kept_until_.assign(view.owners.size(), Instant::min());
  }
  LICTOR_ASSERT(view.owners.size() == owners_.size());
  take_members(now, view.members);
  started_ = started_.value_or(now);
  note_changes(now, view);
  owners_ = std::move(view.owners);
  jobs_ = std::move(view.jobs);
  jobs_.resize(owners_.size());
  of_namesake_ = std::move(view.of_namesake);
  of_namesake_.resize(owners_.size());
  find_targets(now);
}

// Knowledge about a member (grows_from) lasts as long as its membership.
void Balancer::take_members(Instant now, const std::vector<BalancerMember>& members) {
  PartitionShares fleet = members_of(members);
  bool same = fleet.size() == fleet_.size();
  for (auto& [id, member] : fleet) {
    const auto before = fleet_.find(id);
    same = same && before != fleet_.end() && before->second.weight == member.weight;
    if (before == fleet_.end()) continue;
    const std::uint32_t weight = member.weight;
    member = before->second;
    member.weight = weight;
  }
  if (!same) changed_ = now;
  fleet_ = std::move(fleet);
  draining_ = std::any_of(members.begin(), members.end(), [&](const BalancerMember& member) {
    return member.id == self_ && member.draining;
  });
}

void Balancer::note_changes(Instant now, const BalancerView& view) {
  for (std::size_t i = 0; i < view.owners.size(); ++i) {
    if (!view.owners[i].empty()) {
      if (is_free(i)) note_missed(now, i, view.owners[i]);
      free_since_[i] = Instant::max();
      continue;
    }
    if (!is_free(i)) {
      last_owners_[i] = owners_[i];
      const auto last = fleet_.find(owners_[i]);
      if (last != fleet_.end() && last->second.owned <= last->second.share) {
        last->second.grows_from = now + options_.distrust;
      }
    }
    if (free_since_[i] == Instant::max()) free_since_[i] = now;
    if (i < view.free_from.size()) free_since_[i] = std::max(free_since_[i], view.free_from[i]);
  }
}

// A free partition has an owner now. When the number of partitions changes, hosts learn of it some
// seconds apart: a late one does not hang.
void Balancer::note_missed(Instant now, std::size_t partition, const std::string& owner) {
  const Instant since = free_since_[partition];
  if (since == Instant::max() || now - since < options_.step) return;
  if (now < *started_ + options_.settle) return;
  const auto target = fleet_.find(targets_[partition]);
  if (target == fleet_.end() || target->first == owner) return;
  target->second.grows_from = now + options_.distrust;
}

void Balancer::find_targets(Instant now) {
  count_owned(fleet_, owners_);
  share_out(now, fleet_, owners_.size());
  targets_ = assign_free(fleet_, owners_);
  targets_until_ = Instant::max();
  for (const auto& [id, member] : fleet_) {
    if (member.grows_from > now) targets_until_ = std::min(targets_until_, member.grows_from);
  }
}

// How many other members should try first. The last owner has died, or gives the partition up.
std::size_t Balancer::rank_of_self(std::size_t partition) const {
  const std::string& last = last_owners_[partition];
  const std::string& target = targets_[partition];
  if (target == self_) return 0;
  std::size_t rank = target.empty() || target == last ? 0 : 1;
  const auto own = std::pair{rank_hash(self_, partition), std::string_view{self_}};
  for (const auto& [id, member] : fleet_) {
    if (id == target || id == last) continue;
    if (std::pair{rank_hash(id, partition), std::string_view{id}} < own) ++rank;
  }
  return rank;
}

std::vector<std::uint32_t> Balancer::to_take(Instant now) {
  if (now >= targets_until_) find_targets(now);
  std::vector<std::uint32_t> partitions;
  if (!fleet_.contains(self_)) return partitions;
  for (std::size_t i = 0; i < owners_.size(); ++i) {
    if (!is_free(i)) continue;
    const Duration wait = options_.step * static_cast<Duration::rep>(rank_of_self(i));
    if (now - free_since_[i] >= wait) partitions.push_back(static_cast<std::uint32_t>(i));
  }
  return partitions;
}

// Whether another member may take a partition that this host gives up.
bool Balancer::somebody_takes() const {
  return std::any_of(fleet_.begin(), fleet_.end(),
                     [&](const auto& each) { return each.first != self_; });
}

bool Balancer::is_above_share() const {
  const auto self = fleet_.find(self_);
  return draining_ || (self != fleet_.end() && self->second.owned > self->second.share);
}

// Gives one at a time: the next goes when the last has an owner, or nobody has taken it for
// `patience`.
std::optional<std::uint32_t> Balancer::to_hand_over(Instant now) {
  if (now >= targets_until_) find_targets(now);
  if (handing_) {
    const std::size_t last = *handing_;
    if (is_mine(last) && is_above_share()) return handing_;
    if (is_free(last) && somebody_takes() && now - free_since_[last] < options_.patience) {
      return std::nullopt;
    }
    handing_.reset();
  }
  if (!is_above_share() || (!draining_ && now < changed_ + options_.settle)) return std::nullopt;
  for (std::size_t i = 0; i < owners_.size(); ++i) {
    if (!is_mine(i) || (!draining_ && now < kept_until_[i])) continue;
    if (!handing_ || jobs_[i] < jobs_[*handing_]) handing_ = static_cast<std::uint32_t>(i);
  }
  return handing_;
}

void Balancer::keep(std::uint32_t partition, Instant until) {
  kept_until_[partition] = until;
  if (handing_ == partition) handing_.reset();
}

Instant Balancer::next_deadline(Instant now) const {
  Instant next = Instant::max();
  const auto consider = [&](Instant at) {
    if (at > now) next = std::min(next, at);
  };
  consider(changed_ + options_.settle);
  consider(targets_until_);
  for (std::size_t i = 0; i < owners_.size(); ++i) {
    if (is_mine(i)) consider(kept_until_[i]);
    if (!is_free(i)) continue;
    if (fleet_.contains(self_)) {
      consider(free_since_[i] + options_.step * static_cast<Duration::rep>(rank_of_self(i)));
    }
    if (handing_ == i) consider(free_since_[i] + options_.patience);
  }
  return next;
}

}  // namespace lictor::core
