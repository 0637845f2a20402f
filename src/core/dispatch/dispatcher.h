#pragma once

// Decides which task is claimed next and which claimed task is started: in order, within the
// configured limits, and not while the queue is paused, drains, or cannot prove its leadership.
//
//   ready --next_ready()--> may_claim()? --rate_limit--> claim --applied--> claimed, due
//     | ^                     | no: evict_prefetched(), else wait              | start_claimed()
//     v |                     |                                                v
//   blocked, limited          |                               running --on_exit()--> Transitions
//                             |
//   scheduled --next_ahead()--+  within prefetch and preload: claimed, early --due--> claimed, due
//
// `concurrency` jobs run. More tasks may be claimed ahead, so that the next job starts without a
// round trip to Consul: `prefetch` of them, or as many as recent jobs suggest
// (adaptive_prefetch.h). A task that is claimed ahead and not started counts a lost owner if this
// daemon dies. So an orphan is never claimed ahead, and adaptive prefetch leaves out tasks that
// cannot afford a loss.
//
// With concurrency 1 tasks run strictly in order. Then no task passes one that is blocked, is given
// back, or whose executor cannot start jobs. With more slots only tasks of one serialKey have an
// order.
//
// Three rules bound the harm of one bad task, host or executor:
//
//   last chance   a task whose next lost owner makes it a dead letter starts alone: it may be what
//                 kills its hosts, and would take the tasks beside it along
//   probe         an executor that could not start a job pauses; afterwards one task tries it, and
//                 the others follow when that one has run for a while
//   max_unacked   results that are not written yet stop new starts: the loss with this daemon
//                 stays bounded
//
// why.cpp gives the reasons for a task by the same functions that decide, so a reason cannot
// contradict a decision.

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/commits/write_batcher.h"
#include "core/dispatch/adaptive_prefetch.h"
#include "core/dispatch/executor_breaker.h"
#include "core/dispatch/rate_limit.h"
#include "core/effect.h"
#include "core/options.h"
#include "core/reason.h"
#include "core/tasks/task_table.h"
#include "core/tasks/transitions.h"
#include "core/wall_clock.h"

namespace lictor::core {

class Dispatcher {
 public:
  /// The state of a partition that decides what may be done for it now.
  struct Mode {
    bool trusted = false;  // the lease is proved
    bool draining = false;
    bool paused = false;
    bool ready = false;  // the tasks and the operator's switches were read

    [[nodiscard]] bool may_start() const { return trusted && !draining && !paused; }
    [[nodiscard]] bool may_claim() const { return may_start() && ready; }
  };
  using Modes = std::vector<Mode>;  // by partition

  Dispatcher(const QueueOptions& options, TaskTable& table, Transitions& transitions,
             WriteBatcher& commits, const WallClock& clock, Requests& requests, Random& random);

  /// Starts tasks that became due. Gives back tasks that may not stay claimed.
  void start_next(Instant now, const Modes& modes, Effects& out);
  /// Claims the next tasks, as far as transactions have room.
  void claim_next(Instant now, const Modes& modes, const std::string& session, Effects& out);
  /// Gives back claimed tasks of one partition, or of all. `why` is for the log.
  void requeue_claimed(Instant now, const char* why, Effects& out,
                       std::optional<std::uint32_t> partition = {});
  void stop_timed_out(Instant now, Effects& out);
  void on_exit(Instant now, TaskEntry& entry, const JobExited& exit, Effects& out);
  void on_reconfigured(Instant now, bool leading, bool followed_jobs, Effects& out);
  /// Takes the end of a write, for the rate; transitions come after.
  void on_settled(Instant now, const WriteBatcher::Settled& settled, Effects& out) {
    rate_.on_settled(now, settled, out);
  }
  void on(Instant now, const RateRead& reply, Effects& out) { rate_.on(now, reply, out); }
  /// A partition is lost, perhaps the last one.
  void drop(std::uint32_t partition) { rate_.drop(partition); }
  void clear(Effects& out);

