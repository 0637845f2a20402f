#include "core/transitions.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

#include "base/assert.h"
#include "core/write.h"

namespace lictor::core {
namespace {

using S = TaskState;
using Verdict = Commits::Verdict;

// After kill_grace ends, a killed job's exit is reported within this time.
constexpr Duration kEndsWithin = 1s;
// Types without an executor that are reported; beyond it, some are reported twice.
constexpr std::size_t kMostTypesTold = 1000;
// Claims that may land yet although they were given up: a write that is so late is not.
constexpr std::size_t kMostNotStarted = 100;
constexpr const char* kExpired = "expireAt passed before it was started";

std::uint64_t index_of(const StoredRecord& record) {
  return std::visit([](const auto& r) { return r.modify_index; }, record);
}

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

// In Consul's JSON every byte of a key that is not UTF-8 reads U+FFFD, which names another key.
bool is_unnameable(std::string_view key) {
  return key.find("\xef\xbf\xbd") != std::string_view::npos;
}

void remember_not_started(TaskEntry& entry, const std::string& nonce) {
  auto& nonces = entry.note().not_started;
  if (nonces.size() >= kMostNotStarted) nonces.clear();
  nonces.insert(nonce);
}

}  // namespace

Transitions::Transitions(const QueueOptions& options, const Leadership& leadership,
                         TaskTable& table, Commits& commits, const WallClock& clock, Random& random)
    : options_(options),
      leadership_(leadership),
      table_(table),
      commits_(commits),
      clock_(clock),
      random_(random),
      last_attempt_(options.first_attempt - 1) {}

const TypePolicy* Transitions::policy_of(const Task& task) const {
  if (const auto it = options_.types.find(task.type); it != options_.types.end()) {
    return &it->second;
  }
  return options_.any_type ? &*options_.any_type : nullptr;
}

void Transitions::add(Instant now, const TaskEntry& entry, Write write) {
  write.partition = entry.partition;
  commits_.add(now, std::move(write));
}

void Transitions::tell(Fact::Kind kind, const TaskEntry& entry, std::string text, Effects& out,
                       Duration took) {
  const std::uint32_t attempt = entry.task ? entry.task->stamp.attempt : 0;
  const std::uint64_t token = entry.attempt ? entry.attempt->token : 0;
  out.emplace_back(Fact{kind, entry.key, attempt, token, std::move(text), took, entry.task});
}

// ---- What the store says ----

void Transitions::on_record(Instant now, const StoredRecord& record, Effects& out) {
  const auto& key = std::visit([](const auto& r) -> const std::string& { return r.key; }, record);
  const std::uint64_t index = index_of(record);
  TaskEntry& entry = table_.obtain(key);
  switch (entry.state) {
    case S::kClaiming:
    case S::kRunning:
    case S::kStopping:
    case S::kEnding:
    case S::kBurying:
    case S::kLeftover:
      // Our own write is under way. When it settles, this newer version is read.
      entry.note().newer_index = std::max(entry.newer_index(), index);
      return;
    case S::kChecking:
      if (index == entry.index) return table_.move(entry, S::kClaimed);
      [[fallthrough]];
    case S::kClaimed:  // rewritten: what was never started is claimed anew, as it is now
      if (index <= entry.index) return;
      tell(Fact::Kind::kChanged, entry, "after it was claimed", out);
      remember_not_started(entry, entry.task->stamp.claim->nonce);
      return place(now, entry, record, out);
    default:
      if (index <= entry.index) return;
      if (is_waiting(entry.state) && entry.index != 0) {
        tell(Fact::Kind::kChanged, entry, {}, out);
      }
      return place(now, entry, record, out);
  }
}

void Transitions::on_gone(Instant now, KnownKey& known, std::uint64_t index, Effects& out) {
  auto& entry = static_cast<TaskEntry&>(known);
  switch (entry.state) {
    case S::kClaiming:
    case S::kEnding:
    case S::kBurying:
      entry.note().newer_index = std::max(entry.newer_index(), index);
      return;
    case S::kRunning:
    case S::kStopping:
      if (entry.attempt->stop != StopReason::kWithdrawn) {
        stop(now, entry, StopReason::kWithdrawn, out);
      }
      return;
    case S::kDeleted:
    case S::kLeftover:
      return;
    case S::kTooLarge:
    case S::kUnnameable:
    case S::kUnreadable:
    case S::kUnread:
    case S::kForeign:
      return table_.bury(entry, index, now);
    default:
      return withdraw(now, entry, index, {}, out);
  }
}

void Transitions::on_missing(Instant now, const std::string& key, std::uint64_t index,
                             Effects& out) {
  TaskEntry* entry = table_.find(key);
  if (entry == nullptr) {
    if (is_unnameable(key)) ignore(table_.obtain(key), S::kUnnameable, index, {}, out);
    return;
  }
  // This read came after our claim was applied. The next listing reports all other missing keys.
  if (entry->state == S::kChecking) withdraw(now, *entry, entry->index, {}, out);
}

void Transitions::withdraw(Instant now, TaskEntry& entry, std::uint64_t index, Duration ran,
                           Effects& out) {
  tell(Fact::Kind::kWithdrawn, entry, {}, out, ran);
  table_.bury(entry, index, now);
}

void Transitions::visit_deleting(const std::function<void(const KnownKey&)>& visit) const {
  table_.for_each_ours([&](const TaskEntry& entry) {
    if (entry.state == S::kEnding) visit(entry);
  });
  table_.for_each_deleted(visit);
}

// A record that tells no serialKey and no id belongs where its key does.
std::uint32_t Transitions::partition_of(const StoredRecord& record) const {
  if (const auto* task = std::get_if<Task>(&record)) {
    return core::partition_of(task->serial_key, task->id, options_.partitions);
  }
  return core::partition_of(std::get<BadRecord>(record).key, options_.partitions);
}

void Transitions::place(Instant now, TaskEntry& entry, const StoredRecord& record, Effects& out) {
  const std::uint32_t partition = partition_of(record);
  const bool is_ours = leadership_.lease(partition).holding();
  if (!is_ours) return make_foreign(entry, partition, index_of(record));
  entry.partition = static_cast<std::uint8_t>(partition);
  if (const auto* task = std::get_if<Task>(&record)) {
    auto read = std::make_shared<Task>(*task);
    read->ready_at = ready_at(now, *read);
    read->first_seen = clock_.at(first_seen_.of(read->create_index, now));
    place(now, entry, std::move(read), out);
  } else {
    place_bad(entry, std::get<BadRecord>(record), out);
  }
}

void Transitions::make_foreign(TaskEntry& entry, std::uint32_t partition, std::uint64_t index) {
  table_.update(entry, S::kForeign, [&](TaskEntry& e) {
    e.index = index;
    e.partition = static_cast<std::uint8_t>(partition);
    e.task.reset();
    e.notes.reset();
  });
}

// A task that nothing of ours is under way for: where it waits.
void Transitions::place(Instant now, TaskEntry& entry, std::shared_ptr<const Task> task,
                        Effects& out) {
  // Claimed, it could not be ended in one fenced transaction.
  if (const std::string why = commits_.too_large(*task); !why.empty()) {
    return ignore(entry, S::kTooLarge, task->modify_index, why, out);
  }
  const bool startable = policy_of(*task) != nullptr;
  if (!startable) tell_no_executor(*task, out);
  const WallTime due = due_at(now, *task);
  S state = S::kReady;
  if (!startable) {
    state = S::kNoExecutor;
  } else if (is_distant(now, *task, due)) {
    state = S::kDistant;
  } else if (due > clock_.at(now)) {
    const bool tomorrow = task->execute_at && *task->execute_at >= due;
    state = tomorrow || !task->stamp.retry_at ? S::kScheduled : S::kRetrying;
  }
  const bool same = task->modify_index == entry.index;
  table_.update(entry, state, [&](TaskEntry& e) {
    e.index = task->modify_index;
    e.due = due;
    e.task = state == S::kDistant ? nullptr : std::move(task);
    if (!e.notes) return;
    // An earlier claim of ours can land on the version that it was made for alone.
    e.notes->text.clear();
    e.notes->bad.reset();
    const bool not_started =
        e.task && e.task->stamp.claim && e.notes->not_started.contains(e.task->stamp.claim->nonce);
    if (!same && !not_started) e.notes.reset();
  });
}

void Transitions::place_bad(TaskEntry& entry, const BadRecord& record, Effects& out) {
  if (const std::string why = commits_.too_large(record); !why.empty()) {
    return ignore(entry, S::kTooLarge, record.modify_index, why, out);
  }
  table_.update(entry, S::kUnreadable, [&](TaskEntry& e) {
    e.index = record.modify_index;
    e.task.reset();
    e.notes.reset();
    e.note().bad = std::make_shared<const BadRecord>(record);
  });
}

void Transitions::ignore(TaskEntry& entry, TaskState state, std::uint64_t index,
                         const std::string& why, Effects& out) {
  table_.update(entry, state, [&](TaskEntry& e) {
    e.index = index;
    e.task.reset();
    e.notes.reset();
    if (!why.empty()) e.note().text = why;
  });
  const auto kind = state == S::kTooLarge ? Fact::Kind::kTooLarge : Fact::Kind::kUnnameable;
  tell(kind, entry, why, out);
}

// Producers choose the type names, so their number has no bound: rather tell one twice than keep
// all of them.
void Transitions::tell_no_executor(const Task& task, Effects& out) {
  if (told_no_executor_.contains(task.type)) return;
  if (told_no_executor_.size() >= kMostTypesTold) told_no_executor_.clear();
  told_no_executor_.insert(task.type);
  out.emplace_back(Fact{Fact::Kind::kNoExecutor, task.key, 0, 0, task.type, {}});
}

// lictor never sets a retry this far ahead: a wrong clock did, and was corrected since. The task is
// due.
WallTime Transitions::due_at(Instant now, const Task& task) const {
  const WallTime due = due_of(task).value_or(WallTime::min());
  if (!task.stamp.retry_at || *task.stamp.retry_at < due) return due;
  const TypePolicy* policy = policy_of(task);
  Duration most = kLongestRetryAfter;
  if (task.backoff) most = std::max(most, task.backoff->max);
  if (policy != nullptr) most = std::max(most, policy->backoff.max);
  const WallTime limit = clock_.at(now) + std::chrono::ceil<std::chrono::milliseconds>(most);
  return *task.stamp.retry_at <= limit ? due : task.execute_at.value_or(WallTime::min());
}

Instant Transitions::ready_at(Instant now, const Task& task) const {
  return std::max(now, clock_.when(due_at(now, task)));
}

// Dropping the record saves a kilobyte for each of a hundred thousand tasks for tomorrow.
bool Transitions::is_distant(Instant now, const Task& task, WallTime due) const {
  if (!source_->by_name() || due <= clock_.at(now) + distance(2)) return false;
  const bool expires_first = task.expire_at && *task.expire_at < due;
  return !expires_first && task.stamp == Stamp{};
}

std::chrono::milliseconds Transitions::distance(int times) const {
  return std::chrono::ceil<std::chrono::milliseconds>(options_.preload + times * options_.distance);
}

// ---- Time ----

void Transitions::advance(Instant now) {
  const WallTime wall = clock_.at(now);
  const WaitingOrder& waiting = table_.waiting_order();
  while (TaskEntry* entry = waiting.first_delayed()) {
    if (entry->due > wall) break;
    table_.move(*entry, S::kReady);
  }
  // Read many in one request.
  const TaskEntry* near = waiting.first_distant();
  const bool any_near = near != nullptr && near->due <= wall + distance(1);
  while (TaskEntry* entry = any_near ? waiting.first_distant() : nullptr) {
    if (entry->due > wall + distance(2)) break;
    table_.update(*entry, S::kUnread, [](TaskEntry& e) { e.index = 0; });
    source_->fetch(entry->key);
  }
  table_.advance_claimed(wall);
}

Instant Transitions::next_deadline() const {
  Instant next = table_.claimed_order().next_timeout();
  const auto at = [&](WallTime wall) { next = std::min(next, clock_.when(wall)); };
  if (const auto* entry = table_.waiting_order().first_delayed()) at(entry->due);
  if (const auto* entry = table_.waiting_order().first_distant()) at(entry->due - distance(1));
  if (const auto due = table_.claimed_order().next_due()) at(*due);
  return next;
}

void Transitions::bury_some(Instant now, const std::function<bool(std::uint32_t)>& may_write,
                            Effects& out) {
  const std::size_t most = options_.max_operations / 3;  // of which each dead letter takes three
  const auto may_bury = [&] { return table_.count(S::kBurying) < most; };
  const auto bury = [&](TaskEntry& entry, BuryOp op) {
    table_.update(entry, S::kBurying, [](TaskEntry& e) {
      e.task.reset();
      e.notes.reset();
    });
    add(now, entry, {Purpose::kBury, std::move(op), {}});
  };
  while (may_bury()) {
    TaskEntry* entry = table_.waiting_order().first_expiring();
    if (entry == nullptr || *entry->task->expire_at > clock_.at(now)) break;
    if (!may_write(entry->partition)) break;
    tell(Fact::Kind::kDead, *entry, "expired", out);
    bury(*entry, dead_letter(*entry->task, "expired", kExpired, clock_.at(now)));
  }
  while (may_bury()) {
    TaskEntry* entry = table_.waiting_order().first_unreadable();
    if (entry == nullptr || !may_write(entry->partition)) break;
    bury(*entry, dead_letter(*entry->notes->bad, clock_.at(now)));
  }
}

void Transitions::on_clock_set(Instant now) {
  constexpr std::chrono::seconds kStep{1};  // what it was slewed by changes no place
  table_.for_each([&](TaskEntry& entry) {
    if (is_waiting(entry.state) && !entry.task->task_time && !entry.task->execute_at) {
      const WallTime seen = clock_.at(first_seen_.of(entry.task->create_index, now));
      if (std::chrono::abs(seen - entry.task->first_seen) >= kStep) {
        auto task = std::make_shared<Task>(*entry.task);
        task->first_seen = seen;
        table_.adjust(entry, [&](TaskEntry& e) { e.task = std::move(task); });
      }
    }
    if (entry.state != S::kRetrying && entry.state != S::kRefused) return;
    table_.adjust(entry, [&](TaskEntry& e) {
      const WallTime due = due_at(now, *e.task);
      const WallTime again = std::min(e.due, clock_.at(now + kRefusedPause));
      e.due = e.state == S::kRefused ? std::max(due, again) : due;
    });
  });
}

// ---- The claim ----

void Transitions::claim(Instant now, TaskEntry& entry, bool due, const std::string& session,
                        Effects& out) {
  const std::shared_ptr<const Task> task = entry.task;
  const TypePolicy& policy = *policy_of(*task);
  // The task is claimed, and not by us. We lead, so its owner is lost.
  const bool orphan = task->stamp.taken;
  const bool not_started = orphan && entry.notes && task->stamp.claim &&
                           entry.notes->not_started.contains(task->stamp.claim->nonce);
  Stamp stamp = task->stamp;
  bool last_chance = false;
  if (orphan && !not_started) {
    ++stamp.lost;
    tell(Fact::Kind::kLost, entry, stamp.claim ? stamp.claim->node : std::string{}, out);
    const bool once = policy.delivery == Delivery::kAtMostOnce;
    const bool ends = once || stamp.lost >= options_.max_losses;
    last_chance = stamp.lost + 1 >= options_.max_losses;
    if (ends) {
      auto lost = std::make_shared<Task>(*task);
      lost->stamp = stamp;
      table_.update(entry, S::kEnding, [&](TaskEntry& e) {
        e.task = std::move(lost);
        e.attempt = std::make_unique<Attempt>();
        e.attempt->id = AttemptId{++last_attempt_};
        e.attempt->policy = policy;
      });
      return make_dead(now, entry, "owner lost",
                       "the daemon that ran it died or lost its lease, " +
                           std::to_string(stamp.lost) + (stamp.lost == 1 ? " time" : " times"),
                       {}, out);
    }
  }
  stamp.taken = true;
  if (!not_started) ++stamp.attempt;  // else its claim has counted it
  // A task claimed ahead keeps taskRetryAt, in case another leader takes it over before that time.
  if (due) stamp.retry_at.reset();
  std::string nonce = options_.identity + "-" + std::to_string(++last_claim_);
  stamp.claim = Claim{options_.node, session, std::move(nonce), clock_.at(now)};
  table_.update(entry, S::kClaiming, [&](TaskEntry& e) {
    e.attempt = std::make_unique<Attempt>();
    e.attempt->id = AttemptId{++last_attempt_};
    e.attempt->policy = policy;
    e.attempt->last_chance = last_chance;
    e.attempt->claimed_at = e.attempt->held_since = now;
    if (!due) e.attempt->early_until = e.due;
  });
  SharedOptional<Claim> under = stamp.claim;
  add(now, entry, rewrite_of(Purpose::kClaim, *task, std::move(stamp), std::move(under)));
}

void Transitions::on_settled(Instant now, const Commits::Settled& settled, Effects& out) {
  TaskEntry* entry = table_.find(key_of(*settled.write.op));
  if (entry == nullptr) return;
  switch (entry->state) {
    case S::kClaiming:
      return on_claim_settled(now, *entry, settled, out);
    case S::kEnding:
      return on_end_settled(now, *entry, settled, out);
    case S::kBurying:
      return on_burial_settled(now, *entry, settled, out);
    default:  // of a claim that was settled already
      return;
  }
}

void Transitions::on_claim_settled(Instant now, TaskEntry& entry, const Commits::Settled& settled,
                                   Effects& out) {
  if (settled.verdict == Verdict::kRefused) {
    // This claim may have been sent before, and that one may still land.
    remember_not_started(entry, settled.write.claim->nonce);
    if (policy_of(*entry.task) == nullptr) return place(now, entry, entry.task, out);
    table_.update(entry, S::kRefused, [&](TaskEntry& e) {
      e.due = std::max(clock_.at(now + kRefusedPause), e.due);
      e.notes->text = settled.error;
    });
    return;
  }
  if (settled.verdict == Verdict::kVoid) {
    remember_not_started(entry, settled.write.claim->nonce);
    return on_void(now, entry, settled, out);
  }
  const Task& before = settled.stored ? std::get<Task>(*settled.stored) : *entry.task;
  auto claimed = std::make_shared<Task>(before);
  claimed->stamp = std::get<RestampOp>(*settled.write.op).stamp;
  claimed->modify_index = settled.modify_index;
  claimed->ready_at = entry.task->ready_at;
  claimed->first_seen = entry.task->first_seen;
  // A newer version was seen before the claim's answer came: read it before the job starts.
  const bool check = entry.newer_index() > settled.modify_index;
  table_.update(entry, check ? S::kChecking : S::kClaimed, [&](TaskEntry& e) {
    e.index = settled.modify_index;
    e.task = std::move(claimed);
    e.attempt->token = settled.modify_index;
    e.attempt->held_since = now;
  });
  tell(Fact::Kind::kClaimed, entry, {}, out, now - entry.attempt->claimed_at);
  if (check) source_->check(entry.key);
}

// The store does not hold what the write expected: the task was withdrawn, or rewritten by its
// producer. What the store holds counts.
void Transitions::on_void(Instant now, TaskEntry& entry, const Commits::Settled& settled,
                          Effects& out) {
  const bool claiming = entry.state == S::kClaiming;
  const bool ended = entry.state == S::kEnding;
  if (!settled.stored && !ended && is_unnameable(entry.key)) {
    return ignore(entry, S::kUnnameable, entry.index, {}, out);
  }
  if (claiming) {
    tell(settled.stored ? Fact::Kind::kChanged : Fact::Kind::kWithdrawn, entry,
         "before it was claimed", out);
  } else if (settled.write.purpose == Purpose::kFinish && settled.stored) {
    tell(Fact::Kind::kResultVoid, entry, {}, out);
  }
  if (settled.stored) return place(now, entry, *settled.stored, out);
  table_.bury(entry, entry.index, now);
  source_->fetch(entry.key);  // versions that were written meanwhile were ignored until now
}

// ---- The job ----

void Transitions::start(Instant now, TaskEntry& entry, Effects& out) {
  const TypePolicy& policy = entry.attempt->policy;
  Duration timeout = entry.task->timeout.value_or(policy.timeout);
  if (policy.timeout_limit > Duration::zero() &&
      (timeout == Duration::zero() || timeout > policy.timeout_limit)) {
    timeout = policy.timeout_limit;
  }
  std::optional<Instant> deadline;
  if (timeout > Duration::zero()) deadline = now + timeout;
  table_.update(entry, S::kRunning, [&](TaskEntry& e) {
    e.attempt->early_until.reset();
    e.attempt->started_at = now;
    e.attempt->timeout_at = deadline.value_or(Instant::max());
  });
  tell(Fact::Kind::kStarted, entry, entry.task->type, out, now - entry.attempt->claimed_at);
  auto& started = std::get<Fact>(out.back());
  started.waited = std::max(Duration::zero(), now - entry.task->ready_at);
  if (const auto due = due_of(*entry.task)) started.late = clock_.at(now) - *due;
  out.emplace_back(
      StartJob{entry.attempt->id, entry.task, entry.attempt->token, deadline, entry.partition});
}

void Transitions::stop(Instant now, TaskEntry& entry, StopReason why, Effects& out) {
  const auto change = [&](TaskEntry& e) {
    // The first reason counts. A withdrawal overrides it: then nothing must be written.
    if (e.attempt->stop == StopReason::kNone || why == StopReason::kWithdrawn) {
      e.attempt->stop = why;
    }
    e.attempt->timeout_at = now + options_.kill_grace + kEndsWithin;
  };
  if (entry.state == S::kRunning) {
    table_.update(entry, S::kStopping, change);
  } else {
    table_.adjust(entry, change);
  }
  out.emplace_back(StopJob{entry.attempt->id, options_.kill_grace});
}

void Transitions::on_overdue(Instant now, TaskEntry& entry, Effects& out) {
  table_.adjust(entry, [](TaskEntry& e) { e.attempt->timeout_at = Instant::max(); });
  tell(Fact::Kind::kGoesOn, entry, text_of(entry.attempt->stop), out,
       now - entry.attempt->started_at);
}

void Transitions::on_exit(Instant now, TaskEntry& entry, const JobExited& exit, Effects& out) {
  const StopReason stopped = entry.attempt->stop;
  if (stopped == StopReason::kWithdrawn) {
    withdraw(now, entry, entry.index, now - entry.attempt->started_at, out);
    source_->fetch(entry.key);  // it may have been written anew while the job was being stopped
    return;
  }
  if (exit.ending == JobEnding::kDone) return finish(now, entry, exit, out);
  if (stopped == StopReason::kTimeout) {
    return fail(now, entry, "timed out; " + exit.error, exit.output_tail, {}, out);
  }
  if (stopped == StopReason::kDrain) return interrupt(now, entry, out);
  // kStopped: by its guard; the lease ran out there before it did here.
  if (stopped == StopReason::kLease || exit.ending == JobEnding::kStopped) {
    return lose(now, entry, out);
  }
  if (exit.ending == JobEnding::kPermanent) {
    return make_dead(now, entry, "permanent", exit.error, exit.output_tail, out);
  }
  fail(now, entry, exit.error, exit.output_tail, exit.retry_after, out);
}

// Nothing ran, so the task goes back even if it may run at most once. It keeps its place in order.
void Transitions::on_not_started(Instant now, TaskEntry& entry, const std::string& error,
                                 std::optional<Duration> pause, Effects& out) {
  if (entry.attempt->stop == StopReason::kWithdrawn) return on_exit(now, entry, {}, out);
  tell(pause ? Fact::Kind::kNotStarted : Fact::Kind::kGivenBack, entry, error, out,
       pause.value_or(Duration::zero()));
  Stamp stamp = entry.task->stamp;
  stamp.error = std::string{kNotStartedError} + error;
  --stamp.attempt;
  rewrite(now, entry, Purpose::kGiveBack, std::move(stamp));
}

void Transitions::finish(Instant now, TaskEntry& entry, const JobExited& exit, Effects& out) {
  const Task& task = *entry.task;
  FinishOp op{task.key, task.modify_index, exit.writes, nullptr};
  if (!exit.writes.empty() && !commits_.fits(op)) {
    return fail(now, entry,
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
    done.started = clock_.at(entry.attempt->started_at);
    done.at = clock_.at(now);
    // If not everything fits, the record goes first, then the result, then the entry itself.
    const auto fits = [&] {
      op.done = std::make_shared<const DoneRecord>(done);
      return commits_.fits(op);
    };
    if (!fits()) {
      done.record = nullptr;
      if (!fits()) {
        done.result.clear();
        done.result_left_out = true;
        tell(Fact::Kind::kResultLeftOut, entry, {}, out);
        if (!fits()) op.done = nullptr;
      }
    }
  }
  const Duration ran = now - entry.attempt->started_at;
  if (entry.attempt->stop == StopReason::kTimeout) {
    tell(Fact::Kind::kDoneLate, entry, task.type, out, ran);
  }
  tell(Fact::Kind::kDone, entry, task.type, out, ran);
  add(now, entry, {Purpose::kFinish, std::move(op), task.stamp.claim});
  table_.move(entry, S::kEnding);
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
    return make_dead(now, entry, "failed", error, tail, out);
  }
  Stamp stamp = task.stamp;
  stamp.error = error;
  Instant again = backoff_end(now, entry, failures);
  if (retry_after) again = std::max(again, now + std::min(*retry_after, kLongestRetryAfter));
  stamp.retry_at = clock_.at(again);
  tell(Fact::Kind::kFailed, entry, error, out, again - now);
  rewrite(now, entry, Purpose::kRetry, std::move(stamp));
}

Instant Transitions::backoff_end(Instant now, const TaskEntry& entry, std::uint32_t failures) {
  const Backoff& backoff =
      entry.task->backoff ? *entry.task->backoff : entry.attempt->policy.backoff;
  const double grown = static_cast<double>(backoff.initial.count()) *
                       std::pow(backoff.factor, static_cast<double>(failures - 1));
  // Not a number where the initial 0 meets an infinite factor.
  const auto most = static_cast<double>(backoff.max.count());
  const double capped = grown < most ? grown : most;
  const double jittered = capped * (1.0 - backoff.jitter * random_.fraction());
  return now + Duration{static_cast<Duration::rep>(jittered)};
}

void Transitions::give_back(Instant now, TaskEntry& entry, Effects& out) {
  tell(Fact::Kind::kGivenBack, entry, {}, out);
  Stamp stamp = entry.task->stamp;
  --stamp.attempt;
  rewrite(now, entry, Purpose::kGiveBack, std::move(stamp));
}

// drain_timeout is over. That is not the task's fault, so the attempt is not counted.
void Transitions::interrupt(Instant now, TaskEntry& entry, Effects& out) {
  if (entry.attempt->policy.delivery == Delivery::kAtMostOnce) {
    return make_dead(now, entry, "stopped", "it was stopped while it ran, and may run at most once",
                     {}, out);
  }
  give_back(now, entry, out);
}

// The lease ran out while it ran: it counts as a lost owner.
void Transitions::lose(Instant now, TaskEntry& entry, Effects& out) {
  Stamp stamp = entry.task->stamp;
  ++stamp.lost;
  if (entry.attempt->policy.delivery == Delivery::kAtMostOnce ||
      stamp.lost >= options_.max_losses) {
    auto task = std::make_shared<Task>(*entry.task);
    task->stamp = stamp;
    table_.adjust(entry, [&](TaskEntry& e) { e.task = std::move(task); });
    return make_dead(now, entry, "owner lost", "the lease ran out while it was running", {}, out);
  }
  tell(Fact::Kind::kGivenBack, entry, "the lease ran out; it counts as lost", out);
  rewrite(now, entry, Purpose::kGiveBack, std::move(stamp));
}

void Transitions::make_dead(Instant now, TaskEntry& entry, std::string reason, std::string error,
                            std::string tail, Effects& out) {
  const Task& task = *entry.task;
  tell(Fact::Kind::kDead, entry, reason + ": " + error, out);
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
  table_.move(entry, S::kEnding);
}

// ---- The end ----

void Transitions::on_end_settled(Instant now, TaskEntry& entry, const Commits::Settled& settled,
                                 Effects& out) {
  const Purpose purpose = settled.write.purpose;
  switch (settled.verdict) {
    case Verdict::kRefused:
      // A cas of the job's writes failed, or the token may not make them. Nothing was written.
      return fail(now, entry, "its writes were refused: " + settled.error, {}, {}, out);
    case Verdict::kVoid:
      return on_void(now, entry, settled, out);
    case Verdict::kApplied:
      break;
  }
  const bool newer = entry.newer_index() > entry.index;
  if (purpose == Purpose::kRetry || purpose == Purpose::kGiveBack) {
    on_rewrite_applied(now, entry, settled, out);
  } else {
    // Another client may have written beside our claim: then that version was deleted.
    table_.bury(entry, expected_index(*settled.write.op), now);
  }
  if (newer) source_->fetch(entry.key);
}

void Transitions::on_rewrite_applied(Instant now, TaskEntry& entry, const Commits::Settled& settled,
                                     Effects& out) {
  const auto& op = std::get<RestampOp>(*settled.write.op);
  if (op.record != entry.task->record) {  // somebody wrote beside our claim: read what it is now
    table_.update(entry, S::kUnread, [](TaskEntry& e) {
      e.index = 0;
      e.task.reset();
    });
    return source_->fetch(entry.key);
  }
  auto task = std::make_shared<Task>(*entry.task);
  task->stamp = op.stamp;
  task->modify_index = settled.modify_index;
  task->ready_at = ready_at(now, *task);
  place(now, entry, std::move(task), out);
}

void Transitions::on_burial_settled(Instant now, TaskEntry& entry, const Commits::Settled& settled,
                                    Effects& out) {
  const auto& op = std::get<BuryOp>(*settled.write.op);
  if (settled.verdict != Verdict::kApplied) return on_void(now, entry, settled, out);
  if (!op.readable) tell(Fact::Kind::kDead, entry, op.reason + ": " + op.error, out);
  const bool newer = entry.newer_index() > op.index;
  table_.bury(entry, op.index, now);
  if (newer) source_->fetch(entry.key);
}

// ---- The configuration and the term ----

bool Transitions::is_expired(Instant now, const Task& task) const {
  return task.expire_at && *task.expire_at <= clock_.at(now) && task.stamp.attempt == 1 &&
         task.stamp.lost == 0;
}

void Transitions::expire_claimed(Instant now, TaskEntry& entry, Effects& out) {
  auto task = std::make_shared<Task>(*entry.task);
  task->stamp.attempt = 0;
  table_.adjust(entry, [&](TaskEntry& e) { e.task = std::move(task); });
  make_dead(now, entry, "expired", kExpired, {}, out);
}

void Transitions::on_reconfigured(Instant now, Effects& out) {
  told_no_executor_.clear();
  table_.for_each([&](TaskEntry& entry) {
    if (!is_waiting(entry.state)) return;
    const bool startable = policy_of(*entry.task) != nullptr;
    if (startable != (entry.state == S::kNoExecutor)) return;
    place(now, entry, entry.task, out);
  });
}

bool Transitions::doubt_distant() {
  const bool any = table_.count(S::kDistant) != 0;
  table_.for_each([&](TaskEntry& entry) {
    if (entry.state != S::kDistant) return;
    table_.update(entry, S::kUnread, [](TaskEntry& e) { e.index = 0; });
  });
  return any;
}

void Transitions::begin_term(std::uint32_t partition) {
  table_.for_each([&](TaskEntry& entry) {
    if (entry.state != S::kForeign || entry.partition != partition) return;
    table_.update(entry, S::kUnread, [](TaskEntry& e) { e.index = 0; });
  });
}

void Transitions::end_term(std::uint32_t partition, bool is_last, Effects& out) {
  table_.for_each_ours([&](TaskEntry& entry) {
    if (entry.partition != partition) return;
    const bool runs = entry.state == S::kRunning || entry.state == S::kStopping;
    if (!runs && entry.state != S::kEnding) return;
    if (entry.attempt->stop != StopReason::kWithdrawn) {  // then there is nothing to be written
      tell(Fact::Kind::kUnwritten, entry, {}, out);
    }
    if (!runs || entry.attempt->policy.on_lease_lost == OnLeaseLost::kFinish) return;
    out.emplace_back(StopJob{entry.attempt->id, options_.kill_grace});
    table_.move(entry, S::kLeftover);
  });
  if (is_last) {
    table_.clear();
    first_seen_.clear();
    return;
  }
  table_.for_each([&](TaskEntry& entry) {
    const bool stays = entry.partition != partition || entry.state == S::kUnread ||
                       entry.state == S::kForeign || entry.state == S::kDeleted ||
                       entry.state == S::kLeftover;
    if (!stays) make_foreign(entry, partition, entry.index);
  });
}

void Transitions::forget_leftover(TaskEntry& entry, bool any_held) {
  if (!any_held) return table_.erase_leftover(entry);
  table_.update(entry, S::kUnread, [](TaskEntry& e) {
    e.index = 0;
    e.task.reset();
    e.notes.reset();
  });
  source_->fetch(entry.key);
}

}  // namespace lictor::core
