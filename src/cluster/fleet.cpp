#include "cluster/fleet.h"

#include <utility>

#include "base/try.h"
#include "cluster/succession.h"

namespace lictor::cluster {
namespace {

// Who may lead free partitions, and when. Empty: what is usual.
std::string next_of(const client::Locks& locks, const Partitions& free,
                    const std::vector<std::string>& candidates) {
  if (free.empty()) return {};
  const client::LockView& lock = locks[free.front()];
  if (locks.count() == 1) return lock.index == 0 ? "" : takeover_if_free(lock, candidates);
  if (candidates.empty()) {
    return "start a daemon, or let a draining one take partitions again with \"lictor undrain "
           "HOST\"";
  }
  return free.size() == 1 && lock.index != 0 ? takeover_if_free(lock, candidates) : "";
}

}  // namespace

Partitions Fleet::free() const {
  Partitions free;
  for (std::uint32_t i = 0; i < leads.size(); ++i) {
    if (leads[i].known && leads[i].node.empty()) free.push_back(i);
  }
  return free;
}

Result<Fleet> read_fleet(const client::Queue& queue, const client::Locks& locks,
                         std::chrono::milliseconds limit, const std::string& own) {
  Fleet fleet;
  LICTOR_TRY(fleet.members, read_members(queue.store, queue.layout, locks));
  fleet.leads.clear();
  for (const client::LockView& lock : locks) {
    fleet.leads.push_back(
        {lock.name(), lock.session.empty() ? "" : lock.text("since"), lock.known});
  }
  if (fleet.divided()) fleet.moving = partitions_to_move(locks, fleet.members, queue.name);
  ask_all(fleet.members, limit, own);
  std::vector<std::string> candidates;
  for (const Member& member : fleet.members) {
    // A draining member leads an undivided queue all the same.
    const bool may_lead = !fleet.divided() || !member.draining;
    if (unresponsive_reason(member).empty() && may_lead) candidates.push_back(member.node);
  }
  for (Member& member : fleet.members) {
    if (!member.leads || unresponsive_reason(member).empty()) continue;
    member.next =
        takeover_if_dead(queue.store, locks[member.partitions.front()], member, candidates);
  }
  fleet.next = next_of(locks, fleet.free(), candidates);
  return fleet;
}

}  // namespace lictor::cluster
