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

struct TaskOfTick {
  const core::ScheduleOp* op;
};
struct Bucket {
  WallTime full_at;
};

using Value =
    std::variant<std::monostate, std::string_view, const core::RestampOp*, const core::DoneRecord*,
                 const core::BuryOp*, const core::ScheduleOp*, TaskOfTick, Bucket>;

// A key that belongs to a task, in parts, so that computing a size builds no string.
struct Key {
  std::string_view prefix;
  std::string_view rest;
  std::string end{};  // of the name of a later dead letter
};

// Describes one operation of a transaction. each_step() gives those of a write, in order; costs,
// bodies, written keys and the targets of errors all walk it. Its value refers to the write until
// it is put into a body, so that most costs build no text.
struct Step {
  Part part;
  std::string_view what;
  std::string_view verb;
  Key key;
  std::uint64_t index = 0;
  std::uint64_t flags = 0;
  Value value{};
};

constexpr std::string_view kOfTask = "the task";
constexpr std::string_view kOfQueue = "a key of the queue";

Key key_below(std::string_view prefix, const Layout& layout, std::string_view task_key,
              std::string end = {}) {
  if (layout.is_task(task_key)) task_key.remove_prefix(layout.tasks_prefix.size());
  return {prefix, task_key, std::move(end)};
}

template <class Take>
void each_step(const Layout& layout, const core::RestampOp& op, Take&& take) {
  take({Part::kTask, kOfTask, "cas", {{}, op.key}, op.index, op.flags, &op});
  if (!op.rate) return;
  Step bucket{Part::kRate, "the bucket of rate_limit", "cas", {{}, layout.rate_key}};
  bucket.index = op.rate->index;
  bucket.value = Bucket{op.rate->full_at};
  take(bucket);
}

template <class Take>
void each_step(const Layout& layout, const core::FinishOp& op, Take&& take) {
  // delete-cas also succeeds on a key that is gone (consul.md 3.3); check-index makes the
  // transaction fail then, for the task's key and for what the job deletes.
  if (!op.writes.empty() || op.done) {
    take({Part::kTask, kOfTask, "check-index", {{}, op.key}, op.index});
  }
  for (const core::KvWrite& write : op.writes) {
    Step step{Part::kJobWrite, "what the job hands over", {}, {{}, write.key}};
    step.index = write.cas.value_or(0);
    if (write.erase && write.cas) {
      step.verb = *write.cas == 0 ? "check-not-exists" : "check-index";
      take(step);
      if (*write.cas == 0) continue;
    }
    step.verb = write.erase ? (write.cas ? "delete-cas" : "delete") : (write.cas ? "cas" : "set");
    if (!write.erase) step.value = std::string_view{write.value};
    take(step);
  }
  if (op.done) {
    take({Part::kTask, "the history entry", "set", key_below(layout.done_prefix, layout, op.key), 0,
          0, op.done.get()});
  }
  take({Part::kTask, kOfTask, "delete-cas", {{}, op.key}, op.index});
}

template <class Take>
void each_step(const Layout& layout, const core::BuryOp& op, Take&& take) {
  // delete-cas also succeeds on a key that is gone (3.3); check-index makes a withdrawn task fail.
  take({Part::kTask, kOfTask, "check-index", {{}, op.key}, op.index});
  take({Part::kDeadLetter, "the dead letter", "cas",
        key_below(layout.dead_prefix, layout, op.key, op.name_end()), 0, 0, &op});
  take({Part::kTask, kOfTask, "delete-cas", {{}, op.key}, op.index});
}

template <class Take>
void each_step(const Layout& layout, const core::MarkOp& op, Take&& take) {
  Step step{Part::kTask, kOfQueue, "cas", {{}, layout.tasks_prefix}};
  if (op.what == core::MarkOp::What::kControl) {
    step.key.rest = layout.control_key;
    step.value = std::string_view{"{}"};
  } else if (op.what == core::MarkOp::What::kSchedulesFolder) {
    step.key.rest = layout.schedules_prefix;
  }
  take(step);
}

template <class Take>
void each_step(const Layout& layout, const core::PruneOp& op, Take&& take) {
  take({Part::kTask, kOfTask, "delete-cas", key_below(layout.done_prefix, layout, op.key),
        op.index});
}

template <class Take>
void each_step(const Layout& layout, const core::ScheduleOp& op, Take&& take) {
  if (op.erases) return take({Part::kTask, "the schedule", "delete-cas", {{}, op.key}, op.index});
  take({Part::kTask, "the schedule", "cas", {{}, op.key}, op.index, op.flags, &op});
  if (!op.makes_task) return;
  const std::string id = schedule::tick_id(op.name, op.last);
  take({Part::kNewTask, kOfTask, "cas", {layout.tasks_prefix, id}, 0, 0, TaskOfTick{&op}});
}

