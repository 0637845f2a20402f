// Handles refused writes: single operations, and whole transactions.

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/commits.h"

namespace lictor::core {
namespace {

// Removes the optional parts of a write. False: it has none.
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
  less->record = nullptr;
  less->result_left_out = less->result_left_out || !less->result.empty();
  less->result.clear();
  finish->done = std::move(less);
  return true;
}

}  // namespace

// Takes out the failed operations. The others were not applied either and are sent again.
void Commits::sort_failures(const Committed& reply, Batch& batch, Instant now, Effects& out,
                            Result& result) {
  enum class Fate { kAgain, kDoubtful, kAside, kRefused, kApart, kUnnumbered };
  std::vector<Fate> fates(batch.writes.size(), Fate::kAgain);
  std::map<std::size_t, std::string> errors;  // by the refused operation
  for (const Committed::Failure& failure : reply.failures) {
    const bool of_one = failure.op != Committed::kFence && failure.op < batch.writes.size();
    switch (failure.why) {
      case OpFailure::kNotLeader:
        // Not of one that was lost since: it may be held again.
        if (std::find(batch.partitions.begin(), batch.partitions.end(), failure.partition) !=
            batch.partitions.end()) {
          result.not_leader.push_back(failure.partition);
        }
        break;
      case OpFailure::kDenied:
      case OpFailure::kTooLarge:  // of the whole alone: see split()
      case OpFailure::kMalformed:
      case OpFailure::kOther: {
        const bool denied = failure.why == OpFailure::kDenied;
        const bool of_tick = of_one && batch.writes[failure.op].purpose == Purpose::kTick;
        if (of_one && !of_tick && is_minor(batch.writes[failure.op].purpose)) {
          fates[failure.op] = Fate::kDoubtful;  // nothing depends on it: let it go
          break;
        }
        if (of_one && failure.part == Committed::Part::kJobWrite) {
          fates[failure.op] = Fate::kRefused;
          errors[failure.op] = failure.text;
          break;
        }
        if (of_one) {
          fates[failure.op] = Fate::kAside;
          errors[failure.op] = failure.text;
          refused_until_ = now + kRefusedPause;
        } else {
          retry_after_ = now + (denied ? kRefusedPause : kRetryPause);
        }
        if (!std::exchange(told_denied_, true)) {
          const auto kind = denied ? Fact::Kind::kDenied : Fact::Kind::kStoreTrouble;
          out.emplace_back(Fact{kind,
                                of_one ? key_of(*batch.writes[failure.op].op) : std::string{},
                                0,
                                0,
                                failure.text,
                                {}});
        }
        break;
      }
      case OpFailure::kStale: {
        if (!of_one) break;
        Write& write = batch.writes[failure.op];
        if (failure.part == Committed::Part::kDeadLetter) {
          fates[failure.op] = rename(write) ? Fate::kApart : Fate::kUnnumbered;
        } else if (failure.part == Committed::Part::kJobWrite) {
          fates[failure.op] = Fate::kRefused;
          errors[failure.op] = failure.text;
        } else if (failure.part == Committed::Part::kNewTask) {
          // The task is there: what made it is not asked again.
          ScheduleOp note = std::get<ScheduleOp>(*write.op);
          note.makes_task = false;
          write.op = std::make_shared<const Op>(std::move(note));
        } else {
          fates[failure.op] = Fate::kDoubtful;
        }
        break;
      }
    }
  }
  std::vector<Write> again;
  std::vector<Write> renamed;
  for (std::size_t i = 0; i < batch.writes.size(); ++i) {
    Write& write = batch.writes[i];
    if (write.dropped) continue;
    if (fates[i] == Fate::kAgain) {
      again.push_back(std::move(write));
    } else if (fates[i] == Fate::kApart) {
      renamed.push_back(std::move(write));
    } else if (fates[i] == Fate::kUnnumbered) {
      unnumbered_.push_back(std::move(write));
    } else if (fates[i] == Fate::kAside) {
      if (write.purpose == Purpose::kClaim || write.purpose == Purpose::kTick) {
        result.settled.push_back(
            {std::move(write), Verdict::kRefused, 0, nullptr, std::move(errors[i])});
      } else {
        refused_.push_back(std::move(write));
      }
    } else if (fates[i] == Fate::kRefused) {
      result.settled.push_back(
          {std::move(write), Verdict::kRefused, 0, nullptr, std::move(errors[i])});
    } else if (is_minor(write.purpose)) {
      result.settled.push_back({std::move(write), Verdict::kVoid, 0, nullptr});
    } else {
      const std::string key = key_of(*write.op);
      doubtful_.insert_or_assign(key, std::move(write));
    }
  }
  if (!renamed.empty()) apart_.push_back(std::move(renamed));
  if (reply.failures.empty()) retry_after_ = now + kRetryPause;  // not even sent; no loop
  requeue(now, std::move(again));
}

