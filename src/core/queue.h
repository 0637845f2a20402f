#pragma once

// One queue (later: one partition of one): who leads it, which task is next, what becomes of it.
//
// A pure state machine: step() is told what happened and when, and says what to do. The same
// options, seed and events give the same effects, to the byte. Not thread safe; one loop owns it.
//
//              won                      drained
//   kFollowing ----> kLeading --drain--> kDraining --> kFollowing (step-down), kStopped (stop)
//       ^               |                    |
//       +----- lost ----+------- lost -------+

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>

#include "base/random.h"
#include "core/adaptive_prefetch.h"
#include "core/attempts.h"
#include "core/commits.h"
#include "core/effect.h"
#include "core/event.h"
#include "core/history.h"
#include "core/lease.h"
#include "core/listing.h"
#include "core/options.h"
#include "core/rate_limit.h"
#include "core/reason.h"
#include "core/requests.h"
#include "core/schedule.h"
#include "core/start_holds.h"
#include "core/tombstones.h"

namespace lictor::core {

class Queue {
 public:
  Queue(QueueOptions options, std::uint64_t seed);
  Queue(const Queue&) = delete;  // its parts refer to each other
  Queue& operator=(const Queue&) = delete;

  /// Events that are there together are told together: what they make possible, a finish and the
  /// next claim say, then shares a transaction.
  void step(Instant now, std::span<const Event> events, Effects& out);
  void step(Instant now, const Event& event, Effects& out) { step(now, {&event, 1}, out); }

  /// When TimePassed is wanted; Instant::max() when never.
  [[nodiscard]] Instant next_deadline() const;

  [[nodiscard]] bool leading(Instant now) const { return lease_.trusted(now); }
  [[nodiscard]] bool holds_lock() const { return lease_.holding(); }
  [[nodiscard]] std::size_t waiting() const { return schedule_.size(); }
  /// Claimed, and not started yet.
  [[nodiscard]] std::size_t claimed_ahead() const { return attempts_.count(Attempt::State::kHeld); }
  [[nodiscard]] std::size_t running() const { return attempts_.count(Attempt::State::kRunning); }
  /// Nothing that is due is left, as far as a leader knows.
  [[nodiscard]] bool drained() const;
  [[nodiscard]] bool paused() const { return paused_; }
  [[nodiscard]] bool draining() const { return drain_ != Drain::kNone; }
  /// Why this host cannot start jobs of some executor now; empty: it can, as far as is known.
  [[nodiscard]] std::string cannot_start() const {
    return start_holds_.any() ? start_holds_.first().error : std::string{};
  }

  /// What it holds in memory, for who checks that it stays bounded.
  struct Held {
    std::size_t tasks = 0;      ///< that wait, but the distant ones
    std::size_t distant = 0;    ///< of which a name's hash and a time are held
    std::size_t claimed = 0;    ///< or being claimed; with those that run
    std::size_t unacked = 0;    ///< ended, but not yet in Consul
    std::size_t writes = 0;     ///< on their way, those in flight included
    std::size_t in_flight = 0;  ///< transactions
    std::size_t refused = 0;    ///< why tasks that wait may not be claimed
    std::size_t notes = 0;      ///< on keys that are neither waiting nor claimed
  };
  [[nodiscard]] Held held() const;

  /// All that keeps the task from running now, by what the core decides by; never empty.
  [[nodiscard]] std::vector<Reason> why(Instant now, std::string_view key) const;

 private:
  enum class Drain { kNone, kStepDown, kStop };