template <class Take>
void each_step_of(const Layout& layout, const core::Op& op, Take&& take) {
  std::visit([&](const auto& o) { each_step(layout, o, take); }, op);
}

std::string text_of(const Key& key) {
  std::string text;
  text.reserve(key.prefix.size() + key.rest.size() + key.end.size());
  return text.append(key.prefix).append(key.rest).append(key.end);
}

std::string text_of(const core::ScheduleOp& op) {
  std::string text = with_last_tick(*op.record, op.last, op.last_task);
  return op.pauses ? with_paused(text, true) : text;
}

std::string text_of(const TaskOfTick& task) {
  return tick_task(task.op->name, *task.op->definition, task.op->last);
}

void append_value(Txn& txn, const Value& value, std::string_view node) {
  std::visit(Overloaded{[](std::monostate) {}, [&](std::string_view bytes) { txn.value(bytes); },
                        [&](const core::RestampOp* op) {
                          txn.value(restamp_record(*op->record, op->stamp));
                        },
                        [&](const core::DoneRecord* done) { txn.value(done_record(*done, node)); },
                        [&](const core::BuryOp* op) { txn.value(dead_letter(*op, node)); },
                        [&](const core::ScheduleOp* op) { txn.value(text_of(*op)); },
                        [&](const TaskOfTick& task) { txn.value(text_of(task)); },
                        [&](const Bucket& bucket) { txn.value(bucket_text(bucket.full_at)); }},
             value);
}

// Sizes. Names and punctuation count as they are, numbers and times as their longest form.

constexpr std::size_t kNumber = 20;
constexpr std::size_t kTime = 32;  // RFC 3339, quoted
constexpr std::size_t kSession = 64;

constexpr std::size_t length(std::string_view text) { return text.size(); }

std::size_t size_of(const Key& key) {
  return quoted_size(key.prefix) + quoted_size(key.rest) - 2 + key.end.size();
}

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

std::size_t size_of(const Value& value, std::string_view node) {
  return std::visit(
      Overloaded{[](std::monostate) { return std::size_t{0}; },
                 [](std::string_view bytes) { return bytes.size(); },
                 [](const core::RestampOp* op) { return op->record->size() + size_of(op->stamp); },
                 [&](const core::DoneRecord* done) { return size_of(*done, node); },
                 [&](const core::BuryOp* op) { return size_of(*op, node); },
                 [](const core::ScheduleOp* op) { return text_of(*op).size(); },
                 [](const TaskOfTick& task) { return text_of(task).size(); },
                 [](const Bucket& bucket) { return bucket_text(bucket.full_at).size(); }},
      value);
}

std::size_t size_of(const Step& step, std::string_view node) {
  std::size_t bytes =
      length(R"(}},{"KV":{"Verb":"","Key":)") + step.verb.size() + size_of(step.key);
  if (step.index != 0) bytes += length(R"(,"Index":)") + kNumber;
  if (step.flags != 0) bytes += length(R"(,"Flags":)") + kNumber;
  if (!std::holds_alternative<std::monostate>(step.value)) {
    bytes += length(R"(,"Value":"")") + base64_size(size_of(step.value, node));
  }
  return bytes;
}

core::Cost cost_of(const Layout& layout, std::string_view node, const core::Op& op) {
  core::Cost cost;
  each_step_of(layout, op, [&](const Step& step) {
    ++cost.operations;
    cost.bytes += size_of(step, node);
  });
  return cost;
}

// Of so many of a queue's `count` partitions.
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
  each_step_of(layout_, op, [&](const Step& step) {
    if (step.verb.starts_with("check-")) return;
    const std::hash<std::string_view> hash;
    keys.push_back(step.key.prefix.empty() ? hash(step.key.rest) : hash(text_of(step.key)));
  });
  return keys;
}

std::size_t TransactionPlan::unreadable_size(std::string_view record) const {
  return raw_size(record);
}

std::string transaction_body(const Layout& layout, std::string_view node,
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
    each_step_of(layout, op, [&](const Step& step) {
      const std::string made = step.key.prefix.empty() ? std::string{} : text_of(step.key);
      txn.verb(step.verb, step.key.prefix.empty() ? step.key.rest : std::string_view{made});
      txn.index(step.index).flags(step.flags);
      append_value(txn, step.value, node);
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
  static const Layout kAny;  // which operations there are is the same under each
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
    each_step_of(kAny, commit.ops[i], [&](const Step& step) {
      if (at++ == index) place = {i, step.part, step.what};
    });
  }
  return place;
}

}  // namespace lictor::wire
