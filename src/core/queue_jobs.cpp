// Start and end: the life of an attempt after its claim.

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/assert.h"
#include "core/mutant.h"
#include "core/queue.h"

namespace lictor::core {
namespace {

constexpr std::size_t kManyStarts = 8;
constexpr Duration kGather = 200us;

// A task that may not be written is tried again then; meanwhile it holds up no other.
constexpr Duration kRefusedRetry = 5s;
// Whoever is killed at the end of kill_grace has ended by then, and the news of it is here.
constexpr Duration kEndsWithin = 1s;
constexpr const char* kExpired = "expireAt passed before it was started";

const char* text_of(Attempt::StopReason reason) {
  switch (reason) {
    case Attempt::StopReason::kWithdrawn:
      return "withdrawn";
    case Attempt::StopReason::kTimeout:
      return "timed out";
    case Attempt::StopReason::kDrain:
      return "drain_timeout is over";
    case Attempt::StopReason::kLease:
      return "the lease ran out";
    case Attempt::StopReason::kNone:
      break;
  }
  return "";
}

}  // namespace

void Queue::bury_expired(Instant now, Effects& out) {
  if (drain_ != Drain::kNone || !lease_.trusted(now)) return;
  while (const auto task = schedule_.next_expired(wall(now))) {
    forget(task->key);
    burying_[task->key] = task->modify_index;
    BuryOp op;
    op.key = task->key;
    op.index = task->modify_index;
    op.record = task->record;
    op.stamp = task->stamp;
    op.reason = "expired";
    op.error = kExpired;
    op.at = wall(now);
    commits_.add(now, {Purpose::kBury, std::move(op), {}});
    out.emplace_back(Fact{Fact::Kind::kDead, task->key, task->stamp.attempt, 0, "expired", {}});
  }
}

// Claimed ahead, and no slot was free in time.
bool Queue::expired_unstarted(Instant now, const Task& task) const {
  return task.expire_at && *task.expire_at <= wall(now) && task.stamp.attempt == 1 &&
         task.stamp.lost == 0;
}

void Queue::bury_unstarted(Instant now, Attempt& attempt, Effects& out) {
  auto task = std::make_shared<Task>(*attempt.task);
  task->stamp.attempt = 0;
  attempt.task = std::move(task);
  bury(now, attempt, "expired", kExpired, {}, out);
}

void Queue::start_held(Instant now, Effects& out) {
  const bool trusted = lease_.trusted(now) || mutant(Mutant::kStartUntrusted);
  if (drain_ != Drain::kNone || (paused_ && !mutant(Mutant::kIgnorePause)) || !trusted) return;
  std::size_t started = 0;
  while (attempts_.count(Attempt::State::kRunning) < options_.concurrency &&
         attempts_.count(Attempt::State::kSettling) < options_.max_unacked) {
    // Side by side only those of one serialKey have an order, and of those one alone is claimed.
    Attempt* attempt = attempts_.next_held(options_.concurrency == 1);
    if (attempt == nullptr) return;
    if (expired_unstarted(now, *attempt->task)) {
      bury_unstarted(now, *attempt, out);
      continue;
    }
    const TypePolicy& policy = attempt->policy;
    Duration timeout = attempt->task->timeout.value_or(policy.timeout);
    if (policy.timeout_limit > Duration::zero() &&
        (timeout == Duration::zero() || timeout > policy.timeout_limit)) {
      timeout = policy.timeout_limit;
    }
    attempts_.set_state(*attempt, Attempt::State::kRunning);
    attempt->started_at = last_start_ = now;
    std::optional<Instant> deadline;
    if (timeout > Duration::zero()) {
      deadline = now + timeout;
      attempts_.set_timeout(*attempt, *deadline);
    }
    out.emplace_back(Fact{Fact::Kind::kStarted, attempt->task->key, attempt->task->stamp.attempt,
                          attempt->token, attempt->task->type, now - attempt->claimed_at});
    out.emplace_back(StartJob{attempt->id, attempt->task, attempt->token, deadline});
    // The shortest of them end while the next transaction would leave half empty.
    if (++started == kManyStarts) commits_.gather_until(now + kGather);
  }
}

void Queue::stop_timed_out(Instant now, Effects& out) {
  while (Attempt* attempt = attempts_.next_timed_out(now)) {
    if (attempt->stop == Attempt::StopReason::kNone) {
      stop_running(now, *attempt, Attempt::StopReason::kTimeout, out);
      continue;
    }
    attempts_.set_timeout(*attempt, Instant::max());
    out.emplace_back(Fact{Fact::Kind::kGoesOn, attempt->task->key, attempt->task->stamp.attempt,
                          attempt->token, text_of(attempt->stop), now - attempt->started_at});
  }
}

void Queue::stop_running(Instant now, Attempt& attempt, Attempt::StopReason why, Effects& out) {
  // What was stopped first names the reason, but for a withdrawal: then nothing is to be written.
  if (attempt.stop == Attempt::StopReason::kNone || why == Attempt::StopReason::kWithdrawn) {
    attempt.stop = why;
  }
  if (attempt.state == Attempt::State::kRunning) {
    attempts_.set_timeout(attempt, now + options_.kill_grace + kEndsWithin);
  }
  out.emplace_back(StopJob{attempt.id, options_.kill_grace});
}

void Queue::on(Instant now, const JobExited& event, Effects& out) {
  if (leftovers_.erase(event.attempt) != 0) {
    if (leftovers_.empty() && lease_.state() == Lease::State::kLost) lease_.resume(now, out);
    return;
  }
  Attempt* attempt = attempts_.find(event.attempt);
  if (attempt == nullptr) return;  // of a term that is over
  const bool was_started = event.ending != JobEnding::kNotStarted;
  if (was_started) {
    adaptive_.ran(now - attempt->started_at);
    if (!start_holds_.empty()) start_holds_.started(executor_of(*attempt->task));
  }
  if (attempt->stop == Attempt::StopReason::kWithdrawn) {
    const std::string key = attempt->task->key;
    out.emplace_back(Fact{Fact::Kind::kWithdrawn,
                          key,
                          attempt->task->stamp.attempt,
                          attempt->token,
                          {},
                          now - attempt->started_at});
    end_attempt(*attempt);
    listing_.fetch(key);  // it may have been written anew while the job was being stopped
    return;
  }
  if (!was_started) return put_off(now, *attempt, event.error, out);
  if (event.ending == JobEnding::kDone) return finish(now, *attempt, event, out);
  switch (attempt->stop) {
    case Attempt::StopReason::kTimeout:
      return fail(now, *attempt, "timed out; " + event.error, event.output_tail, {}, out);
    case Attempt::StopReason::kDrain:
      return give_back(now, *attempt, false, out);
    case Attempt::StopReason::kLease:
      return give_back(now, *attempt, true, out);
    case Attempt::StopReason::kNone:
    case Attempt::StopReason::kWithdrawn:
      break;
  }
  switch (event.ending) {
    case JobEnding::kStopped:  // by its guard: the lease ran out there before it did here
      return give_back(now, *attempt, true, out);
    case JobEnding::kPermanent:
      return bury(now, *attempt, "permanent", event.error, event.output_tail, out);
    default:
      return fail(now, *attempt, event.error, event.output_tail, event.retry_after, out);
  }
}

void Queue::finish(Instant now, Attempt& attempt, const JobExited& exit, Effects& out) {
  const Task& task = *attempt.task;
  FinishOp op{task.key, task.modify_index, exit.writes, nullptr};
  if (!exit.writes.empty() && !commits_.fits(op)) {
    return fail(now, attempt,
                "its writes do not fit into the transaction that finishes it, which takes up to " +
                    std::to_string(options_.max_operations) + " operations and " +
                    std::to_string(options_.max_transaction_bytes) + " bytes in base64",
                exit.output_tail, {}, out);
  }
  if (options_.history) {
    DoneRecord done;
    done.record = task.record;
    done.result = exit.result;
    done.attempts = task.stamp.attempt;
    done.lost = task.stamp.lost;
    done.started = wall(attempt.started_at);
    done.at = wall(now);
    // What counts is that the task is finished; then the result; then the record.
    const auto fits = [&] {
      op.done = std::make_shared<const DoneRecord>(done);
      return commits_.fits(op);
    };
    if (!fits()) {
      done.record = nullptr;
      if (!fits()) {
        done.result.clear();
        done.result_left_out = true;
        out.emplace_back(
            Fact{Fact::Kind::kResultLeftOut, task.key, task.stamp.attempt, attempt.token, {}, {}});
        if (!fits()) op.done = nullptr;
      }
    }
  }
  Fact done{Fact::Kind::kDone, task.key,  task.stamp.attempt,
            attempt.token,     task.type, now - attempt.started_at};
  if (attempt.stop == Attempt::StopReason::kTimeout) {
    out.emplace_back(done);
    std::get<Fact>(out.back()).kind = Fact::Kind::kDoneLate;
  }
  out.emplace_back(std::move(done));
  commits_.add(now, {Purpose::kFinish, std::move(op), task.stamp.claim});
  attempts_.set_state(attempt, Attempt::State::kSettling);
}

void Queue::prune(Instant now) {
  if (drain_ != Drain::kNone || !lease_.trusted(now) || !commits_.has_room(now)) return;
  for (PruneOp& op : history_.take_old(now, wall(now), options_.max_operations / 2)) {
    commits_.add(now, {Purpose::kPrune, std::move(op), {}});
  }
}

void Queue::fail(Instant now, Attempt& attempt, const std::string& error, const std::string& tail,
                 std::optional<Duration> retry_after, Effects& out) {
  const Task& task = *attempt.task;
  const TypePolicy& policy = attempt.policy;
  const std::uint32_t failures =
      task.stamp.attempt > task.stamp.lost ? task.stamp.attempt - task.stamp.lost : 1;
  const std::uint32_t allowed =
      std::min(task.max_attempts.value_or(policy.max_attempts), policy.max_attempts_limit);
  if (mutant(Mutant::kLoseRetry)) return end_attempt(attempt);
  if (failures >= allowed && !mutant(Mutant::kRetryForever))
    return bury(now, attempt, "failed", error, tail, out);

  Stamp stamp = task.stamp;
  stamp.taken = false;
  stamp.claim.reset();
  stamp.error = error;
  Instant again = backoff_end(now, attempt, failures);
  if (retry_after) again = std::max(again, now + std::min(*retry_after, kLongestRetryAfter));
  stamp.retry_at = wall(again);
  out.emplace_back(
      Fact{Fact::Kind::kFailed, task.key, stamp.attempt, attempt.token, error, again - now});
  restamp(now, attempt, Purpose::kRetry, std::move(stamp));
}

Instant Queue::backoff_end(Instant now, const Attempt& attempt, std::uint32_t failures) {
  const Task& task = *attempt.task;
  const Backoff& backoff = task.backoff ? *task.backoff : attempt.policy.backoff;
  const double grown = static_cast<double>(backoff.initial.count()) *
                       std::pow(backoff.factor, static_cast<double>(failures - 1));
  // Not a number where the initial 0 meets an infinite factor.
  const auto most = static_cast<double>(backoff.max.count());
  const double capped = grown < most ? grown : most;
  const double jittered = capped * (1.0 - backoff.jitter * random_.fraction());
  return now + Duration{static_cast<Duration::rep>(jittered)};
}

// Nothing of it ran, also where it may run at most once: as if it had not been claimed. It comes
// first again.
void Queue::put_off(Instant now, Attempt& attempt, const std::string& error, Effects& out) {
  const Task& task = *attempt.task;
  Fact fact{Fact::Kind::kGivenBack, task.key, task.stamp.attempt, attempt.token, error, {}};
  const std::string executor{executor_of(task)};
  if (const auto* hold = start_holds_.failed(now, executor, error)) {
    fact.kind = Fact::Kind::kNotStarted;
    fact.took = hold->wait;
  }
  out.emplace_back(std::move(fact));
  Stamp stamp = task.stamp;
  stamp.taken = false;
  stamp.claim.reset();
  stamp.error = std::string{kNotStartedError} + error;
  if (!mutant(Mutant::kCountUnstarted)) --stamp.attempt;
  restamp(now, attempt, Purpose::kGiveBack, std::move(stamp));
}

// Not the task's fault. Given back in order it counts as never begun; `lost` counts as a lost
// owner.
void Queue::give_back(Instant now, Attempt& attempt, bool lost, Effects& out) {
  const Task& task = *attempt.task;
  Stamp stamp = task.stamp;
  if (lost) {
    ++stamp.lost;
    if (attempt.policy.delivery == Delivery::kAtMostOnce || stamp.lost >= options_.max_losses) {
      auto copy = std::make_shared<Task>(task);
      copy->stamp = stamp;
      attempt.task = std::move(copy);
      return bury(now, attempt, "owner lost", "the lease ran out while it was running", {}, out);
    }
  } else if (attempt.policy.delivery == Delivery::kAtMostOnce &&
             attempt.state == Attempt::State::kRunning) {
    return bury(now, attempt, "stopped", "it was stopped while it ran, and may run at most once",
                {}, out);
  } else {
    --stamp.attempt;
  }
  stamp.taken = false;
  stamp.claim.reset();
  out.emplace_back(Fact{Fact::Kind::kGivenBack,
                        task.key,
                        task.stamp.attempt,
                        attempt.token,
                        lost ? "the lease ran out; it counts as lost" : "",
                        {}});
  restamp(now, attempt, Purpose::kGiveBack, std::move(stamp));
}

void Queue::give_back_held(Instant now, Effects& out) {
  attempts_.for_each([&](Attempt& attempt) {
    if (attempt.state == Attempt::State::kHeld) give_back(now, attempt, false, out);
  });
}

void Queue::restamp(Instant now, Attempt& attempt, Purpose purpose, Stamp stamp) {
  const Task& task = *attempt.task;
  commits_.add(now, {purpose,
                     RestampOp{task.key, task.modify_index, task.record, std::move(stamp),
                               task.flags, task.places},
                     task.stamp.claim});
  attempts_.set_state(attempt, Attempt::State::kSettling);
}

void Queue::bury(Instant now, Attempt& attempt, std::string reason, std::string error,
                 std::string tail, Effects& out) {
  const Task& task = *attempt.task;
  out.emplace_back(Fact{
      Fact::Kind::kDead, task.key, task.stamp.attempt, attempt.token, reason + ": " + error, {}});
  BuryOp op;
  op.key = task.key;
  op.index = task.modify_index;
  op.record = task.record;
  op.stamp = task.stamp;
  op.reason = std::move(reason);
  op.error = std::move(error);
  op.output_tail = std::move(tail);
  op.at = wall(now);
  // What counts in a dead letter is the record.
  if (!op.output_tail.empty() && !commits_.fits(op)) op.output_tail.clear();
  commits_.add(now, {Purpose::kBury, std::move(op), task.stamp.claim});
  attempts_.set_state(attempt, Attempt::State::kSettling);
}

// The task has ended, or is not what it was: others of its serialKey may go on.
void Queue::end_attempt(const Attempt& attempt) {
  schedule_.release(*attempt.task);
  attempts_.remove(attempt);
}

void Queue::settle(Instant now, Commits::Settled settled, Effects& out) {
  const Purpose purpose = settled.write.purpose;
  if (purpose == Purpose::kPrune) return;
  if (purpose == Purpose::kMark) {
    if (std::get<MarkOp>(*settled.write.op).what == MarkOp::What::kControl) {
      // Without the right to make the key it is looked for every second; once a term is enough to
      // find that out.
      if (settled.verdict == Commits::Verdict::kApplied) {
        marking_control_ = false;
        control_at_ = now;  // watch it from now on
      }
    }
    return;
  }
  const std::string& key = key_of(*settled.write.op);

  Attempt* attempt = attempts_.find(key);
  if (attempt == nullptr) {  // an unreadable or expired record on its way to the dead letters
    burying_.erase(key);
    const auto* bury = std::get_if<BuryOp>(settled.write.op.get());
    const bool is_gone = settled.verdict == Commits::Verdict::kVoid && !settled.stored;
    if (settled.stored) {
      take_in(now, *settled.stored, out);
    } else if (!is_gone || bury == nullptr || !leave_if_unnameable(key, bury->index, out)) {
      listing_.fetch(key);  // what was written anew meanwhile was passed over
    }
    if (settled.verdict == Commits::Verdict::kApplied && purpose == Purpose::kBury) {
      const auto& op = std::get<BuryOp>(*settled.write.op);
      tombstones_.add(key, op.index, now);
      if (!op.readable) {
        out.emplace_back(Fact{Fact::Kind::kDead, key, 0, 0, op.reason + ": " + op.error, {}});
      }
    }
    return;
  }
  if (settled.verdict == Commits::Verdict::kApplied) {
    return settle_applied(now, *attempt, settled, out);
  }
  if (settled.verdict == Commits::Verdict::kRefused && purpose == Purpose::kFinish) {
    // A condition of its job's writes does not hold, or they may not be made: nothing was written.
    return fail(now, *attempt, "its writes were refused: " + settled.error, {}, {}, out);
  }
  if (settled.verdict == Commits::Verdict::kRefused) {
    // It was sent before, perhaps, and nobody knows of that one; it may land yet.
    if (purpose == Purpose::kClaim) abandon_claim(settled.write.claim->nonce);
    refused_[key] = settled.error;
    auto task = std::make_shared<Task>(*attempt->task);
    const WallTime again = wall(now + kRefusedRetry);
    task->stamp.retry_at =
        std::max(again, task->stamp.retry_at.value_or(again));  // known here alone
    attempts_.remove(*attempt);
    put(std::move(task));
    return;
  }
  // Not as we expected it: withdrawn, or rewritten by its producer. What the store holds counts.
  if (purpose == Purpose::kClaim) {
    abandon_claim(settled.write.claim->nonce);
    if (!settled.stored && leave_if_unnameable(key, attempt->task->modify_index, out)) {
      return end_attempt(*attempt);
    }
    out.emplace_back(Fact{settled.stored ? Fact::Kind::kChanged : Fact::Kind::kWithdrawn,
                          key,
                          0,
                          0,
                          "before it was claimed",
                          {}});
  }
  end_attempt(*attempt);
  if (settled.stored) {
    take_in(now, *settled.stored, out);
  } else {
    listing_.fetch(key);  // what was written anew meanwhile was passed over
  }
}

// A claim under which nothing was started: who comes upon it has not lost an owner.
void Queue::abandon_claim(const std::string& nonce) {
  constexpr std::size_t kMost = 10'000;
  if (abandoned_claims_.size() < kMost) abandoned_claims_.insert(nonce);
}

void Queue::settle_applied(Instant now, Attempt& attempt, const Commits::Settled& settled,
                           Effects& out) {
  const std::string& key = key_of(*settled.write.op);
  const bool look_again = attempt.look_again && !mutant(Mutant::kNoLookAgain);
  switch (settled.write.purpose) {
    case Purpose::kClaim:
      return on_claimed(now, attempt, settled, out);
    case Purpose::kRetry:
    case Purpose::kGiveBack: {
      const auto& op = std::get<RestampOp>(*settled.write.op);
      auto task = std::make_shared<Task>(*attempt.task);
      if (op.record != task->record) {  // somebody wrote beside our claim: read what it is now
        end_attempt(attempt);
        listing_.fetch(key);
        break;
      }
      if (!options_.serialize_retries) schedule_.release(*task);
      attempts_.remove(attempt);
      task->stamp = op.stamp;
      task->modify_index = settled.modify_index;
      correct_retry(now, *task);  // the clock may have been set since
      put(std::move(task));
      break;
    }
    default:
      if (const auto* op = std::get_if<FinishOp>(settled.write.op.get());
          op != nullptr && op->done) {
        history_.add(now, key, settled.modify_index, op->done->at);
      }
      // The version that was deleted: of what somebody wrote beside our claim, if so, not ours.
      tombstones_.add(key, expected_index(*settled.write.op), now);
      end_attempt(attempt);
      break;
  }
  if (look_again) listing_.fetch(key);
}

void Queue::on_claimed(Instant now, Attempt& attempt, const Commits::Settled& settled,
                       Effects& out) {
  const Task& claimed = settled.stored ? std::get<Task>(*settled.stored) : *attempt.task;
  if (claimed.serial_key != attempt.task->serial_key) schedule_.release(*attempt.task);
  auto task = std::make_shared<Task>(claimed);
  task->stamp = std::get<RestampOp>(*settled.write.op).stamp;
  task->modify_index = settled.modify_index;
  attempt.task = std::move(task);
  attempt.token = settled.modify_index;
  attempt.held_since = now;
  attempts_.set_state(attempt, Attempt::State::kHeld);
  out.emplace_back(Fact{Fact::Kind::kClaimed,
                        attempt.task->key,
                        attempt.task->stamp.attempt,
                        attempt.token,
                        {},
                        now - attempt.claimed_at});
}

}  // namespace lictor::core
