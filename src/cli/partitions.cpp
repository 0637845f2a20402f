#include "cli/partitions.h"

#include <utility>

#include "core/balancer.h"

namespace lictor::cli {

std::string ranges(const Partitions& partitions) {
  std::string text;
  for (std::size_t i = 0; i < partitions.size();) {
    std::size_t last = i;
    while (last + 1 < partitions.size() && partitions[last + 1] == partitions[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text += std::to_string(partitions[i]);
    if (last > i) text += '-' + std::to_string(partitions[last]);
    i = last + 1;
  }
  return text;
}

std::string partitions_text(const Partitions& partitions) {
  return (partitions.size() == 1 ? "partition " : "partitions ") + ranges(partitions);
}

Partitions free_partitions(const client::Locks& locks) {
  Partitions free;
  for (std::uint32_t i = 0; i < locks.count(); ++i) {
    if (locks.leader(i).known && locks.leader(i).session.empty()) free.push_back(i);
  }
  return free;
}

std::map<std::string, Partitions> partitions_by_leader(const client::Locks& locks) {
  std::map<std::string, Partitions> held;
  for (std::uint32_t i = 0; i < locks.count(); ++i) {
    if (const std::string name = lock_of(locks, i).name(); !name.empty()) held[name].push_back(i);
  }
  return held;
}

Partitions misplaced(const client::Locks& locks, const std::vector<Member>& members,
                     const std::string& queue) {
  core::BalancerView view;
  for (const Member& member : members) {
    view.members.push_back({member.node, wire::number_of(member.weights, queue), member.draining});
  }
  for (std::uint32_t i = 0; i < locks.count(); ++i) {
    view.owners.push_back(lock_of(locks, i).name());
  }
  const std::vector<std::string> targets = core::targets(view);
  Partitions found;
  for (std::uint32_t i = 0; i < locks.count(); ++i) {
    const std::string& owner = view.owners[i];
    if (!owner.empty() && !targets[i].empty() && owner != targets[i]) found.push_back(i);
  }
  return found;
}

}  // namespace lictor::cli
