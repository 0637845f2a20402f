#include "core/dispatch/dispatcher.h"

#include <algorithm>
#include <utility>

namespace lictor::core {
namespace {

using S = TaskState;

// A burst: this many become due at once. While it starts, ends wait up to 100 ms: otherwise the
// last of 5,000 starts after 79 to 131 ms and not 25 to 71 (bench due, two cores).
constexpr std::size_t kManyDue = 64;
constexpr Duration kBurst = 100ms;

// A job that kills its host does so within seconds: a panic, a reboot, memory that is eaten up. A
// longer trial would hold up a queue of long jobs for hours after a daemon was killed twice.
constexpr Duration kTrial = 10s;

// A job that cannot be started usually ends within this. A job that still runs then has started.
constexpr Duration kProbe = 2s;

}  // namespace

Dispatcher::Dispatcher(const QueueOptions& options, TaskTable& table, Transitions& transitions,
                       WriteBatcher& commits, const WallClock& clock, Requests& requests,
                       Random& random)
    : options_(options),
      table_(table),
      transitions_(transitions),
      commits_(commits),
      clock_(clock),
      adaptive_(options),
      rate_(options, requests, clock, random) {}

void Dispatcher::clear(Effects& out) {
  breaker_.clear();
  rate_.clear(out);
  rate_at_ = ahead_at_ = apart_at_ = probe_at_ = Instant::max();
}

// Whether one more lost owner ends the task, which may have killed its owners and other tasks.
bool Dispatcher::is_last_chance(const Task& task) const {
  const std::uint32_t losses = task.stamp.lost + (task.stamp.taken ? 1 : 0);
  return losses != 0 && losses + 1 >= options_.max_losses;
}

// When every job, or every job on its last chance, has run for kTrial. Instant::max(): some such
// job is not started yet.
Instant Dispatcher::trials_end(bool last_chances_alone) const {
  Instant end = Instant::min();
  table_.for_each_ours([&](const TaskEntry& entry) {
    if (entry.state == S::kEnding || (last_chances_alone && !entry.attempt->last_chance)) return;
    end = std::max(end, has_job(entry.state) ? entry.attempt->started_at + kTrial : Instant::max());
  });
  return end;
}

// A task on its last chance starts only when every running job is known to spare its host. No task
// starts beside it before it is known to do so, too.
Instant Dispatcher::kept_apart_until(const Task& task) const {
  const bool is_last = is_last_chance(task);
  return is_last || table_.any_last_chance() ? trials_end(!is_last) : Instant::min();
}

// With concurrency 1, tasks run strictly in order: no later task of another serialKey overtakes a
// task that only waits for the end of the task before it, or that is given back.
bool Dispatcher::would_overtake(const TaskEntry& entry) const {
  if (options_.concurrency != 1) return false;
  const bool any_blocked = table_.waiting_order().any_blocked();
  if (!any_blocked && !table_.any_returning()) return false;
  bool found = false;
  table_.for_each_ours([&](const TaskEntry& ours) {
    const bool comes_back = ours.attempt->returns && ByStart{}(&ours, &entry);
    found = found || comes_back ||
            (any_blocked && table_.waiting_order().blocked_before(ours.task->serial_key, entry));
  });
  return found;
}

const ExecutorBreaker::Pause* Dispatcher::pause_of(const Task& task) const {
  const auto* pause = breaker_.find(options_.executor_of(task.type));
  return pause != nullptr && pause->active ? pause : nullptr;
}

// The task that shows whether jobs of an executor can be started again after its pause. Null: there
// is none yet, or none is needed any more.
const TaskEntry* Dispatcher::probe_of(std::string_view executor,
                                      const ExecutorBreaker::Pause& pause) const {
  const TaskEntry* probe = nullptr;
  if (pause.active || pause.passed) return probe;
  table_.for_each_ours([&](const TaskEntry& ours) {
    if (ours.state == S::kEnding || options_.executor_of(ours.task->type) != executor) return;
    if (!has_job(ours.state) || ours.attempt->started_at >= pause.until) probe = &ours;
  });
  return probe;
}

// The probe that a task waits for. With concurrency 1 the probe may be of another executor.
const TaskEntry* Dispatcher::waits_for_probe(const Task& task) const {
  if (breaker_.empty()) return nullptr;
  const bool any = options_.concurrency == 1;
  for (const auto& [executor, pause] : breaker_.all()) {
    if (!any && executor != options_.executor_of(task.type)) continue;
    if (const TaskEntry* probe = probe_of(executor, pause)) return probe;
  }
  return nullptr;
}

std::string Dispatcher::cannot_start() const {
  if (const auto* pause = breaker_.first()) return pause->error;
  for (const auto& [executor, pause] : breaker_.all()) {
    if (probe_of(executor, pause) != nullptr) return pause.error;
  }
  return {};
}

// Early claims take no slot. Due tasks are claimed beside them, and share the prefetch with them.
bool Dispatcher::may_claim(Instant now, const TaskEntry& entry, bool due) const {
  const std::size_t early = table_.claimed_order().early_count();
  const std::size_t busy = table_.busy() + table_.count(S::kLeftover);
  if (now < kept_apart_until(*entry.task)) return false;
  if (table_.count(S::kEnding) >= options_.max_unacked) return false;
  if (!due) {
    return early < options_.prefetch && busy < options_.concurrency + options_.prefetch;
  }
  return busy - early < options_.concurrency + ahead_of_slots(*entry.task);
}

// How many tasks could be claimed now, one after the other.
std::size_t Dispatcher::most_claims() const {
  const std::size_t busy = table_.busy() + table_.count(S::kLeftover);
  const std::size_t slots = options_.concurrency + options_.prefetch;
  return std::max<std::size_t>(
      std::min(slots - std::min(busy, slots), table_.count(Lack::kNothing)), 1);
}

// When the daemon dies, a task claimed ahead of a free slot counts a lost owner though it never
// started. So a task that one more lost owner would end is never claimed ahead.
bool Dispatcher::ends_if_lost(const Task& task) const {
  const TypePolicy* policy = options_.policy_of(task.type);
  return task.stamp.lost + 1 >= options_.max_losses ||
         (policy != nullptr && policy->delivery == Delivery::kAtMostOnce);
}

std::size_t Dispatcher::ahead_of_slots(const Task& task) const {
  if (task.stamp.taken || ends_if_lost(task)) return 0;
  const std::size_t early = table_.claimed_order().early_count();
  if (options_.prefetch > 0) return options_.prefetch < early ? 0 : options_.prefetch - early;
  // Adaptive prefetch is our own idea: never use it where starts are counted.
  if (options_.rate_limit) return 0;
  return adaptive_.size();
}

// When tasks claimed by adaptive prefetch are given back, since no slot has come free.
Instant Dispatcher::held_too_long_at() const {
  if (!adaptive_.enabled()) return Instant::max();
  const TaskEntry* first = table_.claimed_order().first_claimed();
  return first == nullptr ? Instant::max() : first->attempt->held_since + adaptive_.patience();
}

// Whether jobs of the task's executor could not be started lately.
bool Dispatcher::cannot_start_yet(const Task& task) const {
  return pause_of(task) != nullptr || waits_for_probe(task) != nullptr;
}

// Whether no task of its executor and partition may be claimed now.
bool Dispatcher::waits_for_executor(const Modes& modes, const TaskEntry& entry) const {
  return !modes[entry.partition].may_claim() || cannot_start_yet(*entry.task) ||
         table_.executor_slots().is_full(*entry.task);
}

// The first ready task, or a limited one that comes before it and need not wait any more.
TaskEntry* Dispatcher::first_ready(const Modes& modes) {
  TaskEntry* ready = table_.waiting_order().first_ready();
  if (table_.count(Lack::kSlot) == 0) return ready;
  TaskEntry* limited = table_.executor_slots().first_limited(
      [&](const TaskEntry& entry) { return !waits_for_executor(modes, entry); });
  if (limited == nullptr) return ready;
  if (ready != nullptr && starts_before(*ready->task, *limited->task)) return ready;
  table_.wait(*limited, Lack::kNothing);
  return table_.waiting_order().first_ready();
}

// The first ready task that is not blocked, and whose partition and executor may start it.
TaskEntry* Dispatcher::next_ready(const Modes& modes) {
  while (TaskEntry* entry = first_ready(modes)) {
    if (table_.waiting_order().lane_holder(*entry) != nullptr) {
      table_.wait(*entry, Lack::kSerialKey);
    } else if (!waits_for_executor(modes, *entry)) {
      return entry;
    } else if (options_.concurrency == 1 && cannot_start_yet(*entry->task)) {
      return nullptr;  // nothing passes it
    } else {
      table_.wait(*entry, Lack::kSlot);
    }
  }
  return nullptr;
}

// The next task that may be claimed before it is due, in order of due time: a task that must not be
// claimed ahead is not overtaken. These tasks are not claimed ahead: one with a serialKey, or that
// takes a slot of its executor, which it would block for earlier tasks; one that a lost owner would
// end; one that expires before it is due; and any under a rate limit, which counts starts.
TaskEntry* Dispatcher::next_ahead(Instant now) {
  if (options_.prefetch == 0 || options_.preload <= Duration::zero() || options_.rate_limit) {
    return nullptr;
  }
  TaskEntry* entry = table_.waiting_order().first_delayed();
  if (entry == nullptr || entry->lack == Lack::kStore || entry->task->stamp.taken ||
      !entry->task->serial_key.empty() || table_.executor_slots().limit_of(*entry->task) != 0 ||
      cannot_start_yet(*entry->task) || ends_if_lost(*entry->task)) {
    return nullptr;
  }
  // This would overtake a task that is due and cannot be started, or that comes back.
  const bool any_before = table_.waiting_order().first_ready() != nullptr || table_.any_returning();
  if (options_.concurrency == 1 && any_before) return nullptr;
  if (entry->task->expire_at && *entry->task->expire_at <= entry->due) return nullptr;
  const WallTime opens =
      entry->due - std::chrono::floor<std::chrono::milliseconds>(options_.preload);
  if (opens <= clock_.at(now)) return entry;
  ahead_at_ = clock_.when(opens);
  return nullptr;
}

// If there is no room, a task that was claimed ahead and is due after `entry` is given back.
bool Dispatcher::evict_prefetched(Instant now, const TaskEntry& entry, Effects& out) {
  TaskEntry* last = table_.claimed_order().last_early();
  if (last == nullptr || last->state != S::kClaimed ||
      table_.count(S::kEnding) >= options_.max_unacked) {
    return false;
  }
  const WallTime last_due = *last->attempt->early_until;
  if (entry.due > last_due) return false;
  if (entry.due == last_due && starts_before(*last->task, *entry.task)) return false;
  transitions_.requeue(now, *last, "a task that is due earlier needs its place", out);
  return true;
}

// Gives back tasks claimed too early, after the wall clock was set back.
void Dispatcher::requeue_too_early(Instant now, Effects& out) {
  const auto window = std::chrono::ceil<std::chrono::milliseconds>(options_.preload);
  while (TaskEntry* last = table_.claimed_order().last_early()) {
    const bool too_early = *last->attempt->early_until > clock_.at(now) + window;
    if (last->state != S::kClaimed || !too_early) return;
    transitions_.requeue(now, *last, "the clock was set back", out);
  }
}

// With concurrency 1, a task that is given back keeps its place: so tasks claimed after it go back,
// too, and are claimed again behind it.
void Dispatcher::requeue_overtaking(Instant now, Effects& out) {
  if (options_.concurrency != 1 || !table_.any_returning()) return;
  const TaskEntry* first = nullptr;
  table_.for_each_ours([&](const TaskEntry& ours) {
    if (!ours.attempt->returns) return;
    if (first == nullptr || ByStart{}(&ours, first)) first = &ours;
  });
  table_.for_each_ours([&](TaskEntry& ours) {
    if (!ByStart{}(first, &ours)) return;
    const bool on_its_way = ours.state == S::kClaiming || ours.state == S::kChecking;
    if (ours.state == S::kClaimed) {
      transitions_.requeue(now, ours, "a task before it was given back", out);
    } else if (on_its_way && !ours.attempt->recalled) {
      transitions_.recall(ours);
    }
  });
}

void Dispatcher::requeue_claimed(Instant now, const char* why, Effects& out,
                                 std::optional<std::uint32_t> partition) {
  table_.for_each_ours([&](TaskEntry& entry) {
    const bool is_its = entry.partition == partition.value_or(entry.partition);
    if (is_its && entry.state == S::kClaimed) transitions_.requeue(now, entry, why, out);
  });
}

// After an executor's pause one task starts. The others follow when that one has run for a while.
void Dispatcher::watch_probes(Instant now) {
  probe_at_ = Instant::max();
  for (auto& [executor, pause] : breaker_.all()) {
    const TaskEntry* probe = probe_of(executor, pause);
    if (probe == nullptr || !has_job(probe->state)) continue;
    const Instant passes = probe->attempt->started_at + kProbe;
    pause.passed = now >= passes;
    if (!pause.passed) probe_at_ = std::min(probe_at_, passes);
  }
}

void Dispatcher::start_next(Instant now, const Modes& modes, Effects& out) {
  const std::size_t ready = table_.claimed_order().ready_count();
  transitions_.advance(now);
  defer_writes(now, table_.claimed_order().ready_count() - ready);
  transitions_.bury_some(now,
                         [&](std::uint32_t i) { return modes[i].trusted && !modes[i].draining; });
  breaker_.release(now);
  watch_probes(now);
  requeue_overtaking(now, out);  // also without trust: the task may come back when it is written
  const auto any = [&](auto is_so) { return std::any_of(modes.begin(), modes.end(), is_so); };
  if (!any([](const Mode& mode) { return mode.trusted; })) return;
  // A pause may come while a claim is under way: that task is given back, too.
  const bool paused = any([](const Mode& mode) { return mode.paused; });
  if (paused) requeue_claimed(now, "the queue is paused", out);
  requeue_too_early(now, out);
  if (!any([](const Mode& mode) { return mode.may_start(); })) return;
  start_claimed(now, modes, out);
  if (now >= held_too_long_at()) {
    adaptive_.give_up();
    requeue_claimed(now, "no slot became free in time", out);
  }
}

// Writing an end costs Consul more processor time than starting a job costs us. So when many tasks
// are due at once, all of them start before ends are written. The limit is kBurst, since a job
// whose end is not written would run again if this daemon died.
void Dispatcher::defer_writes(Instant now, std::size_t became_due) {
  if (became_due > kManyDue) commits_.defer_until(now + kBurst);
  const bool all_started = table_.claimed_order().ready_count() == 0;
  if (all_started || table_.count(S::kEnding) >= options_.max_unacked) {
    commits_.defer_until(Instant::min());
  }
}

// A task whose partition may not start it holds up later tasks, for the rest of the lease at most.
void Dispatcher::start_claimed(Instant now, const Modes& modes, Effects& out) {
  while (table_.count(S::kRunning) + table_.count(S::kLeftover) < options_.concurrency &&
         table_.count(S::kEnding) < options_.max_unacked) {
    // With concurrency above 1, only tasks of one serialKey have an order, and only one of those is
    // claimed.
    TaskEntry* entry = table_.claimed_order().next_to_start(options_.concurrency == 1);
    if (entry == nullptr || !modes[entry->partition].may_start()) return;
    if (transitions_.is_expired(now, *entry)) {
      transitions_.expire_claimed(now, *entry);
      continue;
    }
    if (entry->due >= clock_.at(now) + 1s) {  // a smaller adjustment changes no place
      transitions_.requeue(now, *entry, "the clock was set back", out);
      continue;
    }
    if (entry->attempt->recalled || table_.executor_slots().is_at_limit(*entry->task) ||
        pause_of(*entry->task) != nullptr) {
      transitions_.requeue(now, *entry, "its executor has no slot free, or is paused", out);
      requeue_overtaking(now, out);
      continue;
    }
    transitions_.start(now, *entry, out);
  }
}

void Dispatcher::claim_next(Instant now, const Modes& modes, const std::string& session,
                            Effects& out) {
  rate_at_ = ahead_at_ = apart_at_ = Instant::max();
  const auto claiming = std::ranges::count_if(modes, &Mode::may_claim);
  if (claiming == 0) return;
  rate_.share(static_cast<std::size_t>(claiming));
  while (commits_.has_room(now)) {
    TaskEntry* entry = next_ready(modes);
    const bool due = entry != nullptr;
    if (!due) entry = next_ahead(now);
    if (entry == nullptr || !modes[entry->partition].may_claim()) return;
    if (due && would_overtake(*entry)) return;
    while (!may_claim(now, *entry, due)) {
      if (evict_prefetched(now, *entry, out)) continue;
      const Instant apart_until = kept_apart_until(*entry->task);
      if (now < apart_until) apart_at_ = apart_until;
      return;
    }
    const auto token = rate_.take(now, entry->partition, most_claims(), out);
    if (!token) {
      rate_at_ = rate_.next_try();
      return;
    }
    if (!transitions_.claim(now, *entry, due, session, token->mark, out)) rate_.refund(*token);
  }
}

void Dispatcher::stop_timed_out(Instant now, Effects& out) {
  while (TaskEntry* entry = table_.claimed_order().next_timed_out(now)) {
    if (entry->attempt->stop == StopReason::kNone) {
      transitions_.stop(now, *entry, StopReason::kTimeout, out);
    } else {
      transitions_.on_overdue(now, *entry, out);
    }
  }
}

// Whether the refuser of the job is at fault, rather than the task.
bool Dispatcher::is_spared(const TaskEntry& entry, const JobExited& exit) {
  const bool once = entry.attempt->policy.delivery == Delivery::kAtMostOnce;
  if (exit.taken == JobTaken::kYes || entry.attempt->stop != StopReason::kNone) return false;
  if (exit.taken == JobTaken::kHardly && once) return false;
  return breaker_.is_spared(std::string{options_.executor_of(entry.task->type)}, entry.key);
}

void Dispatcher::on_exit(Instant now, TaskEntry& entry, const JobExited& exit, Effects& out) {
  const Instant began = entry.attempt->started_at;
  if (exit.ending != JobEnding::kNotStarted && !is_spared(entry, exit)) {
    adaptive_.ran(now - began);
    // A job that counts although it was refused says nothing about the executor.
    if (exit.taken == JobTaken::kYes) {
      breaker_.started(options_.executor_of(entry.task->type), began);
    }
    return transitions_.on_exit(now, entry, exit, out);
  }
  std::optional<Duration> pause;
  const StopReason stop = entry.attempt->stop;
  if (stop == StopReason::kNone || stop == StopReason::kTimeout) {
    const std::string executor{options_.executor_of(entry.task->type)};
    if (const auto* begun = breaker_.failed(now, began, executor, exit.error)) pause = begun->wait;
  }
  transitions_.on_not_started(now, entry, exit.error, pause, out);
}

// A claimed task keeps the policy that it was claimed with. Tasks claimed ahead are given back if
// their executor is gone, or if adaptive prefetch was switched off.
void Dispatcher::on_reconfigured(Instant now, bool leading, bool followed_jobs, Effects& out) {
  rate_.reconfigure();
  breaker_.clear();
  transitions_.on_reconfigured(now, out);
  if (!leading) return;
  const bool unasked = followed_jobs && !adaptive_.enabled() && options_.prefetch == 0;
  table_.for_each_ours([&](TaskEntry& entry) {
    if (entry.state != S::kClaimed) return;
    if (unasked || options_.policy_of(entry.task->type) == nullptr) {
      transitions_.requeue(now, entry, "the configuration was reloaded", out);
    }
  });
}

bool Dispatcher::is_stocked() const {
  constexpr std::size_t kStock = 8;
  return table_.claimed_order().ready_count() >=
         std::max<std::size_t>(kStock, 2 * options_.concurrency);
}

bool Dispatcher::busy() const {
  return table_.count(Lack::kNothing) + table_.claimed_order().ready_count() +
             table_.count(S::kEnding) >
         options_.max_operations;
}

Instant Dispatcher::next_deadline(const std::function<bool(std::uint32_t)>& works) const {
  Instant next = Instant::max();
  if (const auto* pause = breaker_.first()) next = std::min(next, pause->until);
  next = std::min(next, probe_at_);
  bool any = false;
  for (std::uint32_t i = 0; i < options_.partitions; ++i) any = any || works(i);
  if (!any) return next;
  next = std::min({next, rate_at_, ahead_at_, apart_at_, held_too_long_at()});
  const TaskEntry* expiring = table_.waiting_order().first_expiring();
  // With as many burials under way as allowed, their answer wakes us.
  if (expiring != nullptr && table_.count(S::kBurying) == 0 && works(expiring->partition)) {
    next = std::min(next, clock_.when(*expiring->task->expire_at));
  }
  return next;
}

}  // namespace lictor::core
