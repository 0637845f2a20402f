#include "core/leadership/balancer.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/siphash.h"
#include "core/partition.h"

namespace lictor::core {
namespace {

constexpr int kFraction = 24;  // bits of a logarithm

// -log2(hash / 2^64) in units of 2^-24. In integers, since hosts with different C libraries must
// agree to the last bit.
std::uint64_t negative_log2(std::uint64_t hash) {
  hash |= 1U;
  const int zeros = std::countl_zero(hash);
  std::uint64_t mantissa = hash << static_cast<unsigned>(zeros) >> 32U;  // [1, 2) in 2^-31
  std::uint64_t log = static_cast<std::uint64_t>(63 - zeros);
  for (int i = 0; i < kFraction; ++i) {
    mantissa = mantissa * mantissa >> 31U;
    const std::uint64_t bit = mantissa >> 32U;
    mantissa >>= bit;
    log = log << 1U | bit;
  }
  return (std::uint64_t{64} << kFraction) - log;
}

// The rank of a member for a partition: of exponential variables with the weights as rates the
// first one wins, so the member of twice the weight wins twice as often.
std::uint64_t cost_of(const std::string& id, std::uint32_t weight, std::size_t partition) {
  const std::uint64_t hash = siphash<2, 4>(kPartitionKey, id + '/' + std::to_string(partition));
  return (negative_log2(hash) << kFraction) / weight;
}

std::vector<std::uint64_t> costs_of(const std::string& id, std::uint32_t weight,
                                    std::size_t partitions) {
  std::vector<std::uint64_t> costs(partitions);
  for (std::size_t i = 0; i < partitions; ++i) costs[i] = cost_of(id, weight, i);
  return costs;
}

struct Candidate {
  const std::string* id;
  std::uint32_t weight;
  const std::vector<std::uint64_t>* costs;
  std::size_t share = 0;
};

// Gives `count` more partitions to the candidates' shares: each to the one that has the fewest for
// its weight (Sainte-Lague). With this method no share becomes smaller when a candidate leaves.
void add_shares(std::vector<Candidate>& candidates, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto less = [](const Candidate& a, const Candidate& b) {
      return (2 * a.share + 1) * b.weight < (2 * b.share + 1) * a.weight;
    };
    ++std::min_element(candidates.begin(), candidates.end(), less)->share;
  }
}

constexpr std::size_t kNobody = SIZE_MAX;

// Assigns each of `partitions` to the candidate that ranks best for it and has room left; there is
// room for all. The best pairs come first, so a candidate fills up with what it ranks best for.
void assign(const std::vector<Candidate>& candidates, std::vector<std::size_t> room,
            const std::vector<std::size_t>& partitions, std::vector<std::size_t>& found) {
  std::vector<std::tuple<std::uint64_t, std::size_t, std::size_t>> pairs;
  pairs.reserve(candidates.size() * partitions.size());
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    for (const std::size_t each : partitions)
      pairs.emplace_back((*candidates[i].costs)[each], each, i);
  }
  std::sort(pairs.begin(), pairs.end());
  for (const auto& [cost, partition, candidate] : pairs) {
    if (found[partition] != kNobody || room[candidate] == 0) continue;
    found[partition] = candidate;
    --room[candidate];
  }
}

std::vector<std::size_t> find_homes(std::vector<Candidate>& candidates, std::size_t partitions) {
  std::vector<std::size_t> homes(partitions, kNobody);
  if (candidates.empty()) return homes;
  add_shares(candidates, partitions);
  std::vector<std::size_t> room, all(partitions);
  for (const Candidate& each : candidates) room.push_back(each.share);
  std::iota(all.begin(), all.end(), std::size_t{0});
  assign(candidates, std::move(room), all, homes);
  return homes;
}

}  // namespace

std::vector<std::string> targets(const BalancerView& view) {
  std::map<std::string, std::vector<std::uint64_t>> costs;
  std::map<std::string, std::uint32_t> weights;
  for (const BalancerMember& member : view.members) {
    if (member.draining) continue;
    const std::uint32_t weight = std::max(member.weight, 1U);
    weights[member.id] = weight;
    costs[member.id] = costs_of(member.id, weight, view.owners.size());
  }
  std::vector<Candidate> candidates;
  candidates.reserve(weights.size());
  for (const auto& [id, weight] : weights) candidates.push_back({&id, weight, &costs[id]});
  std::vector<std::string> found;
  for (const std::size_t home : find_homes(candidates, view.owners.size())) {
    found.push_back(home == kNobody ? std::string{} : *candidates[home].id);
  }
  return found;
}

