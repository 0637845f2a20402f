// Why a task is not running: what each state waits for, by the dispatcher's own functions.

#include <utility>

#include "core/dispatch/dispatcher.h"

namespace lictor::core {

using Kind = Reason::Kind;
using S = TaskState;

void Dispatcher::why(Instant now, const TaskEntry& entry, const Mode& mode,
                     const std::string& paused_by, std::vector<Reason>& reasons) const {
  static constexpr const char* kStops[] = {"", "it was withdrawn", "it timed out",
                                           "the leader gives up leadership", "the lease ran out"};
  switch (entry.state) {
    case S::kUnread:
      return reasons.push_back({Kind::kReading});
    case S::kForeign:
      return reasons.push_back({Kind::kNotLeading});
    case S::kDistant:
      why_queue(mode, paused_by, reasons);
      return reasons.push_back({.kind = Kind::kNotDue, .until = entry.due});
    case S::kWaiting:
      why_queue(mode, paused_by, reasons);
      return why_waiting(now, entry, reasons);
    case S::kIgnored:
      if (entry.lack == Lack::kName) return reasons.push_back({Kind::kUnnameable});
      return reasons.push_back({.kind = Kind::kTooLarge, .text = entry.notes->text});
    case S::kUnreadable:
    case S::kBurying:
      why_refused(entry, reasons);
      return reasons.push_back({Kind::kBurying});
    case S::kClaiming:
    case S::kChecking:
      reasons.push_back({Kind::kClaiming});
      return why_trouble(now, reasons);
    case S::kClaimed:
      if (mode.draining) reasons.push_back({Kind::kDraining});
      if (mode.paused) reasons.push_back({.kind = Kind::kPaused, .text = paused_by});
      if (ClaimedOrder::is_early(entry)) {
        reasons.push_back({.kind = Kind::kPrefetched, .until = entry.attempt->early_until});
      } else {
        reasons.push_back(
            {.kind = Kind::kPrefetched, .key = any_running(), .count = options_.concurrency});
      }
      return why_trouble(now, reasons);
    case S::kRunning:
    case S::kLeftover:
      return reasons.push_back({.kind = Kind::kRunning,
                                .text = kStops[static_cast<std::size_t>(entry.attempt->stop)],
                                .count = entry.task->stamp.attempt,
                                .since = clock_.at(entry.attempt->started_at),
                                .attempt = entry.attempt->id});
    case S::kEnding:
      // Its key may have been written again.
      if (entry.attempt->stop == StopReason::kWithdrawn) return reasons.push_back({Kind::kReading});
      why_refused(entry, reasons);
      reasons.push_back({Kind::kSettling});
      return why_trouble(now, reasons);
    case S::kDeleted:
      return reasons.push_back({Kind::kUnknownTask});
  }
}

// Whether Consul refuses the task's end or dead letter.
void Dispatcher::why_refused(const TaskEntry& entry, std::vector<Reason>& reasons) const {
  const auto refusal = commits_.refusal(entry.key);
  if (!refusal) return;
  reasons.push_back(
      {.kind = Kind::kRefused, .text = refusal->first, .until = clock_.at(refusal->second)});
}

// The reasons that keep every waiting task from being claimed.
void Dispatcher::why_queue(const Mode& mode, const std::string& paused_by,
                           std::vector<Reason>& reasons) const {
  if (mode.draining) reasons.push_back({Kind::kDraining});
  if (mode.paused) reasons.push_back({.kind = Kind::kPaused, .text = paused_by});
  if (!mode.ready) reasons.push_back({Kind::kReading});
}

void Dispatcher::why_waiting(Instant now, const TaskEntry& entry,
                             std::vector<Reason>& reasons) const {
  switch (entry.lack) {
    case Lack::kTime:
    case Lack::kBackoff:
    case Lack::kStore:
      return why_due_later(entry, reasons);
    case Lack::kExecutor:
      reasons.push_back({.kind = Kind::kNoExecutor, .text = entry.task->type});
      if (entry.due > clock_.at(now)) why_due_later(entry, reasons);
      return;
    default:
      return why_not_next(now, entry, reasons);
  }
}

void Dispatcher::why_due_later(const TaskEntry& entry, std::vector<Reason>& reasons) const {
  const Task& task = *entry.task;
  if (entry.lack == Lack::kStore) {
    reasons.push_back({.kind = Kind::kRefused, .text = entry.notes->text, .until = entry.due});
  } else if (entry.lack == Lack::kBackoff) {
    reasons.push_back({.kind = Kind::kBackoff,
                       .text = task.stamp.error,
                       .count = task.stamp.attempt,
                       .until = entry.due});
  } else {
    reasons.push_back({.kind = Kind::kNotDue, .until = entry.due});
  }
  if (const TaskEntry* holder = table_.waiting_order().lane_holder(entry)) {
    std::string first;
    const std::size_t count = table_.waiting_order().count_before(entry, first);
    reasons.push_back({Kind::kSerial, holder->key, task.serial_key, count, {}, {}});
  }
}

// The reasons of a task that is due.
void Dispatcher::why_not_next(Instant now, const TaskEntry& entry,
                              std::vector<Reason>& reasons) const {
  const Task& task = *entry.task;
  if (const auto* pause = pause_of(task)) {
    reasons.push_back(
        {.kind = Kind::kCannotStart, .text = pause->error, .until = clock_.at(pause->until)});
  } else if (const TaskEntry* probe = waits_for_probe(task)) {
    const auto* trouble = breaker_.find(options_.executor_of(probe->task->type));
    reasons.push_back({.kind = Kind::kCannotStart, .key = probe->key, .text = trouble->error});
  }
  std::string first;
  const ExecutorSlots& slots = table_.executor_slots();
  const TaskEntry* const holder = table_.waiting_order().lane_holder(entry);
  const bool is_limited = holder == nullptr && slots.is_full(task);
  const std::size_t count = entry.lack == Lack::kSlot
                                ? slots.count_before(entry, first)
                                : table_.waiting_order().count_before(entry, first);
  if (is_limited) {
    const std::string executor{options_.executor_of(task.type)};
    reasons.push_back({.kind = Kind::kTypeSlots,
                       .key = any_running(executor),
                       .text = executor,
                       .count = slots.limit_of(task)});
  }
  if (holder != nullptr) {
    reasons.push_back({Kind::kSerial, holder->key, task.serial_key, count, {}, {}});
  } else if (count != 0) {
    reasons.push_back({.kind = Kind::kOrder, .key = first, .count = count});
  }
  why_no_room(now, task, reasons);
  why_trouble(now, reasons);
  if (reasons.empty()) reasons.push_back({Kind::kNext});
}

// The limits that may_claim() checks.
void Dispatcher::why_no_room(Instant now, const Task& task, std::vector<Reason>& reasons) const {
  const std::size_t busy = table_.busy() - table_.claimed_order().early_count();
  const std::size_t room = options_.concurrency + ahead_of_slots(task);
  if (now < kept_apart_until(task)) {
    reasons.push_back({.kind = Kind::kLastChance, .key = any_running()});
  } else if (busy >= room) {
    reasons.push_back(
        {.kind = Kind::kConcurrency, .key = any_running(), .count = options_.concurrency});
  }
  if (table_.count(S::kEnding) >= options_.max_unacked) {
    reasons.push_back({.kind = Kind::kUnacked, .count = options_.max_unacked});
  }
  if (const auto until = rate_.used_up_until(now)) {
    reasons.push_back({.kind = Kind::kRate, .until = clock_.at(*until)});
  }
}

void Dispatcher::why_trouble(Instant now, std::vector<Reason>& reasons) const {
  if (const auto until = commits_.retry_after()) {
    reasons.push_back({.kind = Kind::kStoreTrouble, .until = clock_.at(std::max(*until, now))});
  }
}

// The key of a running task, of any executor or of the given one.
std::string Dispatcher::any_running(std::string_view executor) const {
  std::string key;
  table_.for_each_ours([&](const TaskEntry& entry) {
    const bool runs = entry.state == S::kRunning;
    const bool counts = executor.empty() || options_.executor_of(entry.task->type) == executor;
    if (key.empty() && runs && counts) key = entry.key;
  });
  return key;
}

}  // namespace lictor::core
