#pragma once

// A change to one key of the queue that must find it as it was read, alone or many at a time.
//
//   read --> change --> applied
//     ^        |
//     +--------+ the key changed meanwhile (a claim, a retry), or the reply was lost

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "client/pipeline.h"
#include "client/queue.h"

namespace lictor::client {

struct PlannedChange {
  Store::Change change;  ///< its first operation checks that the key is as it was read
  /// What it means that an operation of `change` but the first is refused.
  std::string conflict;
};

/// What a change is made of.
struct Plan {
  /// What the key's entry says of the task.
  std::function<TaskInfo(wire::KvEntry)> view;
  /// What is to be done to it.
  std::function<Result<PlannedChange>(const TaskInfo&)> change;
};

/// Reads `key`, plans and applies, again where the key changed meanwhile. Returns what the task was
/// like. Errors: what `plan.change` says; kNotFound, there is no such key; kConflict.
[[nodiscard]] Result<TaskInfo> change_one(const Queue& queue, const std::string& key,
                                          const Plan& plan);

/// The same for the tasks that were listed, many in a transaction and several transactions at a
/// time, in no order. What is gone by now needs no change and is left out. What Consul does not
/// take ends it: the rest is not tried.
[[nodiscard]] BulkResult change_many(const Queue& queue, std::vector<TaskInfo> tasks,
                                     const Plan& plan, const Progress& progress,
                                     std::size_t at_once = kAtOnce);

/// A read before the change failed: kTimeout, which leaves open what became of it, is none then.
[[nodiscard]] Error unchanged(Error why);

/// Of one that was kept back by what befell another.
[[nodiscard]] Error not_tried(const Error& why);

/// That the key is there as it was read, and then is not: of those who try, one succeeds. (A
/// delete-cas alone succeeds on a key that is gone, CONSUL-FACTS.md 3.3.)
[[nodiscard]] Store::Change removal(const std::string& key, std::uint64_t index);
/// Of the key that `task` was read from: a Plan's change, which has no errors.
[[nodiscard]] Result<PlannedChange> plan_removal(const TaskInfo& task);

}  // namespace lictor::client
