#pragma once

// Read-change-write of one key by CAS, for one task or many.
//
//   read --> change --> applied
//     ^        |
//     +--------+ the key changed meanwhile (a claim, a retry), or the reply was lost

#include <functional>
#include <string>
#include <vector>

#include "client/pipeline.h"
#include "client/queue.h"

namespace lictor::client {

struct PlannedChange {
  Store::Change change;  ///< its first operation checks the key's ModifyIndex
  /// The error if a later operation is refused; empty: try again.
  std::string conflict;
};

struct Plan {
  /// Reads the entry.
  std::function<TaskInfo(wire::KvEntry)> view;
  /// Plans the change.
  std::function<Result<PlannedChange>(const TaskInfo&)> change;
};

/// Reads `key`, plans, applies, and starts again if the key changed meanwhile. Returns the task as
/// it was before. Errors: those of `plan.change`; kNotFound, there is no such key; kConflict.
[[nodiscard]] Result<TaskInfo> change_one(const Queue& queue, const std::string& key,
                                          const Plan& plan);

/// Does as change_one() for listed tasks, in no order: many in a transaction, several transactions
/// at once. Skips tasks that are gone. Stops at the first error of Consul; the rest is reported as
/// not tried.
[[nodiscard]] BulkResult change_many(const Queue& queue, std::vector<TaskInfo> tasks,
                                     const Plan& plan, const Progress& progress,
                                     std::size_t at_once = kAtOnce);

/// Changes each id by itself. A refusal does not stop the others; an unreachable Consul does, since
/// each of a thousand tasks would wait for its time-out.
[[nodiscard]] BulkResult change_each(
    const std::vector<std::string>& ids,
    const std::function<Result<TaskInfo>(const std::string&)>& change);

/// The error of a failed read: a kTimeout, which means doubt about a write, becomes kUnavailable.
[[nodiscard]] Error unchanged(Error why);

/// The error of a task that was not tried because of `why`.
[[nodiscard]] Error not_tried(const Error& why);

/// Deletes the key if it is unchanged; of several clients one succeeds. (A delete-cas alone
/// succeeds on a missing key, consul.md 3.3.)
[[nodiscard]] Store::Change removal(const std::string& key, std::uint64_t index);
/// removal() as a Plan's change.
[[nodiscard]] Result<PlannedChange> plan_removal(const TaskInfo& task);

}  // namespace lictor::client
