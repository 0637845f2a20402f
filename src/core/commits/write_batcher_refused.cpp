// Handles refused writes: single operations, and whole transactions.
//
// A refused transaction was not applied at all. Consul names each operation that failed, and the
// table says how its write goes on; the other writes are sent again.
//
//   the operation that failed     the key has changed (stale)       another cause, as a right
//   task, by a claim              in doubt: read                    settled kRefused
//   task, by another write        in doubt: read                    sent again after a pause
//   schedule, by a tick           settled kVoid                     settled kRefused
//   new task of a tick            sent again without that task      settled kRefused
//   name of a dead letter         sent again under the next name    sent again after a pause
//   what the job hands over       settled kRefused                  settled kRefused
//   bucket of rate_limit          settled kNoToken                  settled kNoToken, with error
//   mark, pruned entry            settled kVoid                     settled kVoid
//   fence of a partition          Result::not_leader                all wait for a while
//
// A refused claim or tick is not tried again here: its task or schedule waits, and is decided about
// again later. A retry, a finish and a burial are sent until they are written, since a job has run
// or a record must go.
//
// A transaction refused as a whole names no operation: split() halves it until the write at fault
// is alone, and settle_refused() removes that write's optional parts, one after the other.

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "core/commits/write_batcher.h"

namespace lictor::core {

bool lighten(Op& op) {
  constexpr std::size_t kShortError = 200;
  const auto shorten = [](std::string& error) {
    if (error.size() <= kShortError) return false;
    error.resize(kShortError);
    return true;
  };
  if (auto* bury = std::get_if<BuryOp>(&op)) {
    if (bury->output_tail.empty()) return shorten(bury->error);
    bury->output_tail.clear();
    return true;
  }
  if (auto* restamp = std::get_if<RestampOp>(&op)) return shorten(restamp->stamp.error);
  auto* finish = std::get_if<FinishOp>(&op);
  if (finish == nullptr || !finish->done) return false;
  if (!finish->done->record && finish->done->result.empty()) {
    finish->done = nullptr;
    return true;
  }
  auto less = std::make_shared<DoneRecord>(*finish->done);
  if (less->record) {
    less->record = nullptr;
  } else {
    less->result.clear();
    less->result_left_out = true;
  }
  finish->done = std::move(less);
  return true;
}

// The fate of a write whose operation failed; std::nullopt if it is sent again in its present form.
std::optional<WriteBatcher::Fate> WriteBatcher::fate_of(const Committed::Failure& failure,
                                                        Write& write) const {
  if (failure.part == Committed::Part::kJobWrite) return Fate::kRefused;
  if (failure.part == Committed::Part::kRate) return Fate::kNoToken;
  if (failure.why != OpFailure::kStale) {
    const bool needed = write.purpose == Purpose::kTick || !is_minor(write.purpose);
    return needed ? Fate::kPostponed : Fate::kDoubtful;
  }
  if (failure.part == Committed::Part::kDeadLetter) {
    ++std::get<BuryOp>(write.op).taken;
    return std::nullopt;
  }
  if (failure.part != Committed::Part::kNewTask) return Fate::kDoubtful;
  // The task exists; who made it does not matter.
  std::get<ScheduleOp>(write.op).makes_task = false;
  return std::nullopt;
}

// Takes out the failed operations. The others were not applied either and are sent again.
void WriteBatcher::sort_failures(const Committed& reply, Batch& batch, Instant now, Effects& out,
                                 Result& result) {
  std::vector<std::optional<Fate>> fates(batch.writes.size());
  std::map<std::size_t, std::string> errors;  // by the refused operation
  for (const Committed::Failure& failure : reply.failures) {
    if (failure.why == OpFailure::kNotLeader) {
      // Skip a partition that was lost since: it may be held again.
      const auto& held = batch.partitions;
      if (std::find(held.begin(), held.end(), failure.partition) != held.end()) {
        result.not_leader.push_back(failure.partition);
      }
      continue;
    }
    const bool denied = failure.why == OpFailure::kDenied;
    std::string key;
    if (failure.op < batch.writes.size()) {  // not a fence
      Write& write = batch.writes[failure.op];
      const auto fate = fate_of(failure, write);
      if (fate) fates[failure.op] = fate;
      const bool is_taken = fate == Fate::kNoToken && failure.why == OpFailure::kStale;
      errors[failure.op] = is_taken ? std::string{} : failure.text;
      if (fate != Fate::kPostponed) continue;
      key = key_of(write.op);
    } else if (failure.why != OpFailure::kStale) {
      retry_after_ = now + (denied ? kRefusedPause : kRetryPause);
    } else {
      continue;
    }
    if (!std::exchange(denied_reported_, true)) {
      const auto kind = denied ? Fact::Kind::kDenied : Fact::Kind::kStoreTrouble;
      out.emplace_back(Fact{kind, std::move(key), failure.text});
    }
  }
  if (reply.failures.empty()) retry_after_ = now + kRetryPause;  // it was not even sent; no loop
  requeue(now, take_out(now, batch, fates, errors, result));
}

// Later refusals do not put off the next try of the first.
void WriteBatcher::postpone(Instant now, Write write, std::string why) {
  if (refused_.empty()) refused_until_ = now + kRefusedPause;
  write.refusal = std::move(why);
  refused_.push_back(std::move(write));
}

// One refused task must not hold up the others. But without the right to write any, each claim
// would cost Consul a transaction.
void WriteBatcher::count_refused_claim(Instant now) {
  constexpr std::size_t kMany = 8;  // in a row
  if (++refused_claims_ >= kMany) claims_after_ = now + kRefusedPause;
}

// Puts each failed write where its fate says. Returns the other writes.
std::vector<Write> WriteBatcher::take_out(Instant now, Batch& batch,
                                          const std::vector<std::optional<Fate>>& fates,
                                          std::map<std::size_t, std::string>& errors,
                                          Result& result) {
  std::vector<Write> others;
  for (std::size_t i = 0; i < batch.writes.size(); ++i) {
    Write& write = batch.writes[i];
    if (write.dropped) continue;
    const bool asks = write.purpose == Purpose::kClaim || write.purpose == Purpose::kTick;
    if (!fates[i]) {
      others.push_back(std::move(write));
    } else if (fates[i] == Fate::kNoToken) {
      result.settled.push_back(
          {std::move(write), Verdict::kNoToken, 0, nullptr, std::move(errors[i])});
    } else if (fates[i] == Fate::kRefused || (fates[i] == Fate::kPostponed && asks)) {
      if (fates[i] == Fate::kPostponed) count_refused_claim(now);
      result.settled.push_back(
          {std::move(write), Verdict::kRefused, 0, nullptr, std::move(errors[i])});
    } else if (fates[i] == Fate::kPostponed) {
      postpone(now, std::move(write), std::move(errors[i]));
    } else if (is_minor(write.purpose)) {
      result.settled.push_back({std::move(write), Verdict::kVoid, 0, nullptr});
    } else {
      doubt(std::move(write));
    }
  }
  return others;
}

// The answer does not name the operation at fault: halving isolates it, and the others pass.
void WriteBatcher::split(Instant now, const Committed::Failure& failure, Batch& batch, Effects& out,
                         Result& result) {
  std::erase_if(batch.writes, [](const Write& write) { return write.dropped; });
  if (batch.writes.empty()) return;
  if (batch.writes.size() == 1) {
    return settle_refused(now, failure, std::move(batch.writes.front()), out, result);
  }
  if (failure.why == OpFailure::kTooLarge)
    most_bytes_ = std::min(most_bytes_, batch.cost.bytes / 2);
  out.emplace_back(
      Fact{Fact::Kind::kStoreTrouble,
           {},
           "a transaction of " + std::to_string(batch.writes.size()) +
               " writes is refused as a whole and goes again in halves: " + failure.text});
  const auto middle =
      batch.writes.begin() + static_cast<std::ptrdiff_t>((batch.writes.size() + 1) / 2);
  std::vector<Write> second{std::make_move_iterator(middle),
                            std::make_move_iterator(batch.writes.end())};
  batch.writes.erase(middle, batch.writes.end());
  single_writes_.push_front(std::move(second));
  single_writes_.push_front(std::move(batch.writes));
}

// Sends a write that was refused alone again without its optional parts, or later, or gives it up.
void WriteBatcher::settle_refused(Instant now, const Committed::Failure& failure, Write write,
                                  Effects& out, Result& result) {
  // Something other than Consul may refuse everything this way: pause, so as not to loop.
  if (failure.why == OpFailure::kMalformed) retry_after_ = now + kRetryPause;
  const auto* finish = std::get_if<FinishOp>(&write.op);
  const bool refuses = write.purpose == Purpose::kClaim || write.purpose == Purpose::kTick;
  if (is_minor(write.purpose) && !refuses) {
    result.settled.push_back({std::move(write), Verdict::kVoid, 0, nullptr});
  } else if (refuses || (finish != nullptr && !finish->writes.empty() && !finish->done)) {
    result.settled.push_back({std::move(write), Verdict::kRefused, 0, nullptr, failure.text});
  } else if (lighten(write.op)) {
    if (finish != nullptr && !finish->done) {
      out.emplace_back(Fact{Fact::Kind::kResultLeftOut, finish->key,
                            "no room for a history entry: " + failure.text});
    }
    single_writes_.push_front({});
    single_writes_.front().push_back(std::move(write));
  } else {
    out.emplace_back(Fact{Fact::Kind::kStoreTrouble, key_of(write.op), failure.text});
    postpone(now, std::move(write), failure.text);
  }
}

}  // namespace lictor::core
