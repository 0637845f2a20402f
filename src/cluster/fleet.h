#pragma once

// Commands, the admin API and the findings look at this one picture. It is read in three steps: the
// locks (by the caller), the members' entries, then each member's admin API, several at once. A
// dead daemon shows in the last step within `limit`, long before its session ends.

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "client/queue.h"
#include "cluster/admin_client.h"
#include "cluster/member.h"
#include "lictor/result.h"

namespace lictor::cluster {

/// The leader of a partition.
struct Lead {
  std::string node, since;  ///< empty: nobody leads, as far as is known
  bool known = true;        ///< its lock may be read
};

/// The members and leaders of a queue.
struct Fleet {
  std::vector<Lead> leads{1};  ///< by partition; an undivided queue has one
  Partitions moving;           ///< that are about to go to another member
  std::string next;            ///< while some are free: who may lead them, and when
  std::vector<Member> members;

  [[nodiscard]] bool partitioned() const { return leads.size() > 1; }
  /// The partitions that nobody leads.
  [[nodiscard]] Partitions free() const;
};

/// Who leads, by the locks alone.
[[nodiscard]] std::vector<Lead> leads_of(const client::Locks& locks);

/// Reads Consul, and asks the members but `own`, which answers, for `limit`. Without the right to
/// read the locks, who leads is not known. Errors: those of read_members() and read_locks().
[[nodiscard]] Result<Fleet> read_fleet(const client::Queue& queue, const client::Locks& locks,
                                       std::chrono::milliseconds limit = kGlance,
                                       const std::string& own = {});

}  // namespace lictor::cluster
