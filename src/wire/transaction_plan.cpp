#include "wire/transaction_plan.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <utility>
#include <variant>

#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "base/json_text.h"
#include "base/overloaded.h"
#include "base/time_text.h"
#include "wire/record.h"
#include "wire/schedule_record.h"
#include "wire/txn.h"

namespace lictor::wire {
namespace {

using Part = core::Committed::Part;

// Describes one operation of a transaction. each_step() gives the operations of a write, in order;
// costs, bodies, written keys and the targets of errors all walk it.
struct Step {
  Part part;
  std::string_view what;
  std::string_view verb;
  std::string key;
  std::uint64_t index = 0;
  std::uint64_t flags = 0;
  std::function<std::string()> value{};  // called when needed; none: the verb has no value
  std::function<std::size_t()>
      size{};  // an upper bound of its bytes; none: it is made to be measured
};

constexpr std::string_view kOfTask = "the task";
constexpr std::string_view kOfQueue = "a key of the queue";

// The key for a task below another prefix.
std::string key_below(const std::string& prefix, const Layout& layout, const std::string& task_key,
                      const std::string& end = {}) {
  return prefix + layout.task_id(task_key).value_or(task_key) + end;
}

// Sizes. Names and punctuation count as they are, numbers and times as their longest form. The
// sizes of records are added up without building the text: the core asks for them with each task.

constexpr std::size_t kNumber = 20;
constexpr std::size_t kTime = 32;  // RFC 3339, quoted
constexpr std::size_t kSession = 64;

constexpr std::size_t length(std::string_view text) { return text.size(); }

std::size_t quoted_size(std::string_view text) { return json_quoted(text).size(); }

std::size_t error_size(std::string_view error) {
  return 2 + 2 * (std::min(kMaxErrorBytes, 3 * error.size()) + length("..."));
}

std::size_t size_of(const core::Stamp& stamp) {
  std::size_t bytes = length(R"(,"taskTaken":false,"taskAttempt":,"taskLost":)") + 2 * kNumber;
  if (stamp.retry_at) bytes += length(R"(,"taskRetryAt":)") + kTime;
  if (stamp.claim) {
    const core::Claim& claim = *stamp.claim;
    bytes += length(R"(,"taskClaim":{"node":,"session":,"nonce":,"since":})") +
             quoted_size(claim.node) + quoted_size(claim.session) + quoted_size(claim.nonce) +
             kTime;
  }
  if (!stamp.error.empty()) bytes += length(R"(,"taskError":)") + error_size(stamp.error);
  return bytes;
}

std::size_t size_of(const core::DoneRecord& done, std::string_view node) {
  std::size_t bytes = length(R"({"record":"false","result":,"result_left_out":true,"attempts":)") +
                      length(R"(,"lost":,"started":,"at":,"took_ms":,"node":})") + 3 * kNumber +
                      2 * kTime + quoted_size(node) + done.result.size();
  if (done.record) bytes += done.record->size();
  return bytes;
}

std::size_t size_of(const core::BuryOp& op, std::string_view node) {
  std::size_t bytes = length(R"({"key":,"record":"false","reason":,"error":,"attempts":,"lost":)") +
                      length(R"(,"at":,"node":})") + 2 * kNumber + kTime + quoted_size(op.key) +
                      quoted_size(node) + quoted_size(op.reason) + error_size(op.error);
  bytes += op.readable ? op.record->size() : raw_size(*op.record);
  if (!op.output_tail.empty()) bytes += length(R"(,"output_tail":)") + quoted_size(op.output_tail);
  return bytes;
}

template <class Take>
void each_step(const Layout& layout, const std::string&, const core::RestampOp& op, Take&& take) {
  take({Part::kTask, kOfTask, "cas", op.key, op.index, op.flags,
        [&op] { return restamp_record(*op.record, op.stamp); },
        [&op] { return op.record->size() + size_of(op.stamp); }});
  if (!op.rate) return;
  take({Part::kRate, "the bucket of rate_limit", "cas", layout.rate_key, op.rate->index, 0,
        [&op] { return bucket_text(op.rate->full_at); }});
}

template <class Take>
void each_step(const Layout& layout, const std::string& node, const core::FinishOp& op,
               Take&& take) {
  // delete-cas also succeeds on a missing key (consul.md 3.3); check-index makes the transaction
  // fail then, for the task's key and for keys that the job deletes.
  if (!op.writes.empty() || op.done) {
    take({Part::kTask, kOfTask, "check-index", op.key, op.index});
  }
  for (const core::KvWrite& write : op.writes) {
    Step step{Part::kJobWrite, "what the job hands over", {}, write.key, write.cas.value_or(0)};
    if (write.erase && write.cas) {
      step.verb = *write.cas == 0 ? "check-not-exists" : "check-index";
      take(step);
      if (*write.cas == 0) continue;
    }
    step.verb = write.erase ? (write.cas ? "delete-cas" : "delete") : (write.cas ? "cas" : "set");
    if (!write.erase) step.value = [&write] { return write.value; };
    take(step);
  }
  if (op.done) {
    take({Part::kTask, "the history entry", "set", key_below(layout.done_prefix, layout, op.key), 0,
          0, [&] { return done_record(*op.done, node); }, [&] { return size_of(*op.done, node); }});
  }
  take({Part::kTask, kOfTask, "delete-cas", op.key, op.index});
}

template <class Take>
void each_step(const Layout& layout, const std::string& node, const core::BuryOp& op, Take&& take) {
  // delete-cas also succeeds on a missing key (3.3); check-index makes a withdrawn task fail.
  take({Part::kTask, kOfTask, "check-index", op.key, op.index});
  take({Part::kDeadLetter, "the dead letter", "cas",
        key_below(layout.dead_prefix, layout, op.key, op.name_end()), 0, 0,
        [&] { return dead_letter(op, node); }, [&] { return size_of(op, node); }});
  take({Part::kTask, kOfTask, "delete-cas", op.key, op.index});
}

template <class Take>
void each_step(const Layout& layout, const std::string&, const core::MarkOp& op, Take&& take) {
  Step step{Part::kTask, kOfQueue, "cas", layout.tasks_prefix};
  if (op.what == core::MarkOp::What::kControl) {
    step.key = layout.control_key;
    step.value = [] { return std::string{"{}"}; };
  } else if (op.what == core::MarkOp::What::kSchedulesFolder) {
    step.key = layout.schedules_prefix;
  }
  take(step);
}

template <class Take>
void each_step(const Layout& layout, const std::string&, const core::PruneOp& op, Take&& take) {
  take({Part::kTask, kOfTask, "delete-cas", key_below(layout.done_prefix, layout, op.key),
        op.index});
}

template <class Take>
void each_step(const Layout& layout, const std::string&, const core::ScheduleOp& op, Take&& take) {
  if (op.erases) return take({Part::kTask, "the schedule", "delete-cas", op.key, op.index});
  take({Part::kTask, "the schedule", "cas", op.key, op.index, op.flags, [&op] {
          const std::string text = with_last_tick(*op.record, op.last, op.last_task);
          return op.pauses ? with_paused(text, true) : text;
        }});
  if (!op.makes_task) return;
  take({Part::kNewTask, kOfTask, "cas", layout.task_key(schedule::tick_id(op.name, op.last)), 0, 0,
        [&op] { return tick_task(op.name, *op.definition, op.last); }});
}

template <class Take>
void each_step_of(const Layout& layout, const std::string& node, const core::Op& op, Take&& take) {
  std::visit([&](const auto& o) { each_step(layout, node, o, take); }, op);
}

std::size_t size_of(const Step& step) {
  std::size_t bytes =
      length(R"(}},{"KV":{"Verb":"","Key":)") + step.verb.size() + quoted_size(step.key);
  if (step.index != 0) bytes += length(R"(,"Index":)") + kNumber;
  if (step.flags != 0) bytes += length(R"(,"Flags":)") + kNumber;
  if (!step.value) return bytes;
  const std::size_t value = step.size ? step.size() : step.value().size();
  return bytes + length(R"(,"Value":"")") + base64_size(value);
}

core::Cost cost_of(const Layout& layout, const std::string& node, const core::Op& op) {
  core::Cost cost;
  each_step_of(layout, node, op, [&](const Step& step) {
    ++cost.operations;
    cost.bytes += size_of(step);
  });
  return cost;
}

// The cost of the fence for some of a queue's `count` partitions.
core::Cost fence_cost(const Layout& layout, std::uint32_t count, std::size_t partitions) {
  const std::size_t lock = length(R"({"KV":{"Verb":"check-session","Key":,"Session":}},)") +
                           quoted_size(layout.lock_key({count, count - 1})) + kSession;
  core::Cost cost{partitions, length("[]") + partitions * lock};
  if (count == 1) return cost;
  cost += {1, length(R"({"KV":{"Verb":"check-index","Key":,"Index":}},)") +
                  quoted_size(layout.partitions_key) + kNumber};
  return cost;
}

// An upper bound of what a claim, a retry or a dead letter adds to a record: the error with every
// byte escaped, the counters and times, and a node and a nonce of 200 bytes each.
constexpr std::size_t kMostAdded = 2 * kMaxErrorBytes + 800;

}  // namespace

std::size_t record_limit(const Layout& layout, std::string_view key,
                         std::size_t transaction_bytes) {
  core::BuryOp bury;  // a dead letter adds the most bytes to a record
  bury.key = key;
  bury.index = std::numeric_limits<std::uint64_t>::max();
  bury.taken = 1;
  bury.record = std::make_shared<const std::string>();
  const std::size_t frame =
      fence_cost(layout, core::kMostPartitions, 1).bytes + cost_of(layout, {}, bury).bytes;
  if (frame >= transaction_bytes) return 0;
  const std::size_t value = (transaction_bytes - frame) / 4 * 3;
  return value > kMostAdded ? value - kMostAdded : 0;
}

std::size_t record_size(const core::StoredRecord& record) {
  return std::visit(Overloaded{[](const core::Task& task) { return task.record->size(); },
                               [](const core::BadRecord& bad) { return raw_size(*bad.record); }},
                    record);
}

core::Cost TransactionPlan::fence(std::uint32_t count, std::size_t partitions) const {
  return fence_cost(layout_, count, partitions);
}

core::Cost TransactionPlan::cost(const core::Op& op) const { return cost_of(layout_, node_, op); }

std::vector<std::uint64_t> TransactionPlan::written_keys(const core::Op& op) const {
  std::vector<std::uint64_t> keys;
  each_step_of(layout_, node_, op, [&](const Step& step) {
    if (!step.verb.starts_with("check-")) keys.push_back(std::hash<std::string>{}(step.key));
  });
  return keys;
}

std::string transaction_body(const Layout& layout, const std::string& node,
                             const core::Commit& commit) {
  Txn txn;
  for (const std::uint32_t partition : commit.partitions) {
    txn.verb("check-session", layout.lock_key({commit.partition_count, partition}))
        .session(commit.session);
  }
  if (commit.count_index != 0) {
    txn.verb("check-index", layout.partitions_key).index(commit.count_index);
  }
  for (const core::Op& op : commit.ops) {
    each_step_of(layout, node, op, [&](const Step& step) {
      txn.verb(step.verb, step.key).index(step.index).flags(step.flags);
      if (step.value) txn.value(step.value());
    });
  }
  return std::move(txn).body();
}

std::string bucket_text(WallTime full_at) {
  return R"({"fullAt":)" + json_quoted(format_rfc3339(full_at)) + '}';
}

std::optional<WallTime> read_bucket(std::string_view text) {
  const auto value = parse_json(text);
  return value ? parse_rfc3339(text_member(*value, "fullAt")) : std::nullopt;
}

OpTarget target_of(const core::Commit& commit, std::size_t index) {
  static const Layout kAny;  // the operations are the same under each layout
  OpTarget place;
  const std::size_t locks = commit.partitions.size();
  if (index < locks) {
    place.partition = commit.partitions[index];
    return place;
  }
  const std::size_t fences = locks + (commit.count_index != 0 ? 1 : 0);
  if (index < fences) {
    place.what = "the number of partitions";
    place.of_count = true;
    return place;
  }
  std::size_t at = fences;
  for (std::size_t i = 0; i < commit.ops.size(); ++i) {
    each_step_of(kAny, {}, commit.ops[i], [&](const Step& step) {
      if (at++ == index) place = {i, step.part, step.what};
    });
  }
  return place;
}

}  // namespace lictor::wire
