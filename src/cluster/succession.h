#pragma once

// Which member leads next, and when, while nobody leads or the leader may be dead.

#include <optional>
#include <string>
#include <vector>

#include "client/locks.h"
#include "client/queue.h"
#include "cluster/member.h"
#include "lictor/result.h"

namespace lictor::cluster {

using client::LockView;

/// The names of the members that campaign: those that give no reason to doubt. Nothing: not known.
using Candidates = std::optional<std::vector<std::string>>;
/// What happens if the leader is dead, when, by its session, and which members may lead next.
[[nodiscard]] std::string takeover_if_dead(client::Store& store, const wire::Layout& layout,
                                           const LockView& lock, const Member& member);
/// The same where the members that may lead next are known.
[[nodiscard]] std::string takeover_if_dead(client::Store& store, const LockView& lock,
                                           const Member& member, const Candidates& others);
/// Nobody holds the lock: who led last, and which members may lead next, when.
[[nodiscard]] std::string takeover_if_free(const LockView& lock, const Candidates& candidates);
/// Why no task may start now, or none of some partitions: nobody leads, or the leader may be dead;
/// with when that ends. Empty: the queue is led. Blocks for twice kGlance at most and a few
/// requests.
[[nodiscard]] std::string lead_trouble(const client::Queue& queue);
/// The same of the task's partition.
[[nodiscard]] std::string lead_trouble(const client::Queue& queue, const TaskInfo& task);
/// Nobody holds the lock: why, and which members may lead next.
[[nodiscard]] Error nobody_leads(const client::Queue& queue, const LockView& lock);
/// The same of all partitions that are free. Nothing: all are led, or may not be read.
[[nodiscard]] std::optional<Error> nobody_leads(const client::Queue& queue,
                                                const client::Locks& locks);
/// A line for each of `members` that leads and may be dead, with what happens then.
[[nodiscard]] std::vector<std::string> doubtful_leaders(const client::Queue& queue,
                                                        const client::Locks& locks,
                                                        const std::vector<Member>& members);

}  // namespace lictor::cluster
