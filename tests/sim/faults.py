#!/usr/bin/env python3
"""Writes copies of lictor's sources with deliberate faults, one of which is switched on at a time,
to see that the simulation's checkers find each. The product has none of them.

    faults.py --list           the files that are written, below the folder
    faults.py SOURCE FOLDER    reads from SOURCE (src/), writes into FOLDER

A fault is a text of the source, which must be there exactly once, and what stands in its place:
FAULT(Name) there is true while the fault is on. A text that is not found ends with an error: move
the fault along with the code.
"""

import pathlib
import sys

# By name, what the fault is: first those that sim looks for, in the core, in the wire layer, and in
# what stands beside them (tests/unit/core/fault.h).
QUEUE = {
    "TrustFromReply": "the lease is trusted from when a proof came, not from its sending",
    "RenewalProves": "a renewed session counts as a proof of leadership",
    "IgnoreExpiry": "jobs are not stopped when the lease runs out",
    "StartUntrusted": "jobs are started although the lease ran out",
    "IgnoreOverwrite": "a leader key that another client wrote to is left as it is",
    "ReleaseWithJobs": "the lock is released while jobs run",
    "UnknownIsRejected": "a lost reply is taken for a refusal",
    "UnknownIsApplied": "a lost reply is taken for a success",
    "StartBeforeClaim": "a job is started before its claim is applied",
    "NoNonce": "all claims carry the same nonce",
    "ForgetOrphan": "a task whose owner is gone is passed over",
    "DontCountLosses": "lost owners are not counted",
    "OnceAgain": "a task that may run at most once is run again after its owner was lost",
    "LoseRetry": "a failed task is not queued again",
    "RetryForever": "max_attempts is ignored",
    "CountUnstarted": "what could not be started counts as an attempt",
    "FinishTwice": "a finish that was applied is sent again",
    "LoseRequeued": "what shared a transaction with a refused operation is dropped",
    "IgnoreLane": "serialKey is ignored",
    "ForgetDistant": "a task of much later is not read again when it is near",
    "OrderByKey": "tasks start in the order of their keys",
    "UntimedFirst": "a task without a time starts before all others",
    "IgnoreExecuteAt": "a task starts before its executeAt",
    "IgnorePause": "tasks are claimed and started although the queue is paused",
    "ClaimUnread": "a new leader claims before it has read whether the queue is paused",
    "IgnoreWithdrawal": "a job runs on although its key was deleted",
    "NoLookAgain": "what is written to a key while its task is being ended is not seen",
    "NoTombstone": "an old listing brings a finished task back",
    "PrefetchBeyond": "more is claimed than concurrency and prefetch allow",
    "DropFence": "check-session is left out of the transactions",
    "PlainDelete": "a finish deletes the key whatever it holds",
    "NoCas": "a claim overwrites the key whatever it holds",
    "BuryUnchecked": "a dead letter is made without check-index",
    "WritesOutside": "what a job writes is written although its finish is refused",
    "UnlockUnchecked": "the lock is released without check-index",
    "GiveBackWithJobs": "a dead daemon's lock is given back while a job of it lives",
    "TrustLockDelay": "a lock that was freed is acquired as soon as Consul lets it",
    "IgnoreClockStep": "a clock that stood still takes nothing from the lease",
    "DueByWrongClock": "what was due by a clock that was ahead starts once it is set right",
    "ForgetDeletion": "a deletion is not remembered until every older answer has come",
    "ForgetAnew": "a key that was written again is forgotten with its old deletion",
    "NobodyFollows": "when a serialKey is free, nobody takes it",
    "FenceOfOne": "a transaction carries the fence of one of its partitions alone",
    "ProofOfOne": "a proof extends the lease of the lock that was read alone",
    "TwoOnOneKey": "two writes of one key share a transaction",
    "NeverLearnt": "a refusal for too many operations teaches nothing",
    "CountStopped": "a job that its own daemon stopped counts as that of a lost owner",
    "CountLiving": "a daemon that lives and has given up its claims counts as lost",
    "CountUnread": "a new leader claims before it has read what other daemons have given up",
    "GivenUpLater": "later claims count as given up, too",
    "OvertakeReturned": "what was given back is overtaken by what waited behind it",
    "ForgetForeign": "the tasks of a partition that was won are not read again",
    "KeepLostJobs": "the jobs of a lost partition are not stopped",
    "LoseBeside": "what was written beside a claim is not read after the retry",
    "ReadReturned": "what was given back in doubt is read again, and loses its place meanwhile",
    "IgnoreTypeLimit": "the concurrency of a type is ignored",
    "NoSlotAgain": "nobody takes the slot of a type that becomes free",
    "StartBeyond": "what was claimed is started although the concurrency of its type was lowered",
    "LimitedLetsPass": "a task that waits for a slot of its type lets others of its serialKey pass",
    "BesideOldLocks": "a queue is served while locks of another number of partitions are held",
    "MapUnread": "a queue is served though its partitions go by another serialize_by",
    "AnyCount": "the fences do not check the number of partitions",
    "ClaimAtOnce": "a task is claimed before all of its generation is read",
    "IgnoreRewritten": "a rewritten task is not read",
    "ListAtOnce": "names are listed as often as they change",
    "ForgetBucket": "a new leader takes the bucket of rate_limit for full",
    "BucketUnchecked": "a claim writes the bucket whatever another leader wrote there",
    "TokensForNothing": "a token that was reserved serves any number of claims",
    "CountsText": "values count as they are, and not in the base64 that they are sent in",
    "NeverSmaller": "a batch of values that came late is asked for again unchanged",
    "LinkIsFree": "names may take all of a slow link",
    "LocksOfBefore": "a lock that a snapshot gives back is taken at once",
    "ProofUnread": "?consistent is left out of the read that proves leadership",
    "CreateForModify": "CreateIndex is read as ModifyIndex",
    "FinishUnchecked": "a finish that writes goes without check-index",
    "CheckAfterDelete": "the check of a finish comes after its delete",
    "ValueAsText": "values are not in base64",
    "ConflictApplied": "409 is read as 200",
    "ErrorRefused": "500 to a write is read as a refusal",
    "CutRefused": "an answer that is cut short is read as a refusal",
    "HolderUnread": "who holds the lock is not read",
    "FlagsDropped": "a claim drops the key's flags",
    "WrongOperation": "the operation after the refused one is taken for it",
    "OldTransaction": "?consistent is left out of transactions that only read",
}
# Those of recurring tasks (ticks.cpp).
TICKS = {
    "PausedOnTime": "a tick of a pause that has just ended counts as on time",
    "TickUnchecked": "a schedule is written whatever version it has",
    "NoteAlone": "a tick is noted, and its task is not made",
    "MakeAlone": "a tick's task is made, and the tick is not noted here",
    "NoGrace": "a tick is on time within one second alone",
    "NoAnchor": "it is not written down from when a new schedule counts",
    "CountAnew": "a schedule that is rewritten without lastTick counts from now",
    "TaskForgotten": "the last task of a schedule is not known after a change of leader",
    "NewestAlone": "of several ticks that are due the newest alone is made",
    "SkipDue": "a tick of another leader's time is taken as made",
    "NoMakeup": "ticks that were missed are not made up for",
    "TicksOfTheFuture": "a tick is made before its time",
    "ConfiguredAnew": "a schedule of the configuration that is rewritten counts from now",
    "ConfiguredOnce": "a schedule of the configuration is written when it is missing alone",
}