  /// When to call again, apart from the tasks' own times. `works(partition)`: it may start jobs.
  [[nodiscard]] Instant next_deadline(const std::function<bool(std::uint32_t)>& works) const;
  /// Whether so many claimed tasks are ready that writes can wait for more.
  [[nodiscard]] bool is_stocked() const;
  /// Whether more tasks are ready, or wait for their end to be written, than one transaction takes.
  [[nodiscard]] bool busy() const;
  /// Why the jobs of some executor cannot be started here now. Empty: no trouble is known.
  [[nodiscard]] std::string cannot_start() const;
  /// Every reason why the task does not run now.
  void why(Instant now, const TaskEntry& entry, const Mode& mode, const std::string& paused_by,
           std::vector<Reason>& reasons) const;

 private:
  /// Lets all tasks of a burst start before ends are written (dispatcher.cpp has the figures).
  void defer_writes(Instant now, std::size_t became_due);
  void start_claimed(Instant now, const Modes& modes, Effects& out);
  void requeue_too_early(Instant now, Effects& out);
  void requeue_overtaking(Instant now, Effects& out);
  /// Passes the probes that have run for long enough.
  void watch_probes(Instant now);
  [[nodiscard]] bool waits_for_executor(const Modes& modes, const TaskEntry& entry) const;
  [[nodiscard]] TaskEntry* first_ready(const Modes& modes);
  [[nodiscard]] TaskEntry* next_ready(const Modes& modes);
  [[nodiscard]] TaskEntry* next_ahead(Instant now);
  [[nodiscard]] bool may_claim(Instant now, const TaskEntry& entry, bool due) const;
  /// The rate may take tokens for all these claims at once.
  [[nodiscard]] std::size_t most_claims() const;
  [[nodiscard]] Instant trials_end(bool last_chances_alone) const;
  /// When each job that runs beside the task will have shown that it spares its host.
  [[nodiscard]] Instant kept_apart_until(const Task& task) const;
  [[nodiscard]] bool evict_prefetched(Instant now, const TaskEntry& entry, Effects& out);
  [[nodiscard]] bool ends_if_lost(const Task& task) const;
  /// How many tasks beyond `concurrency` may be claimed, judged by this task.
  [[nodiscard]] std::size_t ahead_of_slots(const Task& task) const;
  [[nodiscard]] Instant held_too_long_at() const;
  [[nodiscard]] bool is_last_chance(const Task& task) const;
  [[nodiscard]] bool would_overtake(const TaskEntry& entry) const;
  [[nodiscard]] bool cannot_start_yet(const Task& task) const;
  [[nodiscard]] const ExecutorBreaker::Pause* pause_of(const Task& task) const;
  [[nodiscard]] const TaskEntry* probe_of(std::string_view executor,
                                          const ExecutorBreaker::Pause& pause) const;
  [[nodiscard]] const TaskEntry* waits_for_probe(const Task& task) const;
  [[nodiscard]] bool is_spared(const TaskEntry& entry, const JobExited& exit);

  void why_refused(const TaskEntry& entry, std::vector<Reason>& reasons) const;
  void why_queue(const Mode& mode, const std::string& paused_by,
                 std::vector<Reason>& reasons) const;
  void why_waiting(Instant now, const TaskEntry& entry, std::vector<Reason>& reasons) const;
  void why_due_later(const TaskEntry& entry, std::vector<Reason>& reasons) const;
  void why_not_next(Instant now, const TaskEntry& entry, std::vector<Reason>& reasons) const;
  void why_no_room(Instant now, const Task& task, std::vector<Reason>& reasons) const;
  void why_trouble(Instant now, std::vector<Reason>& reasons) const;
  [[nodiscard]] std::string any_running(std::string_view executor = {}) const;

  const QueueOptions& options_;
  TaskTable& table_;
  Transitions& transitions_;
  WriteBatcher& commits_;
  const WallClock& clock_;
  ExecutorBreaker breaker_;
  AdaptivePrefetch adaptive_;
  RateLimit rate_;
  Instant rate_at_ = Instant::max();   // when the rate allows the claim that waits for it
  Instant ahead_at_ = Instant::max();  // when the next scheduled task may be claimed ahead
  Instant apart_at_ = Instant::max();  // when tasks that are kept apart may be claimed
  Instant probe_at_ = Instant::max();  // when a probe that still runs will have passed
};

}  // namespace lictor::core
