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

/// Reads all locks of a queue at once, whatever the number of its partitions, and answers the
/// core's reads of single locks. Thread-safe.
///
/// A core with many partitions reads each lock by itself. A request for each would use up the
/// connections to the agent, and over a slow link they would wait for one another.
///
///   add() --the last reply is news--> answered at once
///     +-- index 0 --> waits for a query that is sent from now on, with index 0
///     +-- else -----> waits for the blocking query: its lock changed, or the query's time was
///                     over, or the query failed
///
///   next_query() --> a request --> on_reply() --> answers
class LockWatch {
 public:
  /// Adds a read that waits for a change after its index, or answers it from the last reply.
  [[nodiscard]] std::optional<core::LeaderRead> add(const core::ReadLeader& read);
  /// False: the request is none of these reads.
  bool cancel(RequestId request);

  /// The index to query from now; std::nullopt: no query is wanted. Of the queries with index 0 and
  /// of the others one is under way at a time.
  [[nodiscard]] std::optional<std::uint64_t> next_query();
  /// The answers to the reads that need not wait any more. `index`: of the query.
  [[nodiscard]] std::vector<core::LeaderRead> on_reply(std::uint64_t index,
                                                       const wire::LocksRead& reply);

 private:
  struct Waiting {
    core::ReadLeader read;
    bool asked = false;  // by a query with index 0
  };

  std::mutex mutex_;
  std::map<RequestId, Waiting> waiting_;
  bool is_settled_ = true;  // next_query() has nothing to find
  bool reading_ = false;    // by a query with index 0
  bool watching_ = false;   // by a blocking query
  core::WatchFailures failures_;
  wire::LocksRead last_;  // the last reply; not ok: none
};

}  // namespace lictor::runtime