  // queue.cpp: events in, deadlines out
  void on(Instant now, const TimePassed& event, Effects& out);
  void on(Instant now, const Started& event, Effects& out);
  void on(Instant now, const WallClockRead& event, Effects& out);
  void on(Instant now, const ControlRead& event, Effects& out);
  void on(Instant now, const TasksListed& event, Effects& out);
  void on(Instant now, const TasksFetched& event, Effects& out);
  void on(Instant now, const Committed& event, Effects& out);
  void on(Instant now, const HistoryListed& event, Effects& out);
  void on(Instant now, const JobExited& event, Effects& out);
  void on(Instant now, const Reconfigured& event, Effects& out);
  void on(Instant now, const StopRequested& event, Effects& out);
  template <class LeaseEvent>
  void on(Instant now, const LeaseEvent& event, Effects& out);
  void pump(Instant now, Effects& out);
  void watch_burst(Instant now, bool was_burst);
  [[nodiscard]] bool busy() const;
  /// When our writes are answered and what was started has begun; Instant::max() as long as nobody
  /// knows.
  [[nodiscard]] Instant quiet_at() const;
  [[nodiscard]] Commits::Urgency urgency(Instant now) const;

  // queue_lead.cpp: leadership gained, lost, given up
  void on_change(Instant now, Lease::Change change, Effects& out);
  void begin_term(Instant now, Effects& out);
  void end_term(Instant now, Effects& out);
  void begin_drain(Instant now, Drain why, Effects& out);
  void continue_drain(Instant now, Effects& out);
  void finish_drain(Instant now, Effects& out);
  void watch_control(Instant now, Effects& out);
  void leave_if_done(Effects& out);

  // queue_tasks.cpp: what the store says of tasks
  void take_in(Instant now, const StoredRecord& record, Effects& out);
  void take_in(Instant now, const Task& task, Effects& out);
  void take_in(Instant now, const BadRecord& record, Effects& out);
  [[nodiscard]] bool is_distant(Instant now, const Task& task) const;
  [[nodiscard]] std::chrono::milliseconds distance(int times) const;
  void read_distant(Instant now, Effects& out);
  void forget(const std::string& key);
  using Names = std::vector<std::string_view>;  // in order
  void compare(Instant now, const Names& listed, const TasksListed& event, Effects& out);
  void withdraw(Instant now, Attempt& attempt, Effects& out);
  bool correct_retry(Instant now, Task& task) const;
  void correct_retries(Instant now);
  void mark_folder(Instant now, bool is_there);
  void tell_folders(const TasksListed& listed, bool all, Effects& out);
  void leave_too_large(const std::string& key, std::uint64_t index, std::string why, Effects& out);
  [[nodiscard]] bool leave_if_unnameable(const std::string& key, std::uint64_t index, Effects& out);
  [[nodiscard]] const TypePolicy* policy_of(const Task& task) const;
  [[nodiscard]] std::string_view executor_of(const Task& task) const;

  // queue_claim.cpp: which task is claimed, and when
  void claim_next(Instant now, Effects& out);
  void claim(Instant now, const std::shared_ptr<const Task>& task, bool due, Effects& out);
  [[nodiscard]] std::shared_ptr<const Task> next_ahead(Instant now);
  [[nodiscard]] bool may_claim(const Task& task, bool due) const;
  [[nodiscard]] bool make_way(Instant now, const Task& task, Effects& out);
  void give_back_too_early(Instant now, Effects& out);
  [[nodiscard]] std::size_t ahead_of_slots(const Task& task) const;
  [[nodiscard]] Instant held_too_long_at() const;
  [[nodiscard]] bool is_last_chance(const Task& task) const;
  [[nodiscard]] bool would_overtake(const Task& task) const;
  [[nodiscard]] bool holds_all() const;
  [[nodiscard]] const StartHolds::Hold* hold_of(const Task& task) const;

