#pragma once

// The reads of a queue besides its tasks: the members and the claims that they have given up; and
// the number of partitions with all locks at once, if the queue may have several. Pure.
//
// core/leadership/division.h explains when each of these is asked. Each is one transaction or one
// read, so the members, the number and the locks in an answer are of one moment:
//
//   ReadFleet       get-tree members, get-tree partitions, get-tree leader if the locks are wanted
//   ReadCount       a read of the key `partitions`
//   ProbeSingle  check-not-exists partitions
//   ProbeChange     cas partitions and a lock, beside checks that exclude each other: rights alone
//   CreateCount     check-index of the locks, cas leader, cas partitions (0, if there is none)
//   DeleteLocks     delete-cas of locks
//   ChangeCount     check-session of the locks, cas partitions; to 1: delete-cas partitions
//   ReadOwners      a read of the members (core/tasks/owners.h tells when it is asked)
//
// All of them are by a quorum. A server that has just started answers other reads from an old
// state, and hosts that believed such an answer would stop all jobs, as if the number were gone.
// Only the watch of the locks is not: the core proves its answers (core/leadership/lock.h).
//
// A transaction of an old Consul takes 64 operations (consul.md 3.1), and a queue may have more
// locks. So CreateCount and ChangeCount check as many as fit. That is enough for ChangeCount: a
// session that holds one lock is alive, and so holds all that it acquired. DeleteLocks leaves the
// others to the next reading.
//
// Answers: kYes, applied; kNo, a condition did not hold; kRefused, the same request would be
// refused again, as for a missing right; kUnknown, it may have landed.

#include <concepts>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/http.h"
#include "core/event.h"
#include "core/leadership/division.h"
#include "wire/consul.h"

namespace lictor::wire {

/// The number of partitions from the value of its key. Errors: kInvalid, the value is no number
/// from 1 to core::kMostPartitions.
[[nodiscard]] Result<std::uint32_t> read_count(std::string_view value);

/// Numbers by queue in a member's entry: "partitions": {"<queue>": 16}. A missing queue has 1.
using QueueNumbers = std::map<std::string, std::uint32_t, std::less<>>;
/// The numbers under `name` in `entry`, each limited to 1 to core::kMostPartitions.
[[nodiscard]] QueueNumbers queue_numbers(const nlohmann::json& entry, const char* name);
[[nodiscard]] std::uint32_t number_of(const QueueNumbers& numbers, std::string_view queue);

// Division: requests about the number of partitions; core/leadership/division.h explains each.
[[nodiscard]] http::Request encode(const Binding& binding, const core::ReadFleet& ask);
[[nodiscard]] http::Request encode(const Binding& binding, const core::ReadCount& ask);
/// Needs the right to write the number, as does AcquireLock with if_single (Consul 1.8.7): 403
/// or 409 if the right is missing.
[[nodiscard]] http::Request encode(const Binding& binding, const core::ProbeSingle& ask);
/// Changes nothing.
[[nodiscard]] http::Request encode(const Binding& binding, const core::ProbeChange& ask);
/// `at`: for people, in the value of the leader key.
[[nodiscard]] http::Request encode(const Binding& binding, const core::CreateCount& ask,
                                   WallTime at);
[[nodiscard]] http::Request encode(const Binding& binding, const core::DeleteLocks& ask);
[[nodiscard]] http::Request encode(const Binding& binding, const core::ChangeCount& ask);

[[nodiscard]] core::FleetRead decode(const Binding& binding, const core::ReadFleet& ask,
                                     const http::Response& response);
// The error of a refusal for a missing right names the rules to grant.
[[nodiscard]] core::DivisionReply decode(const Binding& binding, const core::ReadCount& ask,
                                         const http::Response& response);
[[nodiscard]] core::DivisionReply decode(const Binding& binding, const core::ProbeSingle& ask,
                                         const http::Response& response);
[[nodiscard]] core::DivisionReply decode(const Binding& binding, const core::ProbeChange& ask,
                                         const http::Response& response);
[[nodiscard]] core::DivisionReply txn_answer(const Binding& binding,
                                             const http::Response& response);
template <class Ask>
requires std::same_as<Ask, core::CreateCount> || std::same_as<Ask, core::DeleteLocks> ||
    std::same_as<Ask, core::ChangeCount>
[[nodiscard]] core::DivisionReply decode(const Binding& binding, const Ask&,
                                         const http::Response& response) {
  return txn_answer(binding, response);
}

[[nodiscard]] http::Request encode(const Binding& binding, const core::ReadOwners& ask);
/// Reads `given_up` in a member's entry: {"<queue>": "<nonce>"}. An entry that no session holds was
/// written by hand and is ignored.
[[nodiscard]] core::OwnersRead decode(const Binding& binding, const core::ReadOwners& ask,
                                      const http::Response& response);

/// All locks of a queue, by a blocking query from `index` on.
[[nodiscard]] http::Request watch_locks(const Binding& binding, std::uint32_t count,
                                        std::uint64_t index);
/// By partition. `found` is false if there is no key; each has `consul_index`.
struct LocksRead {
  bool ok = false;
  std::string error;
  std::uint64_t consul_index = 0;
  std::vector<core::LeaderRead> locks;
  bool over_limit = false;  // not ok, because of Consul's limits
};
/// A lock that is not in the answer has no key. After an error `ok` is false, and `error` says why.
[[nodiscard]] LocksRead decode_locks(const Binding& binding, std::uint32_t count,
                                     const http::Response& response);

}  // namespace lictor::wire
