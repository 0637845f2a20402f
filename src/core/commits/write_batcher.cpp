#include "core/commits/write_batcher.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "base/assert.h"
#include "base/limits.h"
#include "base/overloaded.h"

namespace lictor::core {
namespace {

constexpr Duration kPatience = 20ms;

const Claim* claim_of(const StoredRecord& stored) {
  const auto* task = std::get_if<Task>(&stored);
  return task != nullptr && task->stamp.claim ? &*task->stamp.claim : nullptr;
}

// Another client wrote beside our claim: continue from the version that is there now.
void expect(Write& write, const Task& stored) {
  std::visit(Overloaded{[](MarkOp&) {}, [](PruneOp&) {}, [](ScheduleOp&) {},
                        [&](FinishOp& finish) { finish.index = stored.modify_index; },
                        [&](RestampOp& restamp) {
                          restamp.index = stored.modify_index;
                          restamp.record = stored.record;
                          restamp.flags = stored.flags;
                        },
                        [&](auto& of_record) {
                          of_record.index = stored.modify_index;
                          of_record.record = stored.record;
                        }},
             write.op);
  write.rewritten = std::make_shared<const Task>(stored);
}

}  // namespace

WriteBatcher::WriteBatcher(const QueueOptions& options, Requests& requests)
    : options_(options),
      requests_(requests),
      reads_(options, requests),
      fence_(fence(1)),
      most_bytes_(options.max_transaction_bytes) {}

bool WriteBatcher::fits(const Op& op) const {
  Cost cost = fence_;
  cost += options_.costs->cost(op);
  return cost.operations <= options_.max_operations && cost.bytes <= options_.max_transaction_bytes;
}

std::string WriteBatcher::too_large(const Task& task) const {
  return too_large(task.key, task.record->size());
}

std::string WriteBatcher::too_large(const BadRecord& record) const {
  return too_large(record.key, options_.costs->unreadable_size(*record.record));
}

std::string WriteBatcher::too_large(const std::string& key, std::size_t bytes) const {
  if (limits::is_short_record(bytes, key.size(), options_.max_transaction_bytes)) return {};
  const std::size_t most = options_.costs->record_limit(key, options_.max_transaction_bytes);
  if (bytes <= most) return {};
  return std::to_string(bytes) + " bytes; a transaction holds records of up to " +
         std::to_string(most);
}

void WriteBatcher::add(Instant now, Write write) {
  const Cost cost = options_.costs->cost(write.op);
  wait(now, {std::move(write), cost}, false);
}

void WriteBatcher::wait(Instant now, WriteQueue::Item item, bool first) {
  if (waiting_.empty()) waiting_since_ = now;
  if (first) {
    waiting_.push_front(std::move(item));
  } else {
    waiting_.push_back(std::move(item));
  }
}

bool WriteBatcher::is_full(std::size_t transactions) const {
  return waiting_.cost().operations >=
             transactions * (options_.max_operations - fence_.operations) ||
         waiting_.cost().bytes >= transactions * most_bytes_;
}

bool WriteBatcher::has_room(Instant now) const {
  return now >= std::max(retry_after_, claims_after_) && reads_.is_idle() &&
         in_flight_.size() + single_writes_.size() < options_.transactions_in_flight &&
         !is_full(options_.transactions_in_flight - in_flight_.size() - single_writes_.size());
}

bool WriteBatcher::may_send(Instant now) const {
  const std::size_t taken = in_flight_.size() + single_writes_.size();
  if (waiting_.empty() || taken >= options_.transactions_in_flight) return false;
  if (is_full(1) || (in_flight_.empty() && !patient_)) return true;
  return in_flight_.size() <= 1 && now >= waiting_since_ + kPatience;
}

// Takes the next transaction's worth of waiting writes. `cost`: of these writes.
std::vector<Write> WriteBatcher::pack(Cost& cost) {
  std::vector<Write> writes;
  writes.reserve(std::min(waiting_.size(), options_.max_operations));
  std::set<std::uint32_t> partitions;
  std::vector<std::uint64_t> keys;  // by hash: keys that collide only share no transaction
  while (!waiting_.empty()) {
    const WriteQueue::Item& next = waiting_.front();
    Cost with = cost;
    with += next.cost;
    const std::uint32_t partition = next.write.partition;
    const bool is_new = !partitions.contains(partition);
    const Cost fences = fence(partitions.size() + (is_new ? 1 : 0));
    if (!writes.empty() && (fences.operations + with.operations > options_.max_operations ||
                            fences.bytes + with.bytes > most_bytes_)) {
      break;
    }
    const std::vector<std::uint64_t> its = options_.costs->written_keys(next.write.op);
    const auto stands_there = [&](std::uint64_t key) {
      return std::ranges::find(keys, key) != keys.end();
    };
    if (std::ranges::any_of(its, stands_there)) break;
    keys.insert(keys.end(), its.begin(), its.end());
    cost = with;
    partitions.insert(partition);
    writes.push_back(waiting_.pop_front().write);
  }
  return writes;
}

void WriteBatcher::send(Instant now, const std::string& session, Effects& out) {
  if (now < retry_after_ || now < deferred_until_) return;
  while (may_send(now)) {
    Cost cost;
    std::vector<Write> writes = pack(cost);
    waiting_since_ = now;  // the writes that are left
    transmit(now, session, std::move(writes), cost, out);
  }
  while (!single_writes_.empty() && in_flight_.size() < options_.transactions_in_flight) {
    Cost cost;
    for (const Write& write : single_writes_.front()) cost += options_.costs->cost(write.op);
    transmit(now, session, std::move(single_writes_.front()), cost, out);
    single_writes_.pop_front();
  }
}

// `cost`: of the writes.
void WriteBatcher::transmit(Instant now, const std::string& session, std::vector<Write> writes,
                            Cost cost, Effects& out) {
  Commit commit{requests_.next(), session, {}, {}, options_.partitions, options_.partitions_index};
  commit.ops.reserve(writes.size());
  for (const Write& write : writes) {
    commit.ops.push_back(write.op);
    commit.partitions.push_back(write.partition);
  }
  std::sort(commit.partitions.begin(), commit.partitions.end());
  const auto doubles = std::unique(commit.partitions.begin(), commit.partitions.end());
  commit.partitions.erase(doubles, commit.partitions.end());
  cost += fence(commit.partitions.size());
  LICTOR_ASSERT(writes.size() == 1 || (cost.operations <= limits::kMostOperations &&
                                       cost.bytes <= limits::kTransactionBytes));
  in_flight_.emplace(commit.request, Batch{std::move(writes), cost, now, commit.partitions});
  out.emplace_back(std::move(commit));
}

WriteBatcher::Result WriteBatcher::on(Instant now, const Committed& reply, Effects& out) {
  Result result;
  auto node = in_flight_.extract(reply.request);
  if (node.empty()) return result;  // from before a loss of leadership; the next leader decides
  Batch& batch = node.mapped();

  switch (reply.outcome) {
    case Outcome::kApplied:
      denied_reported_ = false;
      refused_claims_ = 0;
      result.proof = batch.sent_at;
      result.settled.reserve(batch.writes.size());
      for (Write& write : batch.writes) {
        if (write.dropped) continue;
        result.settled.push_back(
            {std::move(write), Verdict::kApplied, reply.modify_index, nullptr});
      }
      break;
    case Outcome::kRejected:
      if (had_too_many(reply, batch)) {
        std::erase_if(batch.writes, [](const Write& write) { return write.dropped; });
        requeue(now, std::move(batch.writes));
      } else if (!reply.failures.empty() && (reply.failures.front().why == OpFailure::kTooLarge ||
                                             reply.failures.front().why == OpFailure::kMalformed)) {
        split(now, reply.failures.front(), batch, out, result);
      } else {
        sort_failures(reply, batch, now, out, result);
      }
      break;
    case Outcome::kUnknown:
      out.emplace_back(Fact{Fact::Kind::kStoreTrouble, {}, "transaction: " + reply.error});
      retry_after_ = now + kRetryPause;
      for (Write& write : batch.writes) {
        if (write.dropped) continue;
        if (is_minor(write.purpose)) {  // doing it twice is harmless
          requeue(now, {std::move(write)});
          continue;
        }
        write.may_have_landed = true;
        doubt(std::move(write));
      }
      break;
  }
  reads_.send(now, out);
  return result;
}

// A transaction of fewer operations may pass; a single write cannot be made smaller.
bool WriteBatcher::had_too_many(const Committed& reply, const Batch& batch) const {
  return reply.most_operations != 0 && batch.writes.size() > 1 &&
         batch.cost.operations > options_.max_operations;
}

void WriteBatcher::requeue(Instant now, std::vector<Write> writes) {
  for (auto it = writes.rbegin(); it != writes.rend(); ++it) {
    const Cost cost = options_.costs->cost(it->op);
    wait(now, {std::move(*it), cost}, true);
  }
}

void WriteBatcher::doubt(Write write) {
  std::string key = key_of(write.op);
  reads_.read_next(key);
  doubtful_.insert_or_assign(std::move(key), Doubt{std::move(write), requests_.next()});
}

WriteBatcher::Result WriteBatcher::on(Instant now, const TasksFetched& reply, Effects& out) {
  Result result;
  const ValueReader::Use use = reads_.accept(now, reply);
  if (use == ValueReader::Use::kFailed) retry_after_ = now + kRetryPause;
  if (use != ValueReader::Use::kNext) return result;
  const auto resolve = [&](const std::string& key, const StoredRecord* stored) {
    const auto it = doubtful_.find(key);
    if (it == doubtful_.end() || reply.request < it->second.since) return;
    resolve_doubt(now, std::move(doubtful_.extract(it).mapped().write), stored, result);
  };
  for (const StoredRecord& stored : reply.records) resolve(key_of(stored), &stored);
  for (const std::string& key : reply.missing) resolve(key, nullptr);
  if (reply.records.empty() && reply.missing.empty()) {
    for (const std::string& key : reads_.hidden()) {
      out.emplace_back(Fact{Fact::Kind::kStoreTrouble, key,
                            "the outcome of a write is unknown, and Consul's answer to a read of "
                            "the key leaves it out; read again every 5s"});
    }
  }
  reads_.send(now, out);
  return result;
}

// Decides about a write that was refused as stale or whose reply was lost, by a consistent read.
void WriteBatcher::resolve_doubt(Instant now, Write write, const StoredRecord* stored,
                                 Result& result) {
  if (stored == nullptr) {
    // Gone: this write deleted it, or a client withdrew the task. Either way the task has ended.
    result.settled.push_back({std::move(write), Verdict::kVoid, 0, nullptr});
    return;
  }
  const std::uint64_t index = index_of(*stored);
  const Claim* holder = claim_of(*stored);
  const bool ours = holder != nullptr && write.claim && holder->nonce == write.claim->nonce;
  const bool claim = write.purpose == Purpose::kClaim;
  const auto kept = [&] { return std::make_shared<const StoredRecord>(*stored); };
  if (claim && ours) {
    result.settled.push_back({std::move(write), Verdict::kApplied, index, kept()});
    return;
  }
  const bool unchanged = index == expected_index(write.op);
  // Another client wrote so much beside our claim that the task's end no longer fits.
  const bool too_long = !unchanged && !std::holds_alternative<FinishOp>(write.op) &&
                        std::visit([&](const auto& r) { return !too_large(r).empty(); }, *stored);
  if (unchanged || (!claim && ours && !too_long)) {
    // Not applied, or not yet; if it lands after all, its repetition is refused and found applied.
    // A claim keeps its place in order this way.
    if (!unchanged) expect(write, std::get<Task>(*stored));
    std::vector<Write> again;
    again.push_back(std::move(write));
    requeue(now, std::move(again));
    return;
  }
  result.settled.push_back({std::move(write), Verdict::kVoid, 0, kept()});
}

void WriteBatcher::on_time(Instant now, Effects& out) {
  if (now >= refused_until_) requeue(now, std::exchange(refused_, {}));
  reads_.send(now, out);
  if (now >= deferred_until_) deferred_until_ = Instant::min();
  if (now >= claims_after_) claims_after_ = Instant::min();
  if (now >= retry_after_) retry_after_ = Instant::min();
}

void WriteBatcher::clear(Effects& out) {
  for (const auto& [request, batch] : in_flight_) out.emplace_back(CancelRequest{request});
  reads_.stop(out);
  in_flight_.clear();
  waiting_.clear();
  single_writes_.clear();
  most_bytes_ = options_.max_transaction_bytes;
  doubtful_.clear();
  refused_.clear();
  refused_claims_ = 0;
  retry_after_ = claims_after_ = deferred_until_ = Instant::min();
  patient_ = false;
}

void WriteBatcher::drop(std::uint32_t partition) {
  const auto is_over = [&](const Write& write) { return write.partition == partition; };
  waiting_.erase_if(is_over);
  for (auto& writes : single_writes_) std::erase_if(writes, is_over);
  std::erase_if(single_writes_, [](const auto& writes) { return writes.empty(); });
  std::erase_if(doubtful_, [&](const auto& entry) { return is_over(entry.second.write); });
  std::erase_if(refused_, is_over);
  // Writes that share a transaction with these are still to be settled.
  for (auto& [request, batch] : in_flight_) {
    for (Write& write : batch.writes) write.dropped = write.dropped || is_over(write);
    std::erase(batch.partitions, partition);
  }
}

template <class Visit>
void WriteBatcher::for_each(Visit visit) const {
  waiting_.for_each(visit);
  for (const auto& writes : single_writes_) std::for_each(writes.begin(), writes.end(), visit);
  for (const auto& [request, batch] : in_flight_) {
    std::for_each(batch.writes.begin(), batch.writes.end(), visit);
  }
  for (const auto& [key, doubt] : doubtful_) visit(doubt.write);
  std::for_each(refused_.begin(), refused_.end(), visit);
}

std::optional<std::pair<std::string, Instant>> WriteBatcher::refusal(const std::string& key) const {
  const auto found = std::find_if(refused_.begin(), refused_.end(),
                                  [&](const Write& each) { return key_of(each.op) == key; });
  if (found == refused_.end()) return std::nullopt;
  return std::pair{found->refusal, refused_until_};
}

bool WriteBatcher::idle(std::uint32_t partition) const {
  bool any = false;
  for_each(
      [&](const Write& write) { any = any || (write.partition == partition && !write.dropped); });
  return !any;
}

std::size_t WriteBatcher::writes() const {
  std::size_t count = 0;
  for_each([&](const Write&) { ++count; });
  return count;
}

Instant WriteBatcher::next_deadline() const {
  Instant next = refused_.empty() ? Instant::max() : refused_until_;
  next = std::min(next, reads_.next_deadline());
  // Needed even when no write waits, since has_room() holds claims back until then.
  for (const Instant pause : {retry_after_, claims_after_}) {
    if (pause != Instant::min()) next = std::min(next, pause);
  }
  if (deferred_until_ != Instant::min()) return std::min(next, deferred_until_);
  if (waiting_.empty() || in_flight_.size() >= options_.transactions_in_flight) return next;
  if (in_flight_.size() <= 1) {
    next = std::min(next, std::max(retry_after_, waiting_since_ + kPatience));
  }
  return next;
}

}  // namespace lictor::core
