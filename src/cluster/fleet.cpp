#include "cluster/fleet.h"

#include "base/try.h"
#include "cluster/succession.h"

namespace lictor::cluster {

Partitions Fleet::free() const {
  Partitions free;
  for (std::uint32_t i = 0; i < leads.size(); ++i) {
    if (leads[i].known && leads[i].node.empty()) free.push_back(i);
  }
  return free;
}

std::vector<Lead> leads_of(const client::Locks& locks) {
  std::vector<Lead> leads;
  for (const client::LockView& lock : locks) {
    leads.push_back({lock.name(), lock.session.empty() ? "" : lock.text("since"), lock.known});
  }
  return leads;
}

// Members first, then their answers: only those tell which of them may lead next.
Result<Fleet> read_fleet(const client::Queue& queue, const client::Locks& locks,
                         std::chrono::milliseconds limit, const std::string& own) {
  Fleet fleet;
  LICTOR_TRY(fleet.members, read_members(queue.store, queue.layout, locks));
  fleet.leads = leads_of(locks);
  if (fleet.partitioned()) fleet.moving = partitions_to_move(locks, fleet.members, queue.name);
  ask_all(fleet.members, limit, own);
  std::vector<std::string> candidates;
  for (const Member& member : fleet.members) {
    if (may_lead(member, !fleet.partitioned())) candidates.push_back(member.node);
  }
  for (Member& member : fleet.members) {
    if (!member.leads || unresponsive_reason(member).empty()) continue;
    member.next = takeover_if_dead(queue.store, locks[member.partitions.front()], candidates);
  }
  const Partitions free = fleet.free();
  if (!free.empty()) fleet.next = takeover_if_free(locks, free, candidates);
  return fleet;
}

}  // namespace lictor::cluster