  // queue_jobs.cpp: start, end
  void bury_expired(Instant now, Effects& out);
  [[nodiscard]] bool expired_unstarted(Instant now, const Task& task) const;
  void bury_unstarted(Instant now, Attempt& attempt, Effects& out);
  void start_held(Instant now, Effects& out);
  void stop_timed_out(Instant now, Effects& out);
  void stop_running(Instant now, Attempt& attempt, Attempt::StopReason why, Effects& out);
  void settle(Instant now, Commits::Settled settled, Effects& out);
  void settle_applied(Instant now, Attempt& attempt, const Commits::Settled& settled, Effects& out);
  void on_claimed(Instant now, Attempt& attempt, const Commits::Settled& settled, Effects& out);
  void fail(Instant now, Attempt& attempt, const std::string& error, const std::string& tail,
            std::optional<Duration> retry_after, Effects& out);
  void put_off(Instant now, Attempt& attempt, const std::string& error, Effects& out);
  void give_back(Instant now, Attempt& attempt, bool lost, Effects& out);
  void give_back_held(Instant now, Effects& out);
  void abandon_claim(const std::string& nonce);
  void finish(Instant now, Attempt& attempt, const JobExited& exit, Effects& out);
  void prune(Instant now);
  void bury(Instant now, Attempt& attempt, std::string reason, std::string error, std::string tail,
            Effects& out);
  void end_attempt(const Attempt& attempt);
  void restamp(Instant now, Attempt& attempt, Purpose purpose, Stamp stamp);
  [[nodiscard]] Instant backoff_end(Instant now, const Attempt& attempt, std::uint32_t failures);
  void put(std::shared_ptr<const Task> task);

  // queue_why.cpp
  void why_attempt(Instant now, const Attempt& attempt, std::vector<Reason>& reasons) const;
  void why_none(std::vector<Reason>& reasons) const;
  void why_waiting(Instant now, const Task& task, std::vector<Reason>& reasons) const;
  void why_busy(Instant now, const Task& task, std::vector<Reason>& reasons) const;
  [[nodiscard]] std::string any_running() const;

  [[nodiscard]] WallTime wall(Instant now) const;
  [[nodiscard]] Instant instant_of(WallTime time) const;

  QueueOptions options_;  // the parts refer to it
  Random random_;
  Requests requests_;
  Lease lease_;
  Commits commits_;
  Listing listing_;
  Schedule schedule_;
  StartHolds start_holds_;
  Attempts attempts_;
  History history_;
  AdaptivePrefetch adaptive_;
  RateLimit rate_;
  Instant rate_at_ = Instant::max();      // when the rate allows the claim that waits for it
  Instant ahead_at_ = Instant::max();     // when the next delayed task may be claimed ahead
  Instant last_start_{};                  // of a job
  Instant burst_until_ = Instant::min();  // many that are due together are being started

  WallTime wall_base_{};
  Instant wall_base_at_{};

  std::uint64_t last_attempt_;
  std::uint64_t last_claim_ = 0;
  std::set<std::string> abandoned_claims_;  // claims that seemed not to land, and may yet
  Tombstones tombstones_;
  std::map<std::string, std::uint64_t, std::less<>> burying_;  // unreadable or expired, by key
  struct LeftAlone {
    std::uint64_t index = 0;
    Reason::Kind why = Reason::Kind::kTooLarge;
    std::string text;
  };
  std::map<std::string, LeftAlone, std::less<>> left_alone_;
  std::size_t new_tasks_ = 0;  // that the reading at hand told of
  std::set<std::string> told_folders_;
  std::set<std::string> told_no_executor_;

  std::set<AttemptId> leftovers_;  // jobs of a lost term that still run
  Drain drain_ = Drain::kNone;
  bool drain_stopping_ = false;
  Instant drain_until_ = Instant::max();
  Instant drain_give_up_ = Instant::max();
  bool stopped_ = false;
  bool left_ = false;  // Stopped was said; nothing is to follow

  RequestId control_;
  bool control_known_ = false;  // whether it is paused was read in this term
  Instant control_at_ = Instant::max();
  std::uint64_t control_index_ = 0;
  bool told_control_ = false;  // that it cannot be read; once, not at every try
  std::optional<std::string> seen_step_down_;
  bool paused_ = false;
  std::string paused_by_;
  // Of what waits and may not be written: why.
  std::map<std::string, std::string, std::less<>> refused_;
  bool marking_folder_ = false;
  bool marking_control_ = false;
};

}  // namespace lictor::core
