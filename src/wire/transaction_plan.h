#pragma once

// How a commit becomes one transaction: which operations, in which order. The cost of a write, the
// request's body and the meaning of a failed operation all follow from the one list of steps in
// transaction_plan.cpp, so they cannot disagree.
//
// The transaction of a commit, from its first operation on:
//
//   check-session   the lock of each partition that is written for: the fence
//   check-index     the number of partitions, in a queue with several
//   RestampOp       cas task, then cas of rate_limit's bucket if the claim takes a token
//   FinishOp        (check-index task), the job's writes, (set history entry), delete-cas task
//   BuryOp          check-index task, cas dead letter = 0, delete-cas task
//   ScheduleOp      cas schedule, then cas task of the tick = 0; or delete-cas schedule
//   PruneOp         delete-cas history entry
//   MarkOp          cas key = 0
//
// delete-cas also succeeds on a missing key (consul.md 3.3). So check-index comes first if a key is
// written together with the deletion: otherwise a withdrawn task would leave a dead letter or a
// history entry behind.
//
// Costs are upper bounds, computed without building the text: the core asks for the cost of each
// write before it joins a batch. A number counts in its longest form, a value in base64. Too low a
// cost could make a transaction too large, and Consul refuses that as a whole.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "core/commits/op_cost.h"
#include "core/effect.h"
#include "core/event.h"
#include "wire/layout.h"
#include "wire/record.h"

namespace lictor::wire {

/// The longest record, in bytes, that a transaction can claim and later end: claim, retry and dead
/// letter without output each fit into one of `transaction_bytes`.
[[nodiscard]] std::size_t record_limit(const Layout& layout, std::string_view key,
                                       std::size_t transaction_bytes = limits::kTransactionBytes);
/// The bytes of that limit that `record` needs. The dead letter of an unreadable record stores it
/// in another form.
[[nodiscard]] std::size_t record_size(const core::StoredRecord& record);

/// The costs of writes with a queue's key layout.
class TransactionPlan final : public core::CostModel {
 public:
  /// `node`: this host's name in dead letters and history entries.
  TransactionPlan(Layout layout, std::string node)
      : layout_(std::move(layout)), node_(std::move(node)) {}

  [[nodiscard]] core::Cost fence(std::uint32_t count, std::size_t partitions) const override;
  [[nodiscard]] core::Cost cost(const core::Op& op) const override;
  [[nodiscard]] std::vector<std::uint64_t> written_keys(const core::Op& op) const override;
  [[nodiscard]] std::size_t record_limit(std::string_view key,
                                         std::size_t transaction_bytes) const override {
    return wire::record_limit(layout_, key, transaction_bytes);
  }
  [[nodiscard]] std::size_t unreadable_size(std::string_view record) const override {
    return raw_size(record);
  }

 private:
  Layout layout_;
  std::string node_;
};

/// The request's body.
[[nodiscard]] std::string transaction_body(const Layout& layout, const std::string& node,
                                           const core::Commit& commit);

/// The value of rate_limit's key: when the bucket is full again.
[[nodiscard]] std::string bucket_text(WallTime full_at);
/// std::nullopt: `text` is not bucket_text().
[[nodiscard]] std::optional<WallTime> read_bucket(std::string_view text);

/// The target of the operation at `index` of a commit's transaction.
struct OpTarget {
  std::size_t op = core::Committed::kFence;  ///< position in the commit
  core::Committed::Part part = core::Committed::Part::kTask;
  std::string_view what = "the leader key";  ///< for people
  std::optional<std::uint32_t> partition{};  ///< the partition that it fences
  bool of_count = false;                     ///< it checks the number of partitions
};
/// Counts the same steps as transaction_body(), so the index of an error in Consul's answer finds
/// its operation.
[[nodiscard]] OpTarget target_of(const core::Commit& commit, std::size_t index);

}  // namespace lictor::wire
