#include "core/queue.h"

#include <algorithm>
#include <utility>

namespace lictor::core {

Queue::Queue(QueueOptions options, std::uint64_t seed)
    : options_(std::move(options)),
      random_(seed),
      leadership_(options_, requests_),
      commits_(options_, requests_),
      table_(options_, random_.next()),
      transitions_(options_, table_, commits_, clock_, random_),
      source_(options_, requests_, table_.keys(), transitions_),
      dispatcher_(options_, table_, transitions_, commits_, clock_),
      control_(requests_),
      history_(options_, requests_),
      scheduler_(options_, requests_, table_, source_, clock_) {
  transitions_.set_source(source_);
}

void Queue::step(Instant now, std::span<const Event> events, Effects& out) {
  if (left_) return;
  for (const Event& event : events) {
    std::visit([&](const auto& e) { on(now, e, out); }, event);
  }
  pump(now, out);
}

// Does what has become possible, after any event.
void Queue::pump(Instant now, Effects& out) {
  on_changes(now, leadership_.on_time(now, out), out);
  if (lease().holding()) {
    control_.on_time(now, out);
    commits_.on_time(now, out);
    history_.on_time(now, out);
    scheduler_.on_time(now, out);
    dispatcher_.stop_timed_out(now, out);
    if (drain_ != Drain::kNone) continue_drain(now, out);
    if (left_) return;
  }
  if (lease().holding()) {
    work(now, out);
  } else if (drain_ != Drain::kNone && now >= drain_give_up_) {
    finish_drain(now, out);
  }
  leave_if_done(out);
}

void Queue::work(Instant now, Effects& out) {
  const Dispatcher::Mode mode = this->mode(lease().trusted(now));
  dispatcher_.start_next(now, mode, out);
  commits_.set_patient(dispatcher_.is_stocked(mode));
  mark_missing(now);
  if (mode.trusted && mode.ready && !mode.draining) scheduler_.make_due(now, commits_, out);
  std::size_t before = 0;
  do {  // what was sent makes room for more, while transactions in flight are allowed
    dispatcher_.claim_next(now, mode, leadership_.session(), out);
    prune(now);
    before = out.size();
    commits_.send(now, leadership_.session(), out);
  } while (out.size() != before);
  source_.on_time(now, dispatcher_.busy(), out);
}

Dispatcher::Mode Queue::mode(bool trusted) const {
  return {.trusted = trusted,
          .draining = drain_ != Drain::kNone,
          .paused = control_.paused(),
          .ready = source_.complete() && control_.known()};
}

// Creates keys that must always exist; once a term, as the token may not have the right.
void Queue::mark_missing(Instant now) {
  if (!source_.folder_missing()) {
    marking_folder_ = false;
  } else if (!std::exchange(marking_folder_, true)) {
    commits_.add(now, {Purpose::kMark, MarkOp{MarkOp::What::kTasksFolder}, {}});
  }
  if (control_.missing() && !std::exchange(marking_control_, true)) {
    commits_.add(now, {Purpose::kMark, MarkOp{MarkOp::What::kControl}, {}});
  }
  if (scheduler_.folder_missing() && !std::exchange(marking_schedules_, true)) {
    commits_.add(now, {Purpose::kMark, MarkOp{MarkOp::What::kSchedulesFolder}, {}});
  }
}

void Queue::prune(Instant now) {
  if (drain_ != Drain::kNone || !lease().trusted(now) || !commits_.has_room(now)) return;
  for (PruneOp& op : history_.take_old(now, clock_.at(now), options_.max_operations / 2)) {
    commits_.add(now, {Purpose::kPrune, std::move(op), {}});
  }
}

Instant Queue::next_deadline() const {
  if (left_ || leadership_.closed()) return Instant::max();
  Instant next = leadership_.next_deadline();
  if (drain_ != Drain::kNone) next = std::min(next, drain_give_up_);
  if (!lease().holding()) return next;
  const bool leading = lease().state() == Lease::State::kLeading;
  next = std::min({next, commits_.next_deadline(), source_.next_deadline(),
                   transitions_.next_deadline(), dispatcher_.next_deadline(mode(leading)),
                   control_.next_deadline(), scheduler_.next_reading()});
  if (drain_ != Drain::kNone && !drain_stopping_) next = std::min(next, drain_until_);
  // While there is no room, the answer that makes room wakes us.
  if (leading && drain_ == Drain::kNone && commits_.has_room(Instant::min())) {
    next = std::min(next, history_.next_deadline());
    if (mode(leading).ready) next = std::min(next, scheduler_.next_tick());
  }
  return next;
}

bool Queue::drained() const {
  return lease().holding() && source_.complete() && commits_.idle() &&
         table_.busy() == table_.claimed_order().early_count() &&
         table_.count(TaskState::kReady) + table_.count(TaskState::kBlocked) +
                 table_.count(TaskState::kSuspended) + table_.count(TaskState::kEnding) +
                 table_.count(TaskState::kBurying) + table_.count(TaskState::kUnreadable) ==
             0;
}

Duration Queue::oldest_due(Instant now) const {
  const TaskEntry* first = table_.waiting_order().first_ready();
  return first == nullptr ? Duration::zero()
                          : std::max(Duration::zero(), now - first->task->ready_at);
}

Duration Queue::longest_running(Instant now) const {
  Duration longest{};
  table_.for_each_ours([&](const TaskEntry& entry) {
    const bool runs = entry.state == TaskState::kRunning || entry.state == TaskState::kStopping;
    if (runs) longest = std::max(longest, now - entry.attempt->started_at);
  });
  return longest;
}

Queue::Stats Queue::stats() const {
  Stats stats;
  stats.distant = table_.count(TaskState::kDistant);
  stats.tasks = table_.waiting() - stats.distant;
  stats.unacked = table_.count(TaskState::kEnding);
  stats.claimed = table_.busy();
  stats.writes = commits_.writes();
  stats.in_flight = commits_.in_flight();
  stats.refused = table_.count(TaskState::kRefused);
  stats.notes = table_.count(TaskState::kDeleted) + table_.count(TaskState::kBurying) +
                table_.count(TaskState::kTooLarge) + table_.count(TaskState::kUnnameable) +
                table_.count(TaskState::kUnreadable);
  return stats;
}

std::vector<Reason> Queue::why(Instant now, std::string_view key) const {
  std::vector<Reason> reasons;
  if (lease().state() != Lease::State::kLeading || !lease().trusted(now)) {
    reasons.push_back({Reason::Kind::kNotLeading});
    if (!lease().holding()) return reasons;
  }
  const TaskEntry* entry = table_.find(key);
  if (entry == nullptr || entry->state == TaskState::kDeleted) {
    reasons.push_back({source_.behind() ? Reason::Kind::kReading : Reason::Kind::kUnknownTask});
  } else {
    dispatcher_.why(now, *entry, mode(true), control_.paused_by(), reasons);
  }
  return reasons;
}

void Queue::on(Instant, const TimePassed&, Effects&) {}

void Queue::on(Instant now, const Started& event, Effects& out) {
  leadership_.start(now, event.previous_session, out);
}

void Queue::on(Instant now, const WallClockRead& event, Effects& out) {
  if (clock_.set(event.at, event.wall)) leadership_.clock_stepped(now, out);
  transitions_.on_clock_set(now);
}

void Queue::on(Instant now, const StopRequested&, Effects& out) {
  begin_drain(now, Drain::kStop, out);
}

template <class LockReply>
void Queue::on(Instant now, const LockReply& event, Effects& out) {
  on_changes(now, leadership_.on(now, event, out), out);
}

void Queue::on(Instant now, const ControlRead& event, Effects& out) {
  const auto asked_by = control_.on(now, event, out);
  if (!asked_by) return;
  if (drain_ == Drain::kNone) {
    out.emplace_back(Fact{Fact::Kind::kSteppingDown, {}, 0, 0, *asked_by, {}});
  }
  begin_drain(now, Drain::kStepDown, out);
}

void Queue::on(Instant now, const Committed& event, Effects& out) {
  const Commits::Result result = commits_.on(now, event, out);
  if (event.outcome == Outcome::kApplied) source_.wrote(event.modify_index);
  for (const std::uint32_t partition : result.proved) {
    on_changes(now, leadership_.proved(now, partition, *result.proof, out), out);
  }
  for (const Commits::Settled& settled : result.settled) settle(now, settled, out);
  for (const std::uint32_t partition : result.not_leader) {
    on_changes(now, leadership_.refused(now, partition, out), out);
  }
}

void Queue::settle(Instant now, const Commits::Settled& settled, Effects& out) {
  const bool applied = settled.verdict == Commits::Verdict::kApplied;
  if (settled.write.purpose == Purpose::kPrune) return;
  if (settled.write.purpose == Purpose::kTick) return scheduler_.on_settled(now, settled, out);
  if (const auto* mark = std::get_if<MarkOp>(settled.write.op.get())) {
    if (applied && mark->what == MarkOp::What::kControl) {
      marking_control_ = false;
      control_.on_marked(now);
    }
    if (applied && mark->what == MarkOp::What::kSchedulesFolder) scheduler_.read_anew(now, out);
    return;
  }
  if (const auto* finish = std::get_if<FinishOp>(settled.write.op.get());
      applied && finish != nullptr && finish->done) {
    history_.add(now, finish->key, settled.modify_index, finish->done->at);
  }
  transitions_.on_settled(now, settled, out);
}

void Queue::on(Instant now, const TasksListed& event, Effects& out) { source_.on(now, event, out); }

void Queue::on(Instant now, const TasksFetched& event, Effects& out) {
  for (const Commits::Settled& settled : commits_.on(now, event, out).settled) {
    settle(now, settled, out);
  }
  source_.on(now, event, out);
}

void Queue::on(Instant now, const CopiesListed& event, Effects& out) {
  commits_.on(now, event, out);
}

void Queue::on(Instant now, const HistoryListed& event, Effects& out) {
  history_.accept(now, event, out);
}

void Queue::on(Instant now, const SchedulesListed& event, Effects& out) {
  scheduler_.on(now, event, out);
}

void Queue::on(Instant now, const JobExited& event, Effects& out) {
  TaskEntry* entry = table_.find(event.attempt);
  if (entry == nullptr) return;  // of a term that is over
  if (entry->state != TaskState::kLeftover) return dispatcher_.on_exit(now, *entry, event, out);
  table_.erase_leftover(*entry);
  const bool last = table_.count(TaskState::kLeftover) == 0;
  if (last && lease().state() == Lease::State::kLost) leadership_.resume(now, 0, out);
}

void Queue::on(Instant now, const Reconfigured& event, Effects& out) {
  const bool had_history = options_.history.has_value();
  const bool followed_jobs = AdaptivePrefetch{options_}.enabled();
  const bool loses_executor = !event.options->runs_all_of(options_);
  table_.reconfigure([&] { options_.take_limits(*event.options); });
  dispatcher_.on_reconfigured(now, lease().holding(), followed_jobs, out);
  if (!lease().holding()) return;
  // Distant tasks do not keep their type, so they are read again.
  if (loses_executor && transitions_.doubt_distant()) source_.read_anew(now, out);
  scheduler_.read_anew(now, out);
  if (options_.history && !had_history) history_.start(now);
  if (!options_.history) history_.stop(out);
}

}  // namespace lictor::core
