#pragma once

// One queue: which of its partitions this host leads, and what happens to their tasks. Partition 0
// stands for the queue: its leader also makes the ticks, keeps the history short, and makes the
// keys that must exist.
//
// A pure state machine: step() takes events with their time, and gives effects. The same
// options, seed and events give the same effects, to the byte. Not thread safe; one loop owns it.
//
// Each partition:
//
//              won                      drained
//   kFollowing ----> kLeading --drain--> kDraining --> kFollowing (step-down), kStopped (stop)
//       ^               |                    |
//       +----- lost ----+------- lost -------+
//
// A task goes through these units: TaskSource (what the store says), Transitions over TaskTable
// (its states), Dispatcher (when it is claimed and started) and WriteBatcher (how all that is
// written).
//
// Each step does, in this order:
//
//   events, readings of the clock first --> the unit that asked
//   balance() --> leases that ended or came back --> deadlines of each unit --> drains
//   work():  start what is claimed --> make the ticks that are due
//            --> claim, prune, send; again while that sends something
//            --> read on, paced by what is left to do
//
// Starts come before claims, since they wait for nothing. Claims come before the sending, so that
// they share transactions with the ends of other tasks. Reading comes last, and is paced by how
// much is left to do.
//
// The units do not call this one. They return what happened (Leadership::Changes,
// WriteBatcher::Result), and the queue hands it on. One exception: TaskSource reports records to
// Transitions, its Listener.

#include <algorithm>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"
#include "core/commits/write_batcher.h"
#include "core/control.h"
#include "core/dispatch/dispatcher.h"
#include "core/effect.h"
#include "core/event.h"
#include "core/history.h"
#include "core/leadership/balancer.h"
#include "core/leadership/leadership.h"
#include "core/options.h"
#include "core/reading/task_source.h"
#include "core/reason.h"
#include "core/requests.h"
#include "core/scheduler.h"
#include "core/tasks/owners.h"
#include "core/tasks/task_table.h"
#include "core/tasks/transitions.h"
#include "core/wall_clock.h"

namespace lictor::core {

class Queue {
 public:
  Queue(QueueOptions options, std::uint64_t seed);
  Queue(const Queue&) = delete;  // its parts refer to each other
  Queue& operator=(const Queue&) = delete;

  /// Pass events that arrived together in one call: their effects, such as a finish and the next
  /// claim, then share a transaction.
  void step(Instant now, std::span<const Event> events, Effects& out);
  void step(Instant now, const Event& event, Effects& out) { step(now, {&event, 1}, out); }

  /// When TimePassed is wanted; Instant::max(): never.
  [[nodiscard]] Instant next_deadline() const;

  /// Whether some partition is led: its lock is held, and its lease is proved.
  [[nodiscard]] bool leading(Instant now) const { return leadership_.trust().runs(now); }
  [[nodiscard]] bool leading(Instant now, std::uint32_t partition) const {
    return holds_lock(partition) && leadership_.trust().runs(now);
  }
  [[nodiscard]] bool holds_lock() const { return leadership_.holds_any(); }
  [[nodiscard]] bool holds_lock(std::uint32_t partition) const {
    return leadership_.holds(partition);
  }
  /// When the lock-delays of all lost locks are over.
  [[nodiscard]] Instant locks_free_from() const { return leadership_.free_from(); }
  [[nodiscard]] std::size_t waiting() const { return table_.waiting(); }
  /// Tasks that are claimed and not started yet.
  [[nodiscard]] std::size_t claimed_ahead() const {
    return table_.count(TaskState::kChecking) + table_.count(TaskState::kClaimed);
  }
  [[nodiscard]] std::size_t running() const { return table_.count(TaskState::kRunning); }
  /// Whether no due task is left, as far as a leader knows.
  [[nodiscard]] bool drained() const;
  /// See WriteBatcher.
  [[nodiscard]] std::string first_refusal() const { return commits_.first_refusal(); }
  [[nodiscard]] bool paused() const { return control_.paused(); }
  /// The queue has another number of partitions than the options say: no partition can be led.
  [[nodiscard]] bool count_changed() const { return leadership_.count_changed(); }
  [[nodiscard]] bool draining() const {
    return std::any_of(terms_.begin(), terms_.end(),
                       [](const Term& term) { return term.drain != Drain::kNone; });
  }
  /// Why this host cannot start jobs of some executor now; empty: no trouble is known.
  [[nodiscard]] std::string cannot_start() const { return dispatcher_.cannot_start(); }

