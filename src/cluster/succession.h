#pragma once

// Which member leads next, and when, while nobody leads or the leader may be dead.
//
// While a queue is not led, an operator asks two things: does another daemon take over by itself,
// and when. The answer depends on how the leader ended:
//
//   released its lock        at once
//   its daemon died          within 1 s of the end of its jobs
//   its daemon hangs         hang_timeout later than that
//   its host or warden died  after one to two TTLs of its session, then the lock-delay
//
// Consul shows which sessions and locks there are, not which of these it was. So the texts name all
// that may apply.

#include <optional>
#include <string>
#include <vector>

#include "client/locks.h"
#include "client/queue.h"
#include "cluster/member.h"
#include "lictor/result.h"

namespace lictor::cluster {

using client::LockView;

/// Whether the member gives no reason to doubt, and takes partitions. `single`: of a queue with
/// one partition, which a draining member leads all the same.
[[nodiscard]] bool may_lead(const Member& member, bool single);

/// The names of the members that may lead. std::nullopt if they are not known.
using Candidates = std::optional<std::vector<std::string>>;
/// What happens if the leader is dead, when, by its session, and which members may lead next.
[[nodiscard]] std::string takeover_if_dead(client::Store& store, const LockView& lock,
                                           const Candidates& others);
/// Which members may lead the `free` partitions next, and when; of a single one also who led last.
[[nodiscard]] std::string takeover_if_free(const client::Locks& locks, const Partitions& free,
                                           const Candidates& candidates);
/// Why no task may start now, or none of some partitions: nobody leads, or the leader may be dead;
/// with when that ends. Empty if the queue is led. Blocks for twice kGlance at most and a few
/// requests.
[[nodiscard]] std::string lead_trouble(const client::Queue& queue);
/// The same of the task's partition.
[[nodiscard]] std::string lead_trouble(const client::Queue& queue, const TaskInfo& task);
/// Nobody leads the `free` partitions: why, and which members may lead next.
[[nodiscard]] Error nobody_leads(const client::Queue& queue, const client::Locks& locks,
                                 const Partitions& free);
/// The same of all partitions that are free. std::nullopt if all are led, or may not be read.
[[nodiscard]] std::optional<Error> nobody_leads(const client::Queue& queue,
                                                const client::Locks& locks);
/// A line for each of `members` that leads and may be dead, with what happens then.
[[nodiscard]] std::vector<std::string> doubtful_leaders(const client::Queue& queue,
                                                        const client::Locks& locks,
                                                        const std::vector<Member>& members);

}  // namespace lictor::cluster