// The answer does not name the operation at fault: halving isolates it, and the others pass.
void Commits::split(Instant now, const Committed::Failure& failure, Batch& batch, Effects& out,
                    Result& result) {
  std::erase_if(batch.writes, [](const Write& write) { return write.dropped; });
  if (batch.writes.empty()) return;
  if (batch.writes.size() == 1) {
    return settle_refused(now, failure, std::move(batch.writes.front()), out, result);
  }
  if (failure.why == OpFailure::kTooLarge) most_bytes_ = std::min(most_bytes_, batch.bytes / 2);
  out.emplace_back(
      Fact{Fact::Kind::kStoreTrouble,
           {},
           0,
           0,
           "a transaction of " + std::to_string(batch.writes.size()) +
               " writes is refused as a whole and goes again in halves: " + failure.text,
           {}});
  const auto middle =
      batch.writes.begin() + static_cast<std::ptrdiff_t>((batch.writes.size() + 1) / 2);
  std::vector<Write> second{std::make_move_iterator(middle),
                            std::make_move_iterator(batch.writes.end())};
  batch.writes.erase(middle, batch.writes.end());
  apart_.push_front(std::move(second));
  apart_.push_front(std::move(batch.writes));
}

// Refused alone: sent again without its optional parts, given up, or retried later.
void Commits::settle_refused(Instant now, const Committed::Failure& failure, Write write,
                             Effects& out, Result& result) {
  // Something other than Consul may refuse everything this way: pause, so as not to loop.
  if (failure.why == OpFailure::kMalformed) retry_after_ = now + kRetryPause;
  const auto* finish = std::get_if<FinishOp>(write.op.get());
  const bool refuses = write.purpose == Purpose::kClaim || write.purpose == Purpose::kTick;
  if (is_minor(write.purpose) && !refuses) {
    result.settled.push_back({std::move(write), Verdict::kVoid, 0, nullptr});
  } else if (refuses || (finish != nullptr && !finish->writes.empty())) {
    result.settled.push_back({std::move(write), Verdict::kRefused, 0, nullptr, failure.text});
  } else if (Op less = *write.op; lighten(less)) {
    write.op = std::make_shared<const Op>(std::move(less));
    apart_.push_front({});
    apart_.front().push_back(std::move(write));
  } else {
    out.emplace_back(Fact{Fact::Kind::kStoreTrouble, key_of(*write.op), 0, 0, failure.text, {}});
    refused_.push_back(std::move(write));
    refused_until_ = now + kRefusedPause;
  }
}

// Picks the next name for a dead letter whose name is taken. False: unknown, the existing names
// must be read first.
bool Commits::rename(Write& write) const {
  BuryOp next = std::get<BuryOp>(*write.op);
  const auto known = copies_.find(next.key);
  const std::uint32_t copy = known == copies_.end() ? 2 : known->second;
  if (next.copy >= copy) return false;
  next.copy = copy;
  write.op = std::make_shared<const Op>(std::move(next));
  return true;
}

void Commits::number(Effects& out) {
  constexpr std::size_t kAtOnce = 4;
  while (!unnumbered_.empty() && numbering_.size() < kAtOnce) {
    ListCopies list{requests_.next(), key_of(*unnumbered_.front().op)};
    numbering_.emplace(list.request, std::move(unnumbered_.front()));
    unnumbered_.pop_front();
    out.emplace_back(std::move(list));
  }
}

void Commits::on(Instant now, const CopiesListed& reply, Effects& out) {
  auto node = numbering_.extract(reply.request);
  if (node.empty()) return;
  Write& write = node.mapped();
  if (!reply.ok) {
    unnumbered_.push_back(std::move(write));
    retry_after_ = now + kRetryPause;
    return;
  }
  BuryOp next = std::get<BuryOp>(*write.op);
  // The refused name exists. A token that may not list names finds a free number by doubling.
  next.copy = reply.last >= next.copy ? reply.last + 1 : next.copy * 2;
  write.op = std::make_shared<const Op>(std::move(next));
  apart_.emplace_back().push_back(std::move(write));
  number(out);
}

// Remembers the number, so that a task that fails repeatedly needs no listing each time.
void Commits::remember_copy(const Write& write) {
  constexpr std::size_t kMost = 1'000;
  const auto* bury = std::get_if<BuryOp>(write.op.get());
  if (bury == nullptr || bury->copy == 1) return;
  if (copies_.size() >= kMost) copies_.clear();
  copies_[bury->key] = bury->copy + 1;
}

}  // namespace lictor::core
