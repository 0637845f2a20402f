#include "core/tasks/transitions.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <variant>

#include "core/commits/write.h"

namespace lictor::core {
namespace {

using S = TaskState;

// Whether the job has ended, and it is being read whether the task was written again.
bool is_withdrawn(const TaskEntry& entry) {
  return entry.state == S::kEnding && entry.attempt->stop == StopReason::kWithdrawn;
}

// The most reported types without an executor; beyond it, some are reported twice.
constexpr std::size_t kMostTypesReported = 1000;

}  // namespace

Transitions::Transitions(const QueueOptions& options, const Leadership& leadership,
                         TaskTable& table, const Owners& owners, WriteBatcher& commits,
                         const WallClock& clock, Random& random)
    : options_(options),
      leadership_(leadership),
      table_(table),
      owners_(owners),
      commits_(commits),
      clock_(clock),
      random_(random),
      last_attempt_(options.first_attempt - 1) {}

void Transitions::add(Instant now, const TaskEntry& entry, Write write) {
  write.partition = entry.partition;
  commits_.add(now, std::move(write));
}

void Transitions::emit(Fact::Kind kind, const TaskEntry& entry, std::string text, Effects& out,
                       Duration took) {
  const std::uint32_t attempt = entry.task ? entry.task->stamp.attempt : 0;
  const std::uint64_t token = entry.attempt ? entry.attempt->token : 0;
  out.emplace_back(Fact{kind, entry.key, std::move(text), took, entry.task, attempt, token});
}

// ---- What the store says ----

void Transitions::on_record(Instant now, const StoredRecord& record, bool in_generation,
                            Effects& out) {
  const std::uint64_t index = index_of(record);
  TaskEntry& entry = table_.obtain(key_of(record));
  if (is_withdrawn(entry)) {
    if (in_generation) return entry.remember_newer(index);  // read again once its place is known
    table_.bury(entry, entry.index, now);
    return place(now, entry, record, out);
  }
  switch (entry.state) {
    case S::kClaiming:
    case S::kRunning:
    case S::kEnding:
    case S::kBurying:
    case S::kLeftover:
      // Our own write is under way. When it settles, this newer version is read.
      return entry.remember_newer(index);
    case S::kChecking:
      if (index == entry.index) return table_.move(entry, S::kClaimed);
      [[fallthrough]];
    case S::kClaimed:  // rewritten before it started: claim the new version
      // An older version that was read after the claim: Consul was restored from a snapshot.
      if (index <= entry.index && entry.state == S::kClaimed) return;
      emit(Fact::Kind::kChanged, entry, "after it was claimed", out);
      entry.remember_not_started(entry.task->stamp.claim->nonce);
      return place(now, entry, record, out);
    default:
      if (index <= entry.index) return;
      if (entry.state == S::kWaiting && entry.index != 0) {
        emit(Fact::Kind::kChanged, entry, {}, out);
      }
      if (entry.state != S::kDeleted && is_another(entry, record)) {
        table_.bury(entry, entry.index, now);
      }
      return place(now, entry, record, out,
                   in_generation && (entry.state == S::kUnread || entry.state == S::kDeleted));
  }
}

void Transitions::on_generation_read(Instant now, Effects& out) {
  while (TaskEntry* entry = table_.waiting_order().first_held()) {
    place(now, *entry, entry->task, out);
  }
  if (!table_.any_returning()) return;
  table_.for_each_ours([&](const TaskEntry& entry) {
    if (!is_withdrawn(entry) || entry.newer_index() == 0) return;
    if (!source_->will_read(entry.key)) source_->check(entry.key);
  });
}

bool Transitions::is_stable(const TaskEntry& entry) const {
  switch (entry.state) {
    case S::kForeign:
    case S::kDistant:
    case S::kWaiting:
    case S::kClaimed:
      return true;
    case S::kIgnored:
      return entry.lack != Lack::kName;
    case S::kRunning:
      return entry.attempt->stop == StopReason::kNone;
    default:
      return false;
  }
}

void Transitions::on_restored(const std::string& key) {
  TaskEntry& entry = table_.obtain(key);
  const bool is_idle = entry.state == S::kWaiting || entry.state == S::kDistant ||
                       entry.state == S::kForeign || entry.state == S::kIgnored;
  if (is_idle) table_.adjust(entry, [](TaskEntry& e) { e.index = 0; });
}

void Transitions::on_gone(Instant now, TaskEntry& entry, std::uint64_t index, Effects& out) {
  switch (entry.state) {
    case S::kClaiming:
    case S::kEnding:
    case S::kBurying:
      return entry.remember_newer(index);
    case S::kRunning:
      if (entry.attempt->stop != StopReason::kWithdrawn) {
        stop(now, entry, StopReason::kWithdrawn, out);
      }
      return;
    case S::kDeleted:
    case S::kLeftover:
      return;
    case S::kIgnored:
    case S::kUnreadable:
    case S::kUnread:
    case S::kForeign:
      return table_.bury(entry, index, now);
    default:
      return withdraw(now, entry, index, out);
  }
}

bool Transitions::on_missing(Instant now, const std::string& key, std::uint64_t index,
                             Effects& out) {
  TaskEntry* entry = table_.find(key);
  if (entry == nullptr) {
    if (is_unnameable(key)) ignore(table_.obtain(key), Lack::kName, index, {}, out);
    return false;
  }
  // This read came after our claim was applied.
  if (entry->state == S::kChecking) withdraw(now, *entry, entry->index, out);
  if (is_withdrawn(*entry)) table_.bury(*entry, entry->index, now);
  // The names decide about all other missing keys. This one has no version that the names could
  // prove gone, and the read may be older than they are: if they show it again, it is read again.
  const bool is_unread = entry->state == S::kUnread && !entry->task;
  if (is_unread) table_.bury(*entry, 0, now);
  return is_unread;
}

void Transitions::withdraw(Instant now, TaskEntry& entry, std::uint64_t index, Effects& out) {
  emit(Fact::Kind::kWithdrawn, entry, {}, out);
  table_.bury(entry, index, now);
}

bool Transitions::is_deleting(const TaskEntry& entry) const {
  return entry.state == S::kEnding || entry.state == S::kDeleted;
}

bool Transitions::is_another(const TaskEntry& entry, const StoredRecord& record) {
  const auto* task = std::get_if<Task>(&record);
  return task != nullptr && entry.index != 0 && task->create_index > entry.index;
}

// An unreadable record has neither serialKey nor id, so its key decides.
std::uint32_t Transitions::partition_of(const StoredRecord& record) const {
  if (const auto* task = std::get_if<Task>(&record)) {
    return core::partition_of(task->serial_key, task->id, options_.partitions);
  }
  return core::partition_of(std::get<BadRecord>(record).key, options_.partitions);
}

// The order of these tasks follows from the whole generation: an earlier task may be among the
// unread rest. Of distant tasks only the time is kept, so they do not wait.
bool Transitions::is_held(Instant now, const Task& task) const {
  const bool has_order = options_.concurrency == 1 || !task.serial_key.empty();
  return has_order && !is_distant(now, task, due_at(now, task));
}

void Transitions::place(Instant now, TaskEntry& entry, const StoredRecord& record, Effects& out,
                        bool in_generation) {
  const std::uint32_t partition = partition_of(record);
  if (!leadership_.holds(partition)) return make_foreign(entry, partition, index_of(record));
  if (entry.partition != partition) {
    table_.adjust(entry, [&](TaskEntry& e) { e.partition = static_cast<std::uint8_t>(partition); });
  }
  if (const auto* task = std::get_if<Task>(&record)) {
    auto read = std::make_shared<Task>(*task);
    read->ready_at = ready_at(now, *read);
    read->first_seen = clock_.at(first_seen_.of(read->create_index, now));
    if (!in_generation || !is_held(now, *read)) return place(now, entry, std::move(read), out);
    table_.update(entry, S::kUnread, [&](TaskEntry& e) {
      e.index = read->modify_index;
      e.task = std::move(read);
    });
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

// Places a task for which no write or job of ours is under way.
void Transitions::place(Instant now, TaskEntry& entry, std::shared_ptr<const Task> task,
                        Effects& out) {
  // If such a task were claimed, its end would not fit into one fenced transaction.
  if (const std::string why = commits_.too_large(*task); !why.empty()) {
    return ignore(entry, Lack::kRoom, task->modify_index, why, out);
  }
  const bool startable = options_.policy_of(task->type) != nullptr;
  if (!startable) emit_no_executor(*task, out);
  const WallTime due = due_at(now, *task);
  const bool distant = startable && is_distant(now, *task, due);
  Lack lack = Lack::kNothing;
  if (!startable) {
    lack = Lack::kExecutor;
  } else if (due > clock_.at(now)) {
    const bool tomorrow = task->execute_at && *task->execute_at >= due;
    lack = tomorrow || !task->stamp.retry_at ? Lack::kTime : Lack::kBackoff;
  }
  const bool same = task->modify_index == entry.index;
  table_.update(entry, distant ? S::kDistant : S::kWaiting, [&](TaskEntry& e) {
    e.lack = lack;
    e.index = task->modify_index;
    e.due = due;
    e.task = distant ? nullptr : std::move(task);
    if (!e.notes) return;
    // An earlier claim of ours can only land on the version that it was made for.
    const bool not_started =
        e.task && e.task->stamp.claim && e.notes->not_started.contains(e.task->stamp.claim->nonce);
    if (!same && !not_started) e.notes.reset();
  });
}

void Transitions::place_bad(TaskEntry& entry, const BadRecord& record, Effects& out) {
  if (const std::string why = commits_.too_large(record); !why.empty()) {
    return ignore(entry, Lack::kRoom, record.modify_index, why, out);
  }
  table_.update(entry, S::kUnreadable, [&](TaskEntry& e) {
    e.index = record.modify_index;
    e.task.reset();
    e.notes.reset();
    e.note().bad = std::make_shared<const BadRecord>(record);
  });
}

void Transitions::ignore(TaskEntry& entry, Lack lack, std::uint64_t index, const std::string& why,
                         Effects& out) {
  table_.update(entry, S::kIgnored, [&](TaskEntry& e) {
    e.lack = lack;
    e.index = index;
    e.task.reset();
    e.notes.reset();
    if (!why.empty()) e.note().text = why;
  });
  const auto kind = lack == Lack::kRoom ? Fact::Kind::kTooLarge : Fact::Kind::kUnnameable;
  emit(kind, entry, why, out);
}

// Producers choose the type names, so neither their number nor their length is bounded: only hashes
// are kept, and a type may be reported twice.
void Transitions::emit_no_executor(const Task& task, Effects& out) {
  const std::size_t hash = std::hash<std::string>{}(task.type);
  if (no_executor_reported_.contains(hash)) return;
  if (no_executor_reported_.size() >= kMostTypesReported) no_executor_reported_.clear();
  no_executor_reported_.insert(hash);
  out.emplace_back(Fact{Fact::Kind::kNoExecutor, task.key, task.type});
}

// lictor never sets a retry this far ahead: the clock was wrong then and has been corrected. So the
// task is due.
WallTime Transitions::due_at(Instant now, const Task& task) const {
  const WallTime due = due_of(task).value_or(WallTime::min());
  if (!task.stamp.retry_at) return due;
  const TypePolicy* policy = options_.policy_of(task.type);
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
  if (due <= clock_.at(now) + distance(2)) return false;
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
    table_.wait(*entry, Lack::kNothing);
  }
  // Read many in one request.
  const TaskEntry* near = waiting.first_distant();
  const bool any_near = near != nullptr && near->due <= wall + distance(1);
  while (TaskEntry* entry = any_near ? waiting.first_distant() : nullptr) {
    if (entry->due > wall + distance(2)) break;
    read_again(*entry);
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

void Transitions::bury_some(Instant now, const std::function<bool(std::uint32_t)>& may_write) {
  const std::size_t most = options_.max_operations / 3;  // each dead letter takes three
  const auto may_bury = [&] { return table_.count(S::kBurying) < most; };
  const auto bury = [&](TaskEntry& entry, BuryOp op) {
    table_.update(entry, S::kBurying, [](TaskEntry& e) { e.notes.reset(); });
    add(now, entry, {Purpose::kBury, std::move(op), {}});
  };
  while (may_bury()) {
    TaskEntry* entry = table_.waiting_order().first_expiring();
    if (entry == nullptr || *entry->task->expire_at > clock_.at(now)) break;
    if (!may_write(entry->partition)) break;
    bury(*entry, dead_letter(*entry->task, "expired", kExpired, clock_.at(now)));
  }
  while (may_bury()) {
    TaskEntry* entry = table_.waiting_order().first_unreadable();
    if (entry == nullptr || !may_write(entry->partition)) break;
    bury(*entry, dead_letter(*entry->notes->bad, clock_.at(now)));
  }
}

void Transitions::on_clock_set(Instant now, Effects& out) {
  constexpr std::chrono::seconds kStep{1};  // a smaller adjustment changes no place
  table_.for_each([&](TaskEntry& entry) {
    if (entry.state == S::kWaiting && !entry.task->task_time && !entry.task->execute_at) {
      const WallTime seen = clock_.at(first_seen_.of(entry.task->create_index, now));
      if (std::chrono::abs(seen - entry.task->first_seen) >= kStep) {
        auto task = std::make_shared<Task>(*entry.task);
        task->first_seen = seen;
        table_.adjust(entry, [&](TaskEntry& e) { e.task = std::move(task); });
      }
    }
    const bool was_due =
        entry.lacks(Lack::kNothing) || entry.lacks(Lack::kSerialKey) || entry.lacks(Lack::kSlot);
    if (was_due && entry.due >= clock_.at(now) + kStep) {
      return place(now, entry, entry.task, out);  // the clock was ahead
    }
    if (!entry.lacks(Lack::kBackoff) && !entry.lacks(Lack::kStore)) return;
    table_.adjust(entry, [&](TaskEntry& e) {
      const WallTime due = due_at(now, *e.task);
      const WallTime again = std::min(e.due, clock_.at(now + kRefusedPause));
      e.due = e.lack == Lack::kStore ? std::max(due, again) : due;
    });
  });
}

// ---- The configuration and the term ----

void Transitions::on_reconfigured(Instant now, Effects& out) {
  no_executor_reported_.clear();
  table_.for_each([&](TaskEntry& entry) {
    if (entry.state != S::kWaiting) return;
    const bool startable = options_.policy_of(entry.task->type) != nullptr;
    if (startable != (entry.lack == Lack::kExecutor)) return;
    place(now, entry, entry.task, out);
  });
}

void Transitions::read_again(TaskEntry& entry) {
  table_.update(entry, S::kUnread, [](TaskEntry& e) { e.index = 0; });
  source_->fetch(entry.key);
}

void Transitions::doubt_distant() {
  table_.for_each([&](TaskEntry& entry) {
    if (entry.state == S::kDistant) read_again(entry);
  });
}

void Transitions::begin_term(std::uint32_t partition) {
  table_.for_each([&](TaskEntry& entry) {
    if (entry.state == S::kForeign && entry.partition == partition) read_again(entry);
  });
}

void Transitions::end_term(std::uint32_t partition, bool is_last, Effects& out) {
  table_.for_each_ours([&](TaskEntry& entry) {
    if (entry.partition != partition) return;
    const bool runs = entry.state == S::kRunning;
    if (!runs && entry.state != S::kEnding) return;
    if (entry.attempt->stop != StopReason::kWithdrawn) {  // otherwise nothing must be written
      emit(Fact::Kind::kUnwritten, entry, {}, out);
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
    const bool is_unread = entry.state == S::kUnread && entry.task == nullptr;
    const bool stays = entry.partition != partition || is_unread || entry.state == S::kForeign ||
                       entry.state == S::kDeleted || entry.state == S::kLeftover;
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
