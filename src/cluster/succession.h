#pragma once

// The members and leaders of a queue; and while nobody leads or the leader may be dead, which
// member leads next, and when.
//
// While a queue is not led, an operator asks whether another daemon takes over by itself, and when.
// The answer depends on how the leader ended:
//
//   released its lock        at once
//   its daemon died          within 1 s of the end of its jobs
//   its daemon hangs         hang_timeout later than that
//   its host or warden died  after one to two TTLs of its session, then the lock-delay
//
// Consul shows the sessions and locks, and not which of these endings it was. So the texts name all
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

/// Why no task of the queue, or of some partitions, may start now: nobody leads, or the leader may
/// be dead; and when that ends. Empty if the queue is led. Blocks for twice kGlance at most and a
/// few requests.
[[nodiscard]] std::string lead_trouble(const client::Queue& queue);
/// The trouble of the task's partition.
[[nodiscard]] std::string lead_trouble(const client::Queue& queue, const TaskInfo& task);
/// Nobody leads the `free` partitions: says why, and which members may lead next.
[[nodiscard]] Error nobody_leads(const client::Queue& queue, const client::Locks& locks,
                                 const Partitions& free);
/// nobody_leads() for all free partitions. std::nullopt if all are led, or may not be read.
[[nodiscard]] std::optional<Error> nobody_leads(const client::Queue& queue,
                                                const client::Locks& locks);
/// A line for each of `members` that leads and may be dead, with what happens then.
[[nodiscard]] std::vector<std::string> doubtful_leaders(const client::Queue& queue,
                                                        const client::Locks& locks,
                                                        const std::vector<Member>& members);

/// The members and leaders of a queue, for commands, the admin API and the findings.
struct Fleet {
  /// The locks; until they are read, those of a queue that nobody leads.
  client::Locks locks{std::vector<std::optional<wire::KvEntry>>(1)};
  std::string next;  ///< while some are free: who may lead them, and when
  std::vector<Member> members;

  [[nodiscard]] bool partitioned() const { return locks.count() > 1; }
};

/// Reads Consul, and asks the members except `own`, the asking daemon, for `limit`: that shows a
/// dead daemon long before its session ends. Without the right to read the locks, the leaders are
/// not known. Errors: those of read_members() and read_locks().
[[nodiscard]] Result<Fleet> read_fleet(const client::Queue& queue, const client::Locks& locks,
                                       std::chrono::milliseconds limit = kGlance,
                                       const std::string& own = {});

}  // namespace lictor::cluster
