#pragma once

// What is written to the store of a task, built from what the core knows. Nothing here decides
// what becomes of it.

#include <string>

#include "core/effect.h"
#include "core/event.h"
#include "core/task.h"
#include "core/write.h"

namespace lictor::core {

/// The record with `stamp` in place of the one it has: a claim, a retry, a task given back. `under`
/// is the claim that the record carries by then.
[[nodiscard]] inline Write rewrite_of(Purpose purpose, const Task& task, Stamp stamp,
                                      SharedOptional<Claim> under) {
  return {purpose,
          RestampOp{task.key, task.modify_index, task.record, std::move(stamp), task.flags,
                    task.places},
          std::move(under)};
}

/// The task as a dead letter, with its stamp.
[[nodiscard]] inline BuryOp dead_letter(const Task& task, std::string reason, std::string error,
                                        WallTime at) {
  BuryOp op;
  op.key = task.key;
  op.index = task.modify_index;
  op.record = task.record;
  op.stamp = task.stamp;
  op.reason = std::move(reason);
  op.error = std::move(error);
  op.at = at;
  return op;
}

/// A record that is no task as a dead letter.
[[nodiscard]] inline BuryOp dead_letter(const BadRecord& record, WallTime at) {
  BuryOp op;
  op.key = record.key;
  op.index = record.modify_index;
  op.record = record.record;
  op.readable = false;
  op.reason = "unreadable";
  op.error = record.error;
  op.at = at;
  return op;
}

}  // namespace lictor::core