void Balancer::on_view(Instant now, BalancerView view) {
  if (view.owners.size() != owners_.size()) {
    owners_.assign(view.owners.size(), {});
    last_owners_.assign(view.owners.size(), {});
    free_since_.assign(view.owners.size(), Instant::max());
    kept_until_.assign(view.owners.size(), Instant::min());
    given_again_from_.assign(view.owners.size(), Instant::min());
    handing_.reset();
    changed_ = now;
    for (auto& [id, known] : fleet_) known.costs.clear();
    targets_.clear();
  }
  forget_absent(now);
  take_members(now, view.members);
  started_ = started_.value_or(now);
  if (changed_ == now || targets_.size() != owners_.size()) find_targets();
  take_owners(now, std::move(view));
}

void Balancer::take_members(Instant now, const std::vector<BalancerMember>& members) {
  std::map<std::string_view, const BalancerMember*> there;
  for (const BalancerMember& member : members) there[member.id] = &member;
  for (const auto& [id, member] : there) {
    if (!member->draining) fleet_.try_emplace(member->id);
  }
  for (auto& [id, known] : fleet_) {
    const auto it = there.find(id);
    const bool useful = it != there.end() && !it->second->draining;
    if (useful != known.useful) {
      known.younger = useful && started_;
      known.not_before = {};
      known.absent_since = now;
      changed_ = now;
    }
    known.useful = useful;
    if (!useful) continue;
    const std::uint32_t weight = std::max(it->second->weight, 1U);
    if (weight == known.weight) continue;
    known.weight = weight;
    known.costs.clear();
    changed_ = now;
  }
  const auto self = there.find(self_);
  draining_ = self != there.end() && self->second->draining;
}

void Balancer::take_owners(Instant now, BalancerView view) {
  std::vector<std::string>& owners = view.owners;
  for (auto& [id, known] : fleet_) known.owned = 0;
  for (std::size_t i = 0; i < owners.size(); ++i) {
    if (owners[i].empty()) {
      if (!owners_[i].empty()) last_owners_[i] = owners_[i];
      const auto target = fleet_.find(targets_[i].id);
      if (target != fleet_.end() && target->first == owners_[i]) {
        target->second.not_before = now + options_.distrust;
      }
      if (free_since_[i] == Instant::max()) free_since_[i] = now;
      if (i < view.free_from.size()) free_since_[i] = std::max(free_since_[i], view.free_from[i]);
      continue;
    }
    const std::string& before = owners_[i].empty() ? last_owners_[i] : owners_[i];
    if (before == self_ && owners[i] != self_) given_again_from_[i] = now + options_.repeat;
    if (owners_[i].empty()) note_missed(now, i, owners[i]);
    free_since_[i] = Instant::max();
    const auto owner = fleet_.find(owners[i]);
    if (owner != fleet_.end()) ++owner->second.owned;
  }
  owners_ = std::move(owners);
  jobs_ = std::move(view.jobs);
  jobs_.resize(owners_.size());
}

// A partition that was free has an owner. When the number of partitions changes, hosts learn of it
// some seconds apart: who is late then does not hang.
void Balancer::note_missed(Instant now, std::size_t partition, const std::string& owner) {
  const Instant since = free_since_[partition];
  if (since == Instant::max() || now - since < options_.step) return;
  if (now < *started_ + options_.settle) return;
  const auto target = fleet_.find(targets_[partition].id);
  if (target == fleet_.end() || target->first == owner) return;
  target->second.not_before = now + options_.distrust;
}

void Balancer::forget_absent(Instant now) {
  bool any = false;
  for (auto it = fleet_.begin(); it != fleet_.end();) {
    const Instant end = it->second.absent_since + options_.absence;
    const bool over = !it->second.useful && end <= now;
    if (over) changed_ = std::max(changed_, end);
    any = any || over;
    it = over ? fleet_.erase(it) : std::next(it);
  }
  if (any) find_targets();
}

void Balancer::find_targets() {
  const std::size_t partitions = owners_.size();
  std::vector<Candidate> all, useful;
  for (auto& [id, known] : fleet_) {
    if (known.costs.size() != partitions) known.costs = costs_of(id, known.weight, partitions);
    all.push_back({&id, known.weight, &known.costs});
    known.share = 0;
  }
  const std::vector<std::size_t> homes = find_homes(all, partitions);
  targets_.assign(partitions, {});
  std::vector<std::size_t> orphans;
  for (std::size_t i = 0; i < partitions; ++i) {
    if (homes[i] == kNobody) return;
    Known& home = fleet_.find(*all[homes[i]].id)->second;
    if (home.useful) {
      targets_[i].id = *all[homes[i]].id;
      ++home.share;
    } else {
      orphans.push_back(i);
    }
  }
  for (auto& [id, known] : fleet_) {
    if (known.useful) useful.push_back({&id, known.weight, &known.costs, known.share});
  }
  if (useful.empty() || orphans.empty()) return;
  add_shares(useful, orphans.size());
  std::vector<std::size_t> room, found(partitions, kNobody);
  for (const Candidate& each : useful) {
    Known& known = fleet_.find(*each.id)->second;
    room.push_back(each.share - known.share);
    known.share = each.share;
  }
  assign(useful, std::move(room), orphans, found);
  for (const std::size_t i : orphans) targets_[i] = {*useful[found[i]].id, false};
}

