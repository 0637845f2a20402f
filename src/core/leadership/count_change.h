#pragma once

// How the number of a queue's partitions changes. The hosts' configurations say how many there
// should be; when all hosts want the same, they hand all partitions over to one of them. It ends
// its jobs, writes the new number while it holds all locks, and lets go. Then each host begins anew
// with the new number. As all of this is done under the old locks, order by key and one run at a
// time are kept.

#include <cstdint>
#include <string>
#include <vector>

#include "core/leadership/balancer.h"

namespace lictor::core {

struct FleetMember {
  BalancerMember member;
  std::uint32_t wish = 1;  ///< the number of partitions in its configuration
};

/// What all want; 0: they disagree, or there is nobody.
[[nodiscard]] std::uint32_t common_wish(const std::vector<FleetMember>& members);

/// What a host does about it.
struct CountChange {
  std::uint32_t to = 0;                 ///< 0: the number stays
  bool is_ours = false;                 ///< this host writes it
  std::vector<BalancerMember> members;  ///< for the core; this host is among them
};
/// `count`: what Consul has. Pure.
[[nodiscard]] CountChange plan_change(const std::vector<FleetMember>& members,
                                      const FleetMember& self, std::uint32_t count);

}  // namespace lictor::core
