// The transitions of our tasks: claim, job and end.

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/time_text.h"
#include "core/commits/op_cost.h"
#include "core/commits/write.h"
#include "core/tasks/transitions.h"

namespace lictor::core {
namespace {

using S = TaskState;
using Verdict = WriteBatcher::Verdict;

// After kill_grace ends, a killed job's exit is reported within this time.
constexpr Duration kEndsWithin = 1s;

const char* text_of(StopReason reason) {
  switch (reason) {
    case StopReason::kWithdrawn:
      return "withdrawn";
    case StopReason::kTimeout:
      return "timed out";
    case StopReason::kDrain:
      return "drain_timeout is over";
    case StopReason::kLease:
      return "the lease ran out";
    case StopReason::kNone:
      break;
  }
  return "";
}

// Zero: no timeout.
Duration timeout_of(const Task& task, const TypePolicy& policy) {
  const Duration wanted = task.timeout.value_or(policy.timeout);
  if (policy.timeout_limit == Duration::zero()) return wanted;
  return wanted == Duration::zero() ? policy.timeout_limit : std::min(wanted, policy.timeout_limit);
}

std::string timed_out(const TaskEntry& entry) {
  return "timed out after " + format_duration(timeout_of(*entry.task, entry.attempt->policy)) +
         "; ";
}

}  // namespace

// ---- The claim ----

bool Transitions::claim(Instant now, TaskEntry& entry, bool due, const std::string& session,
                        std::optional<RateMark> rate, Effects& out) {
  const std::shared_ptr<const Task> task = entry.task;
  const TypePolicy& policy = *options_.policy_of(task->type);
  // The task carries a claim that this term did not make. We lead, so its owner is lost.
  const bool orphan = task->stamp.taken;
  const std::string* last = orphan && task->stamp.claim ? &task->stamp.claim->nonce : nullptr;
  const bool not_started =
      last != nullptr && entry.notes && entry.notes->not_started.contains(*last);
  // The owner lives, and has stopped the job itself: either this daemon in an earlier term, or
  // another daemon that has given up the claim.
  const bool once = policy.delivery == Delivery::kAtMostOnce;
  const bool is_own = last != nullptr && last->starts_with(options_.identity + "-");
  const bool owner_lives = is_own || (last != nullptr && owners_.have_given_up(*task->stamp.claim));
  // Whether the attempt that the old claim has counted goes on.
  const bool goes_on = not_started || (owner_lives && !once);
  Stamp stamp = task->stamp;
  if (orphan && !goes_on) {
    ++stamp.lost;
    const bool ends = once || stamp.lost >= options_.max_losses;
    if (ends) {
      emit_lost(entry, out);
      auto lost = std::make_shared<Task>(*task);
      lost->stamp = stamp;
      table_.update(entry, S::kEnding, [&](TaskEntry& e) {
        e.task = std::move(lost);
        e.attempt = std::make_unique<Attempt>();
        e.attempt->id = AttemptId{++last_attempt_};
        e.attempt->policy = policy;
      });
      make_dead(now, entry, "owner lost",
                "the daemon that had claimed it died or lost leadership, " +
                    std::to_string(stamp.lost) + (stamp.lost == 1 ? " time" : " times"),
                {});
      return false;
    }
  }
  stamp.taken = true;
  // A stranger may rewrite our claim without its attempt.
  const bool is_counted = goes_on && stamp.attempt != 0;
  if (!is_counted) ++stamp.attempt;
  // A task claimed ahead keeps taskRetryAt, in case another leader takes it over before that time.
  if (due) stamp.retry_at.reset();
  std::string nonce = claim_nonce(options_.identity, next_attempt());
  stamp.claim = Claim{options_.node, session, std::move(nonce), clock_.at(now)};
  table_.update(entry, S::kClaiming, [&](TaskEntry& e) {
    e.attempt = std::make_unique<Attempt>();
    e.attempt->id = AttemptId{++last_attempt_};
    e.attempt->policy = policy;
    e.attempt->last_chance = stamp.lost != 0 && stamp.lost + 1 >= options_.max_losses;
    e.attempt->claimed_at = e.attempt->held_since = now;
    e.attempt->begun = orphan && !not_started;
    if (!due) e.attempt->early_until = e.due;
  });
  SharedOptional<Claim> under = stamp.claim;
  add(now, entry, rewrite_of(Purpose::kClaim, *task, std::move(stamp), std::move(under), rate));
  return true;
}

// Names the owner that its record still has.
void Transitions::emit_lost(const TaskEntry& entry, Effects& out) {
  const Stamp& stamp = entry.task->stamp;
  emit(Fact::Kind::kLost, entry, stamp.claim ? stamp.claim->node : std::string{}, out);
}

void Transitions::on_settled(Instant now, const WriteBatcher::Settled& settled, Effects& out) {
  TaskEntry* entry = table_.find(key_of(settled.write.op));
  if (entry == nullptr) return;
  switch (entry->state) {
    case S::kClaiming:
      return on_claim_settled(now, *entry, settled, out);
    case S::kEnding:
    case S::kBurying:
      return on_end_settled(now, *entry, settled, out);
    default:  // of a claim settled before
      return;
  }
}

void Transitions::on_claim_settled(Instant now, TaskEntry& entry,
                                   const WriteBatcher::Settled& settled, Effects& out) {
  if (settled.verdict == Verdict::kNoToken) {
    entry.remember_not_started(settled.write.claim->nonce);
    const bool rewritten = entry.newer_index() > entry.index;
    place(now, entry, entry.task, out);
    if (rewritten) source_->fetch(entry.key);
    return;
  }
  if (settled.verdict == Verdict::kRefused) {
    // This claim may have been sent before, and that earlier request may still land.
    entry.remember_not_started(settled.write.claim->nonce);
    if (options_.policy_of(entry.task->type) == nullptr) return place(now, entry, entry.task, out);
    table_.update(entry, S::kWaiting, [&](TaskEntry& e) {
      e.lack = Lack::kStore;
      e.due = std::max(clock_.at(now + kRefusedPause), e.due);
      e.notes->text = settled.error;
    });
    return;
  }
  if (settled.verdict == Verdict::kVoid) {
    entry.remember_not_started(settled.write.claim->nonce);
    return on_void(now, entry, settled, out);
  }
  const Task& before = settled.stored ? std::get<Task>(*settled.stored) : *entry.task;
  auto claimed = std::make_shared<Task>(before);
  claimed->stamp = std::get<RestampOp>(settled.write.op).stamp;
  claimed->modify_index = settled.modify_index;
  claimed->ready_at = entry.task->ready_at;
  claimed->first_seen = entry.task->first_seen;
  // A newer version was seen before the claim's answer came: read it before the job starts.
  const bool check = entry.newer_index() > settled.modify_index;
  if (claimed->stamp.lost > entry.task->stamp.lost) emit_lost(entry, out);
  table_.update(entry, check ? S::kChecking : S::kClaimed, [&](TaskEntry& e) {
    e.index = settled.modify_index;
    e.task = std::move(claimed);
    e.attempt->token = settled.modify_index;
    e.attempt->held_since = now;
  });
  emit(Fact::Kind::kClaimed, entry, {}, out, now - entry.attempt->claimed_at);
  if (check) source_->check(entry.key);
}

// The store does not hold the expected version: the task was withdrawn, or rewritten by its
// producer. The stored version counts. A new task of the same name belongs to the next generation.
void Transitions::on_void(Instant now, TaskEntry& entry, const WriteBatcher::Settled& settled,
                          Effects& out) {
  const bool claiming = entry.state == S::kClaiming;
  const bool ended = entry.state == S::kEnding;
  const Purpose purpose = settled.write.purpose;
  const bool is_end = ended && (purpose == Purpose::kFinish || purpose == Purpose::kBury);
  if (!settled.stored && !ended && is_unnameable(entry.key)) {
    return ignore(entry, Lack::kName, entry.index, {}, out);
  }
  if (claiming) {
    emit(settled.stored ? Fact::Kind::kChanged : Fact::Kind::kWithdrawn, entry,
         "before it was claimed", out);
  } else if (settled.write.may_have_landed &&
             (!settled.stored || is_another(entry, *settled.stored))) {
    emit_end(entry, settled.write, out);  // the task is gone: usually by this write
  } else if (settled.stored && is_end && entry.attempt->started_at != Instant{}) {
    emit(Fact::Kind::kResultVoid, entry, {}, out);
  } else if (purpose == Purpose::kFinish) {
    const Attempt& attempt = *entry.attempt;
    emit(Fact::Kind::kWithdrawn, entry, {}, out, attempt.ended_at - attempt.started_at);
  } else if (purpose == Purpose::kBury && !settled.stored) {
    emit(Fact::Kind::kWithdrawn, entry, "before its dead letter was written", out);
  }
  if (settled.stored && !is_another(entry, *settled.stored)) {
    return place(now, entry, *settled.stored, out);
  }
  table_.bury(entry, entry.index, now);
  source_->fetch(entry.key);  // versions written meanwhile were ignored until now
}

// ---- The job ----

void Transitions::start(Instant now, TaskEntry& entry, Effects& out) {
  const Duration timeout = timeout_of(*entry.task, entry.attempt->policy);
  std::optional<Instant> deadline;
  if (timeout > Duration::zero()) deadline = now + timeout;
  table_.update(entry, S::kRunning, [&](TaskEntry& e) {
    e.attempt->started_at = now;
    e.attempt->timeout_at = deadline.value_or(Instant::max());
  });
  emit(Fact::Kind::kStarted, entry, entry.task->type, out, now - entry.attempt->claimed_at);
  auto& started = std::get<Fact>(out.back());
  started.waited = std::max(Duration::zero(), now - entry.task->ready_at);
  if (const auto due = due_of(*entry.task)) started.late = clock_.since(now, *due);
  out.emplace_back(
      StartJob{entry.attempt->id, entry.task, entry.attempt->token, deadline, entry.partition});
}

void Transitions::stop(Instant now, TaskEntry& entry, StopReason why, Effects& out) {
  table_.adjust(entry, [&](TaskEntry& e) {
    // The first reason counts. A withdrawal overrides it: then nothing must be written.
    if (e.attempt->stop == StopReason::kNone || why == StopReason::kWithdrawn) {
      e.attempt->stop = why;
    }
    e.attempt->timeout_at = now + options_.kill_grace + kEndsWithin;
  });
  out.emplace_back(StopJob{entry.attempt->id, options_.kill_grace});
}

void Transitions::on_overdue(Instant now, TaskEntry& entry, Effects& out) {
  table_.adjust(entry, [](TaskEntry& e) { e.attempt->timeout_at = Instant::max(); });
  emit(Fact::Kind::kGoesOn, entry, text_of(entry.attempt->stop), out,
       now - entry.attempt->started_at);
}

void Transitions::on_exit(Instant now, TaskEntry& entry, const JobExited& exit, Effects& out) {
  const StopReason stopped = entry.attempt->stop;
  if (stopped == StopReason::kWithdrawn) return end_withdrawn(now, entry, out);
  if (exit.ending == JobEnding::kDone) return finish(now, entry, exit, out);
  if (stopped == StopReason::kTimeout) {
    return fail(now, entry, timed_out(entry) + exit.error, exit.output_tail, {}, out);
  }
  if (stopped == StopReason::kDrain) return interrupt(now, entry, "stopped", {}, out);
  if (exit.ending == JobEnding::kLost) return lose(now, entry, exit.error, out);
  // kStopped: the warden saw the lease run out before the core did.
  if (stopped == StopReason::kLease || exit.ending == JobEnding::kStopped) {
    const std::string why = stopped == StopReason::kLease ? "the lease ran out" : exit.error;
    return interrupt(now, entry, "owner lost", why, out);
  }
  if (exit.ending == JobEnding::kPermanent) {
    return make_dead(now, entry, "permanent", exit.error, exit.output_tail);
  }
  fail(now, entry, exit.error, exit.output_tail, exit.retry_after, out);
}

// The key may have been written again while the job was being stopped. Its place is kept until it
// is read: the new task comes before later tasks of its serialKey.
void Transitions::end_withdrawn(Instant now, TaskEntry& entry, Effects& out) {
  emit(Fact::Kind::kWithdrawn, entry, {}, out, now - entry.attempt->started_at);
  table_.update(entry, S::kEnding, [](TaskEntry& e) { e.attempt->returns = true; });
  source_->check(entry.key);
}

// No job ran, so the task goes back even if it may run at most once. It keeps its place in order.
void Transitions::on_not_started(Instant now, TaskEntry& entry, std::string error,
                                 std::optional<Duration> pause, Effects& out) {
  const StopReason stopped = entry.attempt->stop;
  if (stopped == StopReason::kWithdrawn) return on_exit(now, entry, {}, out);
  if (stopped == StopReason::kTimeout) error = timed_out(entry) + error;
  emit(pause ? Fact::Kind::kNotStarted : Fact::Kind::kGivenBack, entry, error, out,
       pause.value_or(Duration::zero()));
  Stamp stamp = entry.task->stamp;
  const bool has_begun = entry.attempt->begun || has_run(stamp);
  stamp.error = std::string{kNotStartedError} + error;
  if (has_begun) stamp.error += kBegunBefore;
  --stamp.attempt;
  rewrite(now, entry, Purpose::kRequeue, std::move(stamp));
}

void Transitions::finish(Instant now, TaskEntry& entry, const JobExited& exit, Effects& out) {
  const Task& task = *entry.task;
  Op op = FinishOp{task.key, task.modify_index, exit.writes, nullptr};
  if (!exit.writes.empty() && !commits_.fits(op)) {
    const Cost most{options_.max_operations, options_.max_transaction_bytes};
    return fail(now, entry, writes_do_not_fit(exit.writes.size(), most), exit.output_tail, {}, out);
  }
  // The job was carried out, whatever it handed over: another attempt would do it twice.
  std::string fault = exit.result_fault;
  if (options_.history) {
    auto& kept = std::get<FinishOp>(op).done;
    DoneRecord done;
    done.record = task.record;
    done.result = exit.result;
    done.result_left_out = !fault.empty();
    done.attempts = task.stamp.attempt;
    done.lost = task.stamp.lost;
    done.started = clock_.at(entry.attempt->started_at);
    done.at = clock_.at(now);
    kept = std::make_shared<const DoneRecord>(std::move(done));
    while (!commits_.fits(op) && lighten(op)) {
      if (!kept) {
        fault = "its writes leave no room for a history entry in that transaction";
      } else if (kept->result_left_out && fault.empty()) {
        fault = "result and record do not fit into the transaction that finishes the task";
      }
    }
  }
  if (!fault.empty()) emit(Fact::Kind::kResultLeftOut, entry, std::move(fault), out);
  if (entry.attempt->stop == StopReason::kTimeout) {
    emit(Fact::Kind::kDoneLate, entry, task.type, out, now - entry.attempt->started_at);
  }
  add(now, entry, {Purpose::kFinish, std::move(op), task.stamp.claim});
  table_.update(entry, S::kEnding, [&](TaskEntry& e) { e.attempt->ended_at = now; });
}

// A task has ended when Consul confirms it: until then the write may be refused, or leadership
// lost.
void Transitions::emit_end(const TaskEntry& entry, const Write& write, Effects& out) {
  if (write.purpose == Purpose::kFinish) {
    const Attempt& attempt = *entry.attempt;
    emit(Fact::Kind::kDone, entry, entry.task->type, out, attempt.ended_at - attempt.started_at);
  } else if (write.purpose == Purpose::kBury) {
    const auto& op = std::get<BuryOp>(write.op);
    emit(Fact::Kind::kDead, entry, op.reason + ": " + op.error, out);
  }
}

void Transitions::fail(Instant now, TaskEntry& entry, const std::string& error,
                       const std::string& tail, std::optional<Duration> retry_after, Effects& out) {
  const Task& task = *entry.task;
  const TypePolicy& policy = entry.attempt->policy;
  const std::uint32_t failures =
      task.stamp.attempt > task.stamp.lost ? task.stamp.attempt - task.stamp.lost : 1;
  const std::uint32_t allowed =
      std::min(task.max_attempts.value_or(policy.max_attempts), policy.max_attempts_limit);
  if (failures >= allowed) {
    return make_dead(now, entry, "failed", error, tail);
  }
  Stamp stamp = task.stamp;
  stamp.error = error;
  Instant again = backoff_end(now, entry, failures);
  if (retry_after)
    again = std::max(again, now + std::min<Duration>(*retry_after, kLongestRetryAfter));
  stamp.retry_at = clock_.at(again);
  emit(Fact::Kind::kFailed, entry, error, out, again - now);
  rewrite(now, entry, Purpose::kRetry, std::move(stamp));
}

Instant Transitions::backoff_end(Instant now, const TaskEntry& entry, std::uint32_t failures) {
  const Backoff& configured = entry.attempt->policy.backoff;
  const Backoff& backoff = entry.task->backoff ? *entry.task->backoff : configured;
  const double grown = static_cast<double>(backoff.initial.count()) *
                       std::pow(backoff.factor, static_cast<double>(failures - 1));
  // `grown` is not a number if an initial 0 meets an infinite factor.
  const auto most = static_cast<double>(backoff.max.count());
  const double capped = grown < most ? grown : most;
  const double fraction = random_.fraction();
  const double jittered = capped * (1.0 - backoff.jitter * fraction);
  // A record may ask for more patience than the configuration, but not for less: otherwise anyone
  // who may write tasks could have a thousand attempts made in a few seconds.
  const double least =
      static_cast<double>(configured.initial.count()) * (1.0 - configured.jitter * fraction);
  return now + Duration{static_cast<Duration::rep>(std::max(jittered, least))};
}

void Transitions::requeue(Instant now, TaskEntry& entry, std::string why, Effects& out) {
  Stamp stamp = entry.task->stamp;
  if (has_job(entry.state) || entry.attempt->begun) stamp.error = "stopped: " + why;
  emit(Fact::Kind::kGivenBack, entry, std::move(why), out);
  --stamp.attempt;
  rewrite(now, entry, Purpose::kRequeue, std::move(stamp));
}

// This daemon stopped the job, since drain_timeout is over or the lease ran out. That is not the
// task's fault, and no owner died, so neither an attempt nor a loss is counted.
void Transitions::interrupt(Instant now, TaskEntry& entry, std::string reason, std::string why,
                            Effects& out) {
  if (entry.attempt->policy.delivery != Delivery::kAtMostOnce) {
    return requeue(now, entry, why.empty() ? text_of(StopReason::kDrain) : std::move(why), out);
  }
  std::string error = why.empty() ? "it was stopped while it ran" : why + " while it was running";
  make_dead(now, entry, std::move(reason), std::move(error) + ", and it may run at most once", {});
}

// The runner of its job died, perhaps because of the job: that counts as a lost owner.
void Transitions::lose(Instant now, TaskEntry& entry, const std::string& why, Effects& out) {
  Stamp stamp = entry.task->stamp;
  ++stamp.lost;
  if (entry.attempt->policy.delivery == Delivery::kAtMostOnce ||
      stamp.lost >= options_.max_losses) {
    auto task = std::make_shared<Task>(*entry.task);
    task->stamp = stamp;
    table_.adjust(entry, [&](TaskEntry& e) { e.task = std::move(task); });
    return make_dead(now, entry, "owner lost", why + " while it was running", {});
  }
  emit(Fact::Kind::kGivenBack, entry, why + "; it counts as lost", out);
  rewrite(now, entry, Purpose::kRequeue, std::move(stamp));
}

void Transitions::make_dead(Instant now, TaskEntry& entry, std::string reason, std::string error,
                            std::string tail) {
  const Task& task = *entry.task;
  BuryOp op = dead_letter(task, std::move(reason), std::move(error), clock_.at(now));
  op.output_tail = std::move(tail);
  // If not everything fits, the output goes: the record matters more.
  if (!op.output_tail.empty() && !commits_.fits(op)) op.output_tail.clear();
  add(now, entry, {Purpose::kBury, std::move(op), task.stamp.claim});
  table_.move(entry, S::kEnding);
}

void Transitions::rewrite(Instant now, TaskEntry& entry, Purpose purpose, Stamp stamp) {
  stamp.taken = false;
  stamp.claim.reset();
  const Task& task = *entry.task;
  add(now, entry, rewrite_of(purpose, task, std::move(stamp), task.stamp.claim));
  const bool returns = purpose == Purpose::kRequeue && !ClaimedOrder::is_early(entry);
  table_.update(entry, S::kEnding, [&](TaskEntry& e) { e.attempt->returns = returns; });
}

// ---- The end ----

void Transitions::on_end_settled(Instant now, TaskEntry& entry,
                                 const WriteBatcher::Settled& settled, Effects& out) {
  const Purpose purpose = settled.write.purpose;
  switch (settled.verdict) {
    case Verdict::kRefused:
      // A cas of the job's writes failed, or the token may not make them. Nothing was written.
      return fail(now, entry, "its writes were refused: " + settled.error, {}, {}, out);
    case Verdict::kVoid:
    case Verdict::kNoToken:  // for claims only
      return on_void(now, entry, settled, out);
    case Verdict::kApplied:
      break;
  }
  const bool newer = entry.newer_index() > entry.index;
  if (purpose == Purpose::kRetry || purpose == Purpose::kRequeue) {
    on_rewrite_applied(now, entry, settled, out);
  } else {
    emit_end(entry, settled.write, out);
    // Another client may have written beside our claim: then that version was deleted.
    table_.bury(entry, expected_index(settled.write.op), now);
  }
  if (newer) source_->fetch(entry.key);
}

void Transitions::on_rewrite_applied(Instant now, TaskEntry& entry,
                                     const WriteBatcher::Settled& settled, Effects& out) {
  const std::shared_ptr<const Task>& rewritten = settled.write.rewritten;
  auto task = std::make_shared<Task>(rewritten ? *rewritten : *entry.task);
  task->stamp = std::get<RestampOp>(settled.write.op).stamp;
  task->modify_index = settled.modify_index;
  if (rewritten) return place(now, entry, StoredRecord{std::move(*task)}, out);
  task->ready_at = ready_at(now, *task);
  place(now, entry, std::move(task), out);
}

// Its claim counts as the first attempt, and nothing of it was begun before.
bool Transitions::is_expired(Instant now, const TaskEntry& entry) const {
  if (!entry.task->expire_at || *entry.task->expire_at > clock_.at(now)) return false;
  const Stamp& stamp = entry.task->stamp;
  return stamp.attempt == 1 && stamp.lost == 0 && !entry.attempt->begun && !has_run(stamp);
}

void Transitions::expire_claimed(Instant now, TaskEntry& entry) {
  auto task = std::make_shared<Task>(*entry.task);
  task->stamp.attempt = 0;
  table_.adjust(entry, [&](TaskEntry& e) { e.task = std::move(task); });
  make_dead(now, entry, "expired", kExpired, {});
}

}  // namespace lictor::core