# Where hardly a seed finds a fault, one that did: it is tried first, so that the search takes minutes.
FOUND_BY = {
    "BesideOldLocks": 246,
    "ClaimAtOnce": 217,
    "CountUnread": 1778,
    "ForgetAnew": 494,
    "ForgetDeletion": 7070,
    "GivenUpLater": 236,
    "LocksOfBefore": 1626,
    "ReadReturned": 655,
    "StartBeyond": 3184,
    "UnlockUnchecked": 628,
}

# (file, text, what stands in its place)
EDITS = [
    (
        "core/scheduler.cpp",
        """op.makes_task = entry.makes_task = true;""",
        """op.makes_task = entry.makes_task = !FAULT(NoteAlone);""",
    ),
    (
        "core/scheduler.cpp",
        """entry.last = std::max(entry.last, op.last);""",
        """if (!FAULT(MakeAlone)) entry.last = std::max(entry.last, op.last);""",
    ),
    (
        "core/scheduler.cpp",
        """  return ceil<seconds>(std::max(""",
        """  if (FAULT(NoGrace)) return seconds{1};
  return ceil<seconds>(std::max(""",
    ),
    (
        "core/scheduler.cpp",
        """  noted = stored == last;
""",
        """  noted = stored == last || FAULT(NoAnchor);
""",
    ),
    (
        "core/scheduler.cpp",
        """  if (same_rule && !stored) {""",
        """  if (same_rule && !stored && !FAULT(CountAnew)) {""",
    ),
    (
        "core/scheduler.cpp",
        """  const std::string& key = entry.known.last_task_key;
  if (key.empty()) return Lives::kNo;""",
        """  const std::string& key = entry.known.last_task_key;
  if (key.empty() || (FAULT(TaskForgotten) && !table_.find(key))) return Lives::kNo;""",
    ),
    (
        "core/scheduler.cpp",
        """  op.last = due.make.front();""",
        """  op.last = FAULT(NewestAlone) ? due.make.back() : due.make.front();""",
    ),
    (
        "core/scheduler.cpp",
        """    last = *stored;
  }""",
        """    last = before == nullptr && FAULT(SkipDue) ? std::max(*stored, last) : *stored;
  }""",
    ),
    (
        "core/scheduler.cpp",
        """  if (is_paused(entry.known) && !is_paused(listed)) entry""",
        """  if (is_paused(entry.known) && !is_paused(listed) && !FAULT(PausedOnTime)) entry""",
    ),
    (
        "core/scheduler.cpp",
        """schedule::due_ticks(definition.schedule, definition.missed, entry.last,""",
        """schedule::due_ticks(
      definition.schedule,
      FAULT(NoMakeup)
          ? schedule::Missed{schedule::Missed::Policy::kAll, 0, std::chrono::hours{24}}
          : definition.missed,
      entry.last,""",
    ),
    (
        "core/scheduler.cpp",
        """return floor<seconds>(clock_.at(now));""",
        """return floor<seconds>(clock_.at(now)) + seconds{FAULT(TicksOfTheFuture) ? 5 : 0};""",
    ),
    (
        "core/scheduler.cpp",
        """  if (!same_rule) op.last =""",
        """  if (!same_rule || FAULT(ConfiguredAnew)) op.last =""",
    ),
    (
        "core/scheduler.cpp",
        """  if (stored == nullptr || stored->configured.empty()) return false;""",
        """  if (stored == nullptr || stored->configured.empty() || FAULT(ConfiguredOnce)) return false;""",
    ),
    (
        "core/tasks/transitions.cpp",
        """      if (index <= entry.index) return;
      if (entry.state == S::kWaiting""",
        """      if (index <= entry.index && !FAULT(NoTombstone)) return;
      if (entry.state == S::kWaiting""",
    ),
    (
        "core/tasks/transitions.cpp",
        """void Transitions::on_gone(Instant now, TaskEntry& entry, std::uint64_t index, Effects& out) {
""",
        """void Transitions::on_gone(Instant now, TaskEntry& entry, std::uint64_t index, Effects& out) {
  if (FAULT(IgnoreWithdrawal) && is_ours(entry.state)) return;
""",
    ),
    (
        "core/tasks/transitions.cpp",
        """  const std::uint64_t index = index_of(record);
  TaskEntry& entry = table_.obtain(key_of(record));
""",
        """  const auto* task = std::get_if<Task>(&record);
  if (FAULT(ForgetOrphan) && task != nullptr && task->stamp.taken) return;
  const std::uint64_t index = index_of(record);
  TaskEntry& entry = table_.obtain(key_of(record));
""",
    ),
    (
        "core/tasks/transitions.cpp",
        """  const bool any_near = near != nullptr && near->due <= wall + distance(1);
""",
        """  const bool any_near =
      near != nullptr && near->due <= wall + distance(1) && !FAULT(ForgetDistant);
""",
    ),
    (
        "core/tasks/transitions_attempt.cpp",
        """    ++stamp.lost;
    const bool ends""",
        """    if (!FAULT(DontCountLosses)) ++stamp.lost;
    const bool ends""",
    ),
    (
        "core/tasks/transitions_attempt.cpp",
        """  const bool once = policy.delivery == Delivery::kAtMostOnce;
""",
        """  const bool once = policy.delivery == Delivery::kAtMostOnce && !FAULT(OnceAgain);
""",
    ),
    (
        "core/tasks/transitions_attempt.cpp",
        """  stamp.claim = Claim{""",
        """  if (FAULT(NoNonce)) nonce = "claimed";
  stamp.claim = Claim{""",
    ),
    (
        "core/tasks/transitions_attempt.cpp",
        """  SharedOptional<Claim> under""",
        """  if (FAULT(StartBeforeClaim)) {
    auto claimed = std::make_shared<Task>(*task);
    claimed->stamp = stamp;
    table_.update(entry, S::kClaimed, [&](TaskEntry& e) { e.task = std::move(claimed); });
  }
  SharedOptional<Claim> under""",
    ),
    (
        "core/tasks/transitions_attempt.cpp",
        """  if (has_begun) stamp.error += kBegunBefore;
  --stamp.attempt;
""",
        """  if (has_begun) stamp.error += kBegunBefore;
  if (!FAULT(CountUnstarted)) --stamp.attempt;
""",
    ),
    (
        "core/tasks/transitions_attempt.cpp",
        """  if (failures >= allowed) {
""",
        """  if (FAULT(LoseRetry)) {
    table_.move(entry, S::kEnding);
    return table_.bury(entry, entry.index, now);
  }
  if (failures >= allowed && !FAULT(RetryForever)) {
""",
    ),
    (
        "core/tasks/transitions_attempt.cpp",
        """  const bool newer = entry.newer_index() > entry.index;
""",
        """  const bool newer = entry.newer_index() > entry.index && !FAULT(NoLookAgain);
""",
    ),
    (
        "core/queue_lead.cpp",
        """      // Somebody else""",
        """      if (FAULT(IgnoreExpiry)) break;
      // Somebody else""",
    ),
    (
        "core/queue_lead.cpp",
        """  if (done || now >= term.give_up) finish_drain(now, partition, out);
""",
        """  if (done || now >= term.give_up || FAULT(ReleaseWithJobs)) {
    finish_drain(now, partition, out);
  }
""",
    ),
    (
        "core/queue_lead.cpp",
        """  const bool keeps = table_.busy_in(partition).running != 0;
""",
        """  const bool keeps = table_.busy_in(partition).running != 0 && !FAULT(ReleaseWithJobs);
""",
    ),
    (
        "core/queue_lead.cpp",
        """  if (jobs_run) {
""",
        """  if (jobs_run && !FAULT(ReleaseWithJobs)) {
""",
    ),
    (
        "core/leadership/lock.cpp",
        """  if (lock_) return;
  if (now < restore_from_) {""",
        """  if (lock_ || FAULT(IgnoreOverwrite)) return;
  if (now < restore_from_) {""",
    ),
    (
        "core/leadership/lock.cpp",
        """  const bool in_order = reply.released && reply.modify_index > held_index_;
""",
        """  const bool in_order =
      (reply.released && reply.modify_index > held_index_) || FAULT(TrustLockDelay);
""",
    ),
    (
        "core/leadership/lock.cpp",
        """  const Instant sent_at = read_sent_;
""",
        """  const Instant sent_at = FAULT(TrustFromReply) ? now : read_sent_;
""",
    ),
    (
        "core/tasks/executor_slots.cpp",
        """  const TypePolicy* policy = options_.policy_of(task.type);
""",
        """  if (FAULT(IgnoreTypeLimit)) return 0;
  const TypePolicy* policy = options_.policy_of(task.type);
""",
    ),
    (
        "core/dispatch/dispatcher.cpp",
        """  if (limited == nullptr) return ready;
""",
        """  if (limited == nullptr || FAULT(NoSlotAgain)) return ready;
""",
    ),
    (
        "core/tasks/executor_slots.cpp",
        """executor->running >= limit;""",
        """executor->running >= limit && !FAULT(StartBeyond);""",
    ),
    (
        "core/tasks/waiting_order.cpp",
        """    case Lack::kSlot:
      return true;""",
        """      return true;
    case Lack::kSlot:
      return !FAULT(LimitedLetsPass);""",
    ),
    (
        "core/queue.cpp",
        """          .paused = control_.paused(),
""",
        """          .paused = control_.paused() && !FAULT(IgnorePause),
""",
    ),
    (
        "core/control.cpp",
        """  ++reading_;
  missing_ = false;""",
        """  ++reading_;
  if (FAULT(ClaimUnread)) read_ = reading_;
  missing_ = false;""",
    ),
    (
        "core/dispatch/dispatcher.cpp",
        """  if (!due) {""",
        """  const std::size_t beyond = FAULT(PrefetchBeyond) ? 1 : 0;
  if (!due) {""",
    ),
    (
        "core/dispatch/dispatcher.cpp",
        """ahead_of_slots(*entry.task);
""",
        """ahead_of_slots(*entry.task) + beyond;
""",
    ),
    (
        "core/queue.cpp",
        """leadership_.trust().holds(now));
""",
        """(leadership_.trust().holds(now) || FAULT(StartUntrusted)));
""",
    ),
    (
        "core/commits/write_batcher_refused.cpp",
        """  requeue(now, take_out(now, batch, fates, errors, result));""",
        """  auto others = take_out(now, batch, fates, errors, result);
  if (!FAULT(LoseRequeued)) requeue(now, std::move(others));""",
    ),
    (
        "core/leadership/leadership.cpp",
        """    case Session::Change::kAlive:
""",
        """    case Session::Change::kAlive:
      if (FAULT(RenewalProves)) {
        Changes changes;
        prove_with(now, now, changes, out);
      }
""",
    ),
    (
        "core/tasks/transitions.cpp",
        """    if (was_due && entry.due""",
        """    if (was_due && !FAULT(DueByWrongClock) && entry.due""",
    ),
    (
        "core/dispatch/dispatcher.cpp",
        """    if (entry->due >= clock_.at(now) + 1s) {""",
        """    if (!FAULT(DueByWrongClock) && entry->due >= clock_.at(now) + 1s) {""",
    ),
    (
        "core/leadership/leadership.cpp",
        """  trust_.clock_stepped(now);""",
        """  if (FAULT(IgnoreClockStep)) return;
  trust_.clock_stepped(now);""",
    ),
    (
        "core/leadership/leadership.cpp",
        """    if (!holds(i)) continue;
    extend(i, out);
""",
        """    if (!holds(i) || (FAULT(ProofOfOne) && i != 0)) continue;
    extend(i, out);
""",
    ),
    (
        "core/commits/write_batcher.cpp",
        """    if (std::ranges::any_of(its, stands_there)) break;
""",
        """    if (std::ranges::any_of(its, stands_there) && !FAULT(TwoOnOneKey)) break;
""",
    ),
    (
        "core/tasks/transitions_attempt.cpp",
        """  if (entry.attempt->policy.delivery != Delivery::kAtMostOnce) {
""",
        """  if (FAULT(CountStopped)) return lose(now, entry, why, out);
  if (entry.attempt->policy.delivery != Delivery::kAtMostOnce) {
""",
    ),
    (
        "core/tasks/owners.cpp",
        """  read_ = reading_;
  given_up_ =""",
        """  read_ = reading_;
  if (FAULT(CountLiving)) return;
  given_up_ =""",
    ),
    (
        "core/queue.cpp",
        """owners_.has_read(term.owners)};""",
        """(owners_.has_read(term.owners) || FAULT(CountUnread))};""",
    ),
    (
        "core/task.cpp",
        """*attempt <= *last_attempt;""",
        """(*attempt <= *last_attempt || FAULT(GivenUpLater));""",
    ),
    (
        "core/dispatch/dispatcher.cpp",
        """  if (options_.concurrency != 1 || !table_.any_returning()) return;
""",
        """  if (options_.concurrency != 1 || !table_.any_returning() || FAULT(OvertakeReturned)) return;
""",
    ),
    (
        "core/dispatch/dispatcher.cpp",
        """    const bool comes_back = ours.attempt->returns &&""",
        """    const bool comes_back = ours.attempt->returns && !FAULT(OvertakeReturned) &&""",
    ),
    (
        "core/queue.cpp",
        """  if (most != 0) options_.max_operations""",
        """  if (most != 0 && !FAULT(NeverLearnt)) options_.max_operations""",
    ),
    (
        "core/task.cpp",
        """  const WallTime time_b = order_time(b);
""",
        """  const WallTime time_b = order_time(b);
  if (FAULT(OrderByKey)) return a.key < b.key;
""",
    ),
    (
        "core/tasks/waiting_order.cpp",
        """  if (lane == lanes_.end()) return nullptr;
  const TaskEntry* holder""",
        """  if (lane == lanes_.end() || FAULT(IgnoreLane)) return nullptr;
  const TaskEntry* holder""",
    ),
    (
        "core/reading/task_source.cpp",
        """  if (checked == checked_.end() && !is_news) return;
""",
        """  if (checked == checked_.end() && !is_news && !FAULT(NoTombstone)) return;
""",
    ),
    (
        "core/task.cpp",
        """task.task_time.value_or(task.first_seen);
""",
        """task.task_time.value_or(FAULT(UntimedFirst) ? WallTime::min() : task.first_seen);
""",
    ),
    (
        "core/task.cpp",
        """  if (!task.execute_at) return task.stamp.retry_at;
""",
        """  if (!task.execute_at || FAULT(IgnoreExecuteAt)) return task.stamp.retry_at;
""",
    ),
    (
        "core/commits/write_batcher.cpp",
        """      result.proof = batch.sent_at;
""",
        """      result.proof = FAULT(TrustFromReply) ? now : batch.sent_at;
      if (FAULT(FinishTwice)) requeue(now, batch.writes);
""",
    ),
    (
        "core/commits/write_batcher.cpp",
        """        doubt(std::move(write));
""",
        """        if (FAULT(UnknownIsRejected) || FAULT(UnknownIsApplied)) {
          const auto verdict =
              FAULT(UnknownIsApplied) ? Verdict::kApplied : Verdict::kVoid;
          result.settled.push_back({std::move(write), verdict, 0, nullptr});
          continue;
        }
        doubt(std::move(write));
""",
    ),
    (
        "wire/consul_requests.cpp",
        """  txn.verb("check-index", key).index(effect.index);
""",
        """  const bool unchecked = FAULT(UnlockUnchecked);
  txn.verb(unchecked ? "get" : "check-index", key).index(effect.index);
""",
    ),
    (
        "wire/consul_requests.cpp",
        """put(binding, "/v1/txn?consistent", std::move(txn).body());
""",
        """put(binding, FAULT(OldTransaction) ? "/v1/txn" : "/v1/txn?consistent",
                              std::move(txn).body());
""",
    ),
    (
        "wire/consul_requests.cpp",
        """lock_key(effect.partition)), effect.consistent,
""",
        """lock_key(effect.partition)), effect.consistent && !FAULT(ProofUnread),
""",
    ),
    (
        "wire/transaction_plan.cpp",
        """kOfTask, "cas", op.key, op.index, op.flags,
""",
        """kOfTask, FAULT(NoCas) ? "set" : "cas", op.key, op.index,
        FAULT(FlagsDropped) ? 0 : op.flags,
""",
    ),
    (
        "wire/transaction_plan.cpp",
        """  if (!op.writes.empty() || op.done) {
    take({Part::kTask, kOfTask, "check-index", op.key, op.index});
  }
""",
        """  const bool checked = (!op.writes.empty() || op.done) && !FAULT(FinishUnchecked);
  const bool late = FAULT(CheckAfterDelete);
  const auto check = [&] { take({Part::kTask, kOfTask, "check-index", op.key, op.index}); };
  if (checked && !late) check();
""",
    ),
    (
        "wire/transaction_plan.cpp",
        """  take({Part::kTask, kOfTask, "delete-cas", op.key, op.index});
}

template <class Take>
void each_step(const Layout& layout, const std::string& node, const core::BuryOp& op, Take&& take) {""",
        """  take({Part::kTask, kOfTask, FAULT(PlainDelete) ? "delete" : "delete-cas", op.key, op.index});
  if (checked && late) check();
}

template <class Take>
void each_step(const Layout& layout, const std::string& node, const core::BuryOp& op, Take&& take) {""",
    ),
    (
        "wire/transaction_plan.cpp",
        """  take({Part::kTask, kOfTask, "check-index", op.key, op.index});
  take({Part::kDeadLetter,""",
        """  if (!FAULT(BuryUnchecked)) {
    take({Part::kTask, kOfTask, "check-index", op.key, op.index});
  }
  take({Part::kDeadLetter,""",
    ),
    (
        "wire/transaction_plan.cpp",
        """    txn.verb("check-session", layout.lock_key({commit.partition_count, partition}))
        .session(commit.session);
""",
        """    txn.verb(FAULT(DropFence) ? "get" : "check-session",
             layout.lock_key({commit.partition_count, partition}))
        .session(commit.session);
""",
    ),
    (
        "wire/transaction_plan.cpp",
        """  take({Part::kTask, "the schedule", "cas",""",
        """  take({Part::kTask, "the schedule", FAULT(TickUnchecked) ? "set" : "cas",""",
    ),
    (
        "wire/transaction_plan.cpp",
        """  std::size_t at = fences;
""",
        """  std::size_t at = FAULT(WrongOperation) ? fences - 1 : fences;
""",
    ),
    (
        "wire/kv_reply.cpp",
        """      if (name == "ModifyIndex") entry.modify_index = number;
""",
        """      if (name == "ModifyIndex" && !FAULT(CreateForModify)) entry.modify_index = number;
      if (name == "CreateIndex" && FAULT(CreateForModify)) entry.modify_index = number;
""",
    ),
    (
        "wire/kv_reply.cpp",
        """      if (name == "Session") entry.session = text;
""",
        """      if (name == "Session" && !FAULT(HolderUnread)) entry.session = text;
""",
    ),
    (
        "wire/consul_replies.cpp",
        """  return refused ? Outcome::kRejected : Outcome::kUnknown;
""",
        """  return refused || FAULT(ErrorRefused) ? Outcome::kRejected : Outcome::kUnknown;
""",
    ),
    (
        "wire/consul_replies.cpp",
        """  if (!reply) {
    event.outcome = failed_write(response);
""",
        """  if (!reply) {
    const bool answered = replied(response, 200) || replied(response, 409);
    event.outcome =
        FAULT(CutRefused) && answered ? Outcome::kRejected : failed_write(response);
""",
    ),
    (
        "wire/consul_replies.cpp",
        """  if (response.status == 200) {
    event.outcome = Outcome::kApplied;
    event.modify_index = reply->""",
        """  if (response.status == 200 || FAULT(ConflictApplied)) {
    event.outcome = Outcome::kApplied;
    event.modify_index = reply->""",
    ),
    (
        "wire/txn.cpp",
        """Txn& Txn::value(std::string_view value) {
""",
        """Txn& Txn::value(std::string_view value) {
  if (FAULT(ValueAsText)) {
    text_ += R"(,"Value":)";
    append_quoted(text_, value);
    return *this;
  }
""",
    ),
    (
        "core/tasks/task_table.cpp",
        """deletions_.emplace_back(now, &entry);""",
        """if (FAULT(ForgetDeletion)) {
    deletions_.emplace_front(Instant::min(), &entry);
  } else {
    deletions_.emplace_back(now, &entry);
  }""",
    ),
    (
        "core/tasks/task_table.cpp",
        """if (--entry.tombstones == 0 && entry.state == TaskState::kDeleted) erase(entry);""",
        """if (--entry.tombstones == 0 && (entry.state == TaskState::kDeleted || FAULT(ForgetAnew))) {
      erase(entry);
    }""",
    ),
    (
        "core/tasks/task_table.cpp",
        """if (TaskEntry* next = waiting_.unblocked(lane)) wait(*next, Lack::kNothing);""",
        """if (FAULT(NobodyFollows)) return;
  if (TaskEntry* next = waiting_.unblocked(lane)) wait(*next, Lack::kNothing);""",
    ),
    (
        "core/commits/write_batcher.cpp",
        """  commit.partitions.erase(doubles, commit.partitions.end());
""",
        """  commit.partitions.erase(doubles, commit.partitions.end());
  if (FAULT(FenceOfOne)) commit.partitions = {commit.partitions.back()};
""",
    ),
    (
        "wire/transaction_plan.cpp",
        """  if (commit.count_index != 0) {
""",
        """  if (commit.count_index != 0 && !FAULT(AnyCount)) {
""",
    ),
    (
        "wire/transaction_plan.cpp",
        """  const std::size_t fences = locks + (commit.count_index != 0 ? 1 : 0);
""",
        """  const bool has_count = commit.count_index != 0 && !FAULT(AnyCount);
  const std::size_t fences = locks + (has_count ? 1 : 0);
""",
    ),
    (
        "wire/consul_requests.cpp",
        """  if (effect.count_index != 0) {
""",
        """  if (effect.count_index != 0 && !FAULT(AnyCount)) {
""",
    ),
    (
        "wire/fleet.cpp",
        """entry.flags != mapping_flags(layout);""",
        """entry.flags != mapping_flags(layout) && !FAULT(MapUnread);""",
    ),
    (
        "core/leadership/division.cpp",
        """    if (lock.count == except && lock.modify_index >= count_index) continue;
""",
        """    if (FAULT(BesideOldLocks)) continue;
    if (lock.count == except && lock.modify_index >= count_index) continue;
""",
    ),
    (
        "core/tasks/transitions.cpp",
        """    if (entry.state == S::kForeign && entry.partition == partition) read_again(entry);
""",
        """    if (FAULT(ForgetForeign)) return;
    if (entry.state == S::kForeign && entry.partition == partition) read_again(entry);
""",
    ),
    (
        "core/tasks/transitions.cpp",
        """    out.emplace_back(StopJob{entry.attempt->id, options_.kill_grace});
    table_.move(entry, S::kLeftover);
""",
        """    if (!FAULT(KeepLostJobs)) {
      out.emplace_back(StopJob{entry.attempt->id, options_.kill_grace});
    }
    table_.move(entry, S::kLeftover);
""",
    ),
    (
        "core/commits/write_batcher.cpp",
        """    if (!unchanged) expect""",
        """    const bool is_task = std::holds_alternative<Task>(*stored);
    if (!unchanged || (is_task && FAULT(ReadReturned))) expect""",
    ),
    (
        "core/tasks/transitions_attempt.cpp",
        """  const std::shared_ptr<const Task>& rewritten = settled.write.rewritten;
""",
        """  if (FAULT(ReadReturned) && settled.write.rewritten) {
    table_.bury(entry, 0, now);
    return source_->fetch(entry.key);
  }
  const std::shared_ptr<const Task> rewritten =
      FAULT(LoseBeside) ? nullptr : settled.write.rewritten;
""",
    ),
    (
        "core/tasks/transitions.cpp",
        """  return has_order && !is_distant""",
        """  return has_order && !FAULT(ClaimAtOnce) && !is_distant""",
    ),
    (
        "core/reading/task_source.cpp",
        """  for (const std::string& key : reply.changed) {
""",
        """  if (FAULT(IgnoreRewritten)) return;
  for (const std::string& key : reply.changed) {
""",
    ),
    (
        "core/leadership/lock.cpp",
        """if (ours && reply.modify_index >= held_index_ && state_ != State::kWaiting) {""",
        """if (ours && (FAULT(LocksOfBefore) ||
               (reply.modify_index >= held_index_ && state_ != State::kWaiting))) {""",
    ),
    (
        "core/reading/reading_pace.h",
        """std::min(transfer, kMostTransfer)""",
        """(FAULT(LinkIsFree) ? Duration{} : std::min(transfer, kMostTransfer))""",
    ),
    (
        "core/reading/reading_pace.h",
        """    paid_ = std::max(paid_, now) + kPrice * cost;
""",
        """    if (!FAULT(ListAtOnce)) paid_ = std::max(paid_, now) + kPrice * cost;
""",
    ),
    (
        "core/dispatch/rate_limit.cpp",
        """  if (is_new && reply.full_at) full_at_""",
        """  if (is_new && reply.full_at && !FAULT(ForgetBucket)) full_at_""",
    ),
    (
        "core/dispatch/rate_limit.cpp",
        """    --reserved_;
""",
        """    if (!FAULT(TokensForNothing)) --reserved_;
""",
    ),
    (
        "wire/transaction_plan.cpp",
        """take({Part::kRate, "the bucket of rate_limit", "cas",""",
        """take({Part::kRate, "the bucket of rate_limit", FAULT(BucketUnchecked) ? "set" : "cas",""",
    ),
    (
        "wire/transaction_plan.cpp",
        """base64_size(value);""",
        """(FAULT(CountsText) ? value : base64_size(value));""",
    ),
    (
        "core/reading/batch_size.h",
        """keys_ = std::max<std::size_t>(1, std::min(keys_, keys) / 2); }""",
        """keys_ = std::max<std::size_t>(FAULT(NeverSmaller) ? keys_ : 1, std::min(keys_, keys) / 2); }""",
    ),
]


