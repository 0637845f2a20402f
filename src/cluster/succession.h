#pragma once

// Who takes part in a queue and leads it, and which member leads next, and when, while nobody leads
// or the leader may be dead.
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

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "client/locks.h"
#include "client/queue.h"
#include "cluster/admin_client.h"
#include "cluster/member.h"
#include "lictor/result.h"

namespace lictor::cluster {

using client::LockView;

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

/// The members and leaders of a queue: the one picture that commands, the admin API and the
/// findings look at.
struct Fleet {
  /// Who leads; those of a queue that nobody leads, until they are read.
  client::Locks locks{std::vector<std::optional<wire::KvEntry>>(1)};
  std::string next;  ///< while some are free: who may lead them, and when
  std::vector<Member> members;

  [[nodiscard]] bool partitioned() const { return locks.count() > 1; }
};

/// Reads Consul, and asks the members but `own`, which answers, for `limit`: a dead daemon shows
/// then, long before its session ends. Without the right to read the locks, who leads is not known.
/// Errors: those of read_members() and read_locks().
[[nodiscard]] Result<Fleet> read_fleet(const client::Queue& queue, const client::Locks& locks,
                                       std::chrono::milliseconds limit = kGlance,
                                       const std::string& own = {});

}  // namespace lictor::cluster
