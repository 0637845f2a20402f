#pragma once

// The writes of a task to the store, built from the core's data. Nothing here decides.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/overloaded.h"
#include "core/effect.h"
#include "core/event.h"
#include "core/task.h"

namespace lictor::core {

enum class Purpose { kClaim, kRetry, kRequeue, kFinish, kBury, kMark, kPrune, kTick };

struct Write {
  Write() = default;
  Write(Purpose why, Op what, SharedOptional<Claim> under)
      : purpose(why), op(std::move(what)), claim(std::move(under)) {}

  Purpose purpose = Purpose::kMark;
  Op op;
  SharedOptional<Claim> claim;   // the claim that the task carries by then
  std::uint32_t partition = 0;   // the partition whose fence it needs
  bool dropped = false;          // the partition was lost while this write was on its way
  bool may_have_landed = false;  // at least once no answer came
  // The version that `op` goes on from, if another client wrote beside our claim.
  std::shared_ptr<const Task> rewritten{};
  std::string refusal{};  // Consul's last reason for refusing this write alone
};

/// No task's state depends on these: a write refused as stale is void, and a write with an unknown
/// outcome is repeated.
[[nodiscard]] inline bool is_minor(Purpose purpose) {
  return purpose == Purpose::kMark || purpose == Purpose::kPrune || purpose == Purpose::kTick;
}

/// The key that a write is about; empty for the marker.
[[nodiscard]] inline const std::string& key_of(const Op& op) {
  static const std::string kNone;
  return std::visit(Overloaded{[](const MarkOp&) -> const std::string& { return kNone; },
                               [](const auto& other) -> const std::string& { return other.key; }},
                    op);
}
/// The ModifyIndex that the operation's key must still have; 0: the key must not exist.
[[nodiscard]] inline std::uint64_t expected_index(const Op& op) {
  return std::visit(Overloaded{[](const MarkOp&) { return std::uint64_t{0}; },
                               [](const auto& other) { return other.index; }},
                    op);
}

/// The record with `stamp` in place of its own: a claim, a retry, a task given back. `under` is the
/// claim that the record carries by then.
[[nodiscard]] inline Write rewrite_of(Purpose purpose, const Task& task, Stamp stamp,
                                      SharedOptional<Claim> under,
                                      std::optional<RateMark> rate = {}) {
  return {purpose,
          RestampOp{task.key, task.modify_index, task.record, std::move(stamp), task.flags, rate},
          std::move(under)};
}

/// Removes the optional part of a write that matters least. False: there is none. Of a finish: the
/// record in its history entry, then the result, then the entry. Of a dead letter: the output, then
/// most of the error. Of a rewritten task: most of the error.
[[nodiscard]] bool lighten(Op& op);

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