HEADER = """#pragma once

// Made by tests/sim/faults.py.

#define LICTOR_FAULTS_OF_QUEUE(X) \\
{queue}
#define LICTOR_FAULTS_OF_TICKS(X) \\
{ticks}

namespace lictor::core {{
enum class Fault {{
  kNone,
#define X(name, what, found_by) k##name,
  LICTOR_FAULTS_OF_QUEUE(X) LICTOR_FAULTS_OF_TICKS(X)
#undef X
}};
inline Fault active_fault = Fault::kNone;
}}  // namespace lictor::core

#define FAULT(name) (::lictor::core::active_fault == ::lictor::core::Fault::k##name)
"""


def write(path, text):
    """Only if it differs, so that nothing is compiled again for nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def main():
    files = sorted({edit[0] for edit in EDITS})
    if sys.argv[1:] == ["--list"]:
        print(";".join(files), end="")
        return
    source, folder = (pathlib.Path(argument) for argument in sys.argv[1:])
    for file in files:
        text = (source / file).read_text()
        for _, find, place in (edit for edit in EDITS if edit[0] == file):
            if text.count(find) != 1:
                sys.exit(f"faults.py: src/{file} has {text.count(find)} times, expected once:\n{find}")
            text = text.replace(find, place)
        write(folder / file, '#include "fault_list.h"\n' + text)
    lines = [
        " \\\n".join(f'  X({name}, "{what}", {FOUND_BY.get(name, 1)})' for name, what in faults.items())
        + "\n"
        for faults in (QUEUE, TICKS)
    ]
    header = HEADER.format(queue=lines[0], ticks=lines[1])
    write(folder / "fault_list.h", header)


main()