  /// How many known keys are in this state.
  [[nodiscard]] std::size_t count(TaskState state) const { return table_.count(state); }
  /// How many waiting or ignored keys lack this.
  [[nodiscard]] std::size_t count(Lack lack) const { return table_.count(lack); }
  /// How long the first task that waits only for others has been due; zero: there is none.
  [[nodiscard]] Duration oldest_due(Instant now) const;
  /// How long the oldest job has been running; zero: none runs.
  [[nodiscard]] Duration longest_running(Instant now) const;
  /// How long the leases last without another proof; zero: this host has none.
  [[nodiscard]] Duration lease_left(Instant now) const;
  /// The id that the next attempt would get.
  [[nodiscard]] std::uint64_t next_attempt() const { return transitions_.next_attempt(); }
  /// How many keys became known in all.
  [[nodiscard]] std::uint64_t discovered() const { return table_.discovered(); }

  /// The queue's memory use, for tests that check that it is bounded.
  struct Stats {
    std::size_t tasks = 0;      ///< that wait, without the distant ones
    std::size_t distant = 0;    ///< tasks of which only the key and a time are kept
    std::size_t claimed = 0;    ///< claimed or being claimed; running ones included
    std::size_t unacked = 0;    ///< ended, but not yet so in Consul
    std::size_t writes = 0;     ///< under way, including those in flight
    std::size_t in_flight = 0;  ///< transactions
    std::size_t refused = 0;    ///< tasks whose claim Consul refused
    std::size_t notes = 0;      ///< keys that are neither waiting nor claimed
  };
  [[nodiscard]] Stats stats() const;
  /// The recurring tasks, as a leader knows them.
  [[nodiscard]] Scheduler::Stats schedules() const { return scheduler_.stats(); }

  /// The state of the task in words; for tests.
  [[nodiscard]] std::string state_text(std::string_view key) const {
    const TaskEntry* entry = table_.find(key);
    if (entry == nullptr) return "unknown";
    return std::string{has_lack(entry->state) ? name_of(entry->lack) : name_of(entry->state)};
  }
  [[nodiscard]] const TaskTable::Walked& walked() const { return table_.walked(); }

  /// All reasons that keep the task from running now, by the core's own functions; never empty.
  [[nodiscard]] std::vector<Reason> why(Instant now, std::string_view key) const;

 private:
  enum class Drain { kNone, kHandOver, kStepDown, kStop };
  /// This host's work in a partition that it holds.
  struct Term {
    bool runs = false;
    std::uint64_t reading = 0;  // of all tasks, which must end before a claim
    std::uint64_t control = 0;  // of the operator's switches, before a claim too
    std::uint64_t owners = 0;   // of the claims that other daemons gave up, before a claim too
    Drain drain = Drain::kNone;
    bool stops_jobs = false;  // its jobs were asked to end
    bool drained = false;     // or given up: its jobs go on
    Instant drain_until = Instant::max();
    Instant give_up = Instant::max();
  };

