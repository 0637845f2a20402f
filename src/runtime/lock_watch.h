#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "core/effect.h"
#include "core/event.h"
#include "core/requests.h"
#include "wire/fleet.h"

namespace lictor::runtime {

/// Watches all locks of a queue by one blocking query, whatever the number of its partitions, and
/// answers the core's reads that wait for a change of one lock. Thread-safe.
///
/// A core with many partitions reads each lock by itself: it waits for a change of that lock. One
/// blocking query for each would use up the connections to the agent.
///
///   add() --the last reply is news--> answered at once
///     +--else--> waits --next_query(), on_reply()--> answered: its lock changed, or the query's
///                                                    time was over, or the query failed
class LockWatch {
 public:
  /// Adds a read that waits for a change after its index, or answers it from the last reply.
  [[nodiscard]] std::optional<core::LeaderRead> add(const core::ReadLeader& read);
  /// False: the request is none of these reads.
  bool cancel(RequestId request);

  /// The index to query from now; std::nullopt if a query is under way, or no read waits.
  [[nodiscard]] std::optional<std::uint64_t> next_query();
  /// The answers to the reads that need not wait any more.
  [[nodiscard]] std::vector<core::LeaderRead> on_reply(wire::LocksRead reply);

 private:
  [[nodiscard]] core::LeaderRead answer_to(const core::ReadLeader& read) const;

  std::mutex mutex_;
  std::map<RequestId, core::ReadLeader> waiting_;
  bool querying_ = false;
  core::WatchFailures failures_;
  wire::LocksRead last_;  // the last reply; not ok: none
};

}  // namespace lictor::runtime
