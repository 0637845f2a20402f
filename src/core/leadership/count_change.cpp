#include "core/leadership/count_change.h"

#include <algorithm>

namespace lictor::core {

std::uint32_t common_wish(const std::vector<FleetMember>& members) {
  if (members.empty()) return 0;
  const bool agree = std::all_of(members.begin(), members.end(), [&](const FleetMember& each) {
    return each.wish == members.front().wish;
  });
  return agree ? members.front().wish : 0;
}

CountChange plan_change(const std::vector<FleetMember>& members, const FleetMember& self,
                        std::uint32_t count) {
  std::vector<FleetMember> all = members;
  const auto is_self = [&](const FleetMember& each) { return each.member.id == self.member.id; };
  if (std::none_of(all.begin(), all.end(), is_self)) all.push_back(self);
  CountChange change;
  for (const FleetMember& each : all) change.members.push_back(each.member);
  const std::uint32_t wish = common_wish(all);
  if (wish == count || wish == 0) return change;
  change.to = wish;
  const auto first = std::min_element(
      change.members.begin(), change.members.end(),
      [](const BalancerMember& a, const BalancerMember& b) { return a.id < b.id; });
  change.is_ours = first->id == self.member.id;
  for (BalancerMember& member : change.members) member.draining = member.id != first->id;
  return change;
}

}  // namespace lictor::core