  // queue.cpp: events in, deadlines out
  void on(Instant, const TimePassed&, Effects&) {}
  void on(Instant now, const Started& event, Effects& out) { leadership_.start(now, event, out); }
  /// After a step of the wall clock nothing is started before a new proof (trust.h).
  void on(Instant now, const WallClockRead& event, Effects& out);
  void on(Instant now, const ControlRead& event, Effects& out);
  void on(Instant now, const TasksListed& event, Effects& out) { source_.on(now, event, out); }
  void on(Instant now, const TasksFetched& event, Effects& out);
  void on(Instant now, const TasksChecked& event, Effects& out);
  void on(Instant now, const Committed& event, Effects& out);
  void on(Instant now, const HistoryListed& event, Effects& out) { history_.on(now, event, out); }
  void on(Instant now, const SchedulesListed& event, Effects& out) {
    scheduler_.on(now, event, out);
  }
  void on(Instant now, const RateRead& event, Effects& out) { dispatcher_.on(now, event, out); }
  void on(Instant now, const OwnersRead& event, Effects& out) { owners_.on(now, event, out); }
  void on(Instant now, const JobExited& event, Effects& out);
  void on(Instant now, const Reconfigured& event, Effects& out);
  /// A refusal named how many operations Consul takes.
  void learn_operations(std::size_t most);
  void on(Instant now, const MembersSeen& event, Effects& out);
  void on(Instant now, const StopRequested& event, Effects& out);
  template <class LeadershipReply>
  void on(Instant now, const LeadershipReply& event, Effects& out);
  void pump(Instant now, Effects& out);
  void work(Instant now, Effects& out);
  /// Hands a write that has ended to the unit that wanted it.
  void settle(Instant now, const WriteBatcher::Settled& settled, Effects& out);
  void mark_missing(Instant now);
  void prune(Instant now);
  [[nodiscard]] Dispatcher::Mode mode(std::uint32_t partition, bool trusted) const;

  // queue_lead.cpp: leadership gained, lost, given up
  void on_changes(Instant now, const Leadership::Changes& changes, Effects& out);
  void on_change(Instant now, std::uint32_t partition, LeaseChange change, Effects& out);
  static void emit(Fact::Kind kind, std::uint32_t partition, Effects& out, std::string text = {},
                   Duration took = {});
  /// The first partition starts the reading of tasks and switches; a further one asks for both
  /// again, since an earlier reading may be older than the other leader's last write.
  void begin_term(Instant now, std::uint32_t partition, Effects& out);
  /// Drops all work under way for the partition: the next leader finds it in Consul. Jobs that
  /// still run are asked to end, unless their on_lease_lost lets them finish.
  void end_term(std::uint32_t partition, Effects& out);
  void balance(Instant now);
  void begin_drain(Instant now, Drain why, Effects& out);
  void begin_drain(Instant now, std::uint32_t partition, Drain why);
  void continue_drain(Instant now, std::uint32_t partition, Effects& out);
  void finish_drain(Instant now, std::uint32_t partition, Effects& out);
  void stop_if_drained(Instant now, Effects& out);
  [[nodiscard]] bool leaves() const;
  void stop_jobs(Instant now, std::uint32_t partition, StopReason why, Effects& out);
  [[nodiscard]] bool holds_another(std::uint32_t partition) const;
  void leave_if_done(Effects& out);

  QueueOptions options_;  // the parts refer to it
  Random random_;
  Requests requests_;
  WallClock clock_;
  Leadership leadership_;
  WriteBatcher commits_;
  TaskTable table_;
  Owners owners_;
  Transitions transitions_;
  TaskSource source_;
  Dispatcher dispatcher_;
  Control control_;
  History history_;
  Scheduler scheduler_;

  std::vector<Term> terms_;  // by partition
  Dispatcher::Modes modes_;
  bool stopping_ = false;
  bool keeps_locks_ = false;  // when stopping, until a request without it comes
  bool drained_sent_ = false;
  // With several partitions:
  Balancer balancer_;
  BalancerView fleet_;
  Instant balance_at_ = Instant::max();
  bool left_ = false;               // Stopped was emitted; no effect may follow
  std::set<MarkOp::What> marking_;  // keys that are missing, and were written since
};

}  // namespace lictor::core