// How many others are to have tried before. The last owner has died, or gives it up.
std::size_t Balancer::rank_of_self(std::size_t partition) const {
  const std::string& last = last_owners_[partition];
  if (targets_[partition].id == self_) return 0;
  const Known& self = fleet_.find(self_)->second;
  std::size_t rank = targets_[partition].id == last ? 0 : 1;
  for (const auto& [id, known] : fleet_) {
    if (!known.useful || id == targets_[partition].id || id == last) continue;
    if (std::tie(known.costs[partition], id) < std::tie(self.costs[partition], self_)) ++rank;
  }
  return rank;
}

const Balancer::Known* Balancer::own() const {
  const auto self = fleet_.find(self_);
  return self == fleet_.end() || !self->second.useful ? nullptr : &self->second;
}

std::vector<std::uint32_t> Balancer::to_take(Instant now) {
  forget_absent(now);
  std::vector<std::uint32_t> partitions;
  if (own() == nullptr) return partitions;
  for (std::size_t i = 0; i < owners_.size(); ++i) {
    if (free_since_[i] == Instant::max()) continue;
    const Duration wait = options_.step * static_cast<Duration::rep>(rank_of_self(i));
    if (now - free_since_[i] >= wait) partitions.push_back(static_cast<std::uint32_t>(i));
  }
  return partitions;
}

bool Balancer::somebody_takes() const {
  return std::any_of(fleet_.begin(), fleet_.end(),
                     [&](const auto& each) { return each.second.useful && each.first != self_; });
}

// A partition of this host's should go to another.
bool Balancer::is_to_go(Instant now, std::size_t partition) const {
  if (draining_) return true;
  const Known* self = own();
  const Target& target = targets_[partition];
  if (self == nullptr || target.id == self_) return false;
  const Known& other = fleet_.find(target.id)->second;
  if (now < other.not_before || now < kept_until_[partition]) return false;
  const bool may_disagree = !other.younger && !knows_absent(now);
  if (may_disagree && (other.owned >= other.share || now < given_again_from_[partition]))
    return false;
  return target.is_home || self->owned > self->share;
}

std::optional<std::uint32_t> Balancer::to_hand_over(Instant now) {
  forget_absent(now);
  if (handing_) {
    const std::size_t last = *handing_;
    if (is_mine(last) && is_to_go(now, last)) return handing_;
    const bool is_free = free_since_[last] != Instant::max();
    if (is_free && somebody_takes() && now - free_since_[last] < options_.patience) {
      return std::nullopt;
    }
    handing_.reset();
  }
  if (!draining_ && now < changed_ + options_.settle) return std::nullopt;
  std::pair<std::int64_t, std::int64_t> best{INT64_MIN, 0};  // what the target misses, less jobs
  for (std::size_t i = 0; i < owners_.size(); ++i) {
    if (!is_mine(i) || !is_to_go(now, i)) continue;
    const auto target = fleet_.find(targets_[i].id);
    const std::int64_t missing = target == fleet_.end()
                                     ? 0
                                     : static_cast<std::int64_t>(target->second.share) -
                                           static_cast<std::int64_t>(target->second.owned);
    const std::pair value{missing, -static_cast<std::int64_t>(jobs_[i])};
    if (value <= best) continue;
    best = value;
    handing_ = static_cast<std::uint32_t>(i);
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
  if (!started_) return next;
  consider(changed_ + options_.settle);
  consider(*started_ + options_.absence);
  for (const auto& [id, known] : fleet_) {
    if (!known.useful) consider(known.absent_since + options_.absence);
    consider(known.not_before);
  }
  for (std::size_t i = 0; i < owners_.size(); ++i) {
    if (is_mine(i)) consider(kept_until_[i]);
    if (is_mine(i)) consider(given_again_from_[i]);
    if (free_since_[i] == Instant::max()) continue;
    if (own() != nullptr) {
      consider(free_since_[i] + options_.step * static_cast<Duration::rep>(rank_of_self(i)));
    }
    if (handing_ == i) consider(free_since_[i] + options_.patience);
  }
  return next;
}

}  // namespace lictor::core
