#include "core/queue.h"

#include <algorithm>
#include <utility>

namespace lictor::core {

Queue::Queue(QueueOptions options, std::uint64_t seed)
    : options_(std::move(options)),
      random_(seed),
      leadership_(options_, requests_),
      commits_(options_, requests_),
      table_(options_),
      owners_(requests_),
      transitions_(options_, leadership_, table_, owners_, commits_, clock_, random_),
      source_(options_, requests_, table_.keys(), transitions_),
      dispatcher_(options_, table_, transitions_, commits_, clock_, requests_, random_),
      control_(requests_),
      history_(options_, requests_),
      scheduler_(options_, requests_, table_, source_, clock_),
      terms_(options_.partitions),
      modes_(options_.partitions),
      balancer_(options_.node) {
  if (options_.partitions > 1) leadership_.want_only({}, {});
  transitions_.set_source(source_);
}

void Queue::step(Instant now, std::span<const Event> events, Effects& out) {
  if (left_) return;
  // Take readings of the clock first: if the host stood still, no answer from before that proves
  // leadership any more.
  for (const bool readings : {true, false}) {
    for (const Event& event : events) {
      if (std::holds_alternative<WallClockRead>(event) != readings) continue;
      std::visit([&](const auto& e) { on(now, e, out); }, event);
    }
  }
  pump(now, out);
}

// Does everything that has become possible, after any event.
void Queue::pump(Instant now, Effects& out) {
  balance(now);
  on_changes(now, leadership_.on_time(now, out), out);
  if (holds_lock()) {
    control_.on_time(now, out);
    owners_.on_time(now, out);
    commits_.on_time(now, out);
    history_.on_time(now, out);
    scheduler_.on_time(now, out);
    dispatcher_.stop_timed_out(now, out);
    for (std::uint32_t i = 0; i < terms_.size(); ++i) {
      if (terms_[i].drain != Drain::kNone && !terms_[i].drained) continue_drain(now, i, out);
    }
    if (left_) return;
  }
  if (holds_lock()) work(now, out);
  leave_if_done(out);
}

void Queue::work(Instant now, Effects& out) {
  for (std::uint32_t i = 0; i < terms_.size(); ++i) {
    modes_[i] = mode(i, holds_lock(i) && leadership_.trust().holds(now));
  }
  dispatcher_.start_next(now, modes_, out);
  commits_.set_patient(!draining() && dispatcher_.is_stocked());
  mark_missing(now);
  const Dispatcher::Mode& first = modes_.front();
  if (first.trusted && first.ready && !first.draining) scheduler_.make_due(now, commits_, out);
  std::size_t before = 0;
  do {  // sent writes make room for more, while transactions in flight are allowed
    dispatcher_.claim_next(now, modes_, leadership_.session(), out);
    prune(now);
    before = out.size();
    commits_.send(now, leadership_.session(), out);
  } while (out.size() != before);
  source_.on_time(now, dispatcher_.busy(), out);
}

Dispatcher::Mode Queue::mode(std::uint32_t partition, bool trusted) const {
  const Term& term = terms_[partition];
  return {.trusted = trusted,
          .draining = term.drain != Drain::kNone,
          .paused = control_.paused(),
          .ready = source_.has_ended(term.reading) && control_.has_read(term.control) &&
                   owners_.has_read(term.owners)};
}

// Creates keys that must always exist; once while they are missing, as the token may not have the
// right.
void Queue::mark_missing(Instant now) {
  if (!holds_lock(0)) return;
  const auto mark = [&](MarkOp::What what, bool is_missing) {
    if (!is_missing) {
      marking_.erase(what);
    } else if (marking_.insert(what).second) {
      commits_.add(now, {Purpose::kMark, MarkOp{what}, {}});
    }
  };
  mark(MarkOp::What::kTasksFolder, source_.folder_missing());
  mark(MarkOp::What::kControl, control_.missing());
  mark(MarkOp::What::kSchedulesFolder, scheduler_.folder_missing());
}

void Queue::prune(Instant now) {
  if (modes_.front().draining || !modes_.front().trusted || !commits_.has_room(now)) return;
  for (PruneOp& op : history_.take_old(now, clock_.at(now), options_.max_operations / 2)) {
    commits_.add(now, {Purpose::kPrune, std::move(op), {}});
  }
}

Instant Queue::next_deadline() const {
  if (left_) return Instant::max();
  Instant next = std::min(leadership_.next_deadline(), balance_at_);
  if (!holds_lock()) return next;
  const auto leads = [&](std::uint32_t i) {
    return holds_lock(i) && leadership_.trust().state() == Trust::State::kTrusted &&
           terms_[i].drain == Drain::kNone;
  };
  for (const Term& term : terms_) {
    if (term.drained) continue;
    next = std::min(next, term.give_up);
    if (!term.stops_jobs) next = std::min(next, term.drain_until);
  }
  next = std::min({next, commits_.next_deadline(), source_.next_deadline(),
                   transitions_.next_deadline(), dispatcher_.next_deadline(leads),
                   control_.next_deadline(), owners_.next_deadline(), scheduler_.next_reading()});
  // While there is no room, the answer that makes room brings the next call.
  if (leads(0) && commits_.has_room(Instant::min())) {
    next = std::min(next, history_.next_deadline());
    if (mode(0, true).ready) next = std::min(next, scheduler_.next_tick());
  }
  return next;
}

bool Queue::drained() const {
  using enum TaskState;
  const std::size_t due =
      table_.count(Lack::kNothing) + table_.count(Lack::kSerialKey) + table_.count(Lack::kSlot);
  return holds_lock() && source_.complete() && !source_.behind() && commits_.idle() &&
         table_.busy() == table_.claimed_order().early_count() &&
         due + table_.count(kEnding) + table_.count(kBurying) + table_.count(kUnreadable) == 0;
}

Duration Queue::oldest_due(Instant now) const {
  Instant oldest = now;
  const auto any = [](const TaskEntry&) { return true; };
  for (const TaskEntry* first :
       {table_.waiting_order().first_ready(), table_.waiting_order().first_blocked(),
        table_.executor_slots().first_limited(any)}) {
    if (first != nullptr) oldest = std::min(oldest, first->task->ready_at);
  }
  return now - oldest;
}

Duration Queue::lease_left(Instant now) const {
  return leading(now) ? leadership_.trust().until() - now : Duration::zero();
}

Duration Queue::longest_running(Instant now) const {
  Duration longest{};
  table_.for_each_ours([&](const TaskEntry& entry) {
    const bool runs = entry.state == TaskState::kRunning;
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
  stats.refused = table_.count(Lack::kStore);
  using enum TaskState;
  stats.notes = table_.count(kDeleted) + table_.count(kBurying) + table_.count(kIgnored) +
                table_.count(kUnreadable);
  return stats;
}

std::vector<Reason> Queue::why(Instant now, std::string_view key) const {
  std::vector<Reason> reasons;
  const TaskEntry* entry = table_.find(key);
  const std::uint32_t partition = entry == nullptr ? 0 : entry->partition;
  // A task that is not known may be in any partition.
  const bool holds = entry == nullptr ? holds_lock() : holds_lock(partition);
  if (!holds || !leadership_.trust().holds(now)) {
    reasons.push_back({Reason::Kind::kNotLeading});
    if (!holds) return reasons;
  }
  if (entry == nullptr || entry->state == TaskState::kDeleted) {
    reasons.push_back({source_.behind() ? Reason::Kind::kReading : Reason::Kind::kUnknownTask});
  } else {
    dispatcher_.why(now, *entry, mode(partition, true), control_.paused_by(), reasons);
  }
  return reasons;
}

void Queue::on(Instant now, const WallClockRead& event, Effects& out) {
  if (clock_.set(event.at, event.wall)) {
    leadership_.clock_stepped(now, out);
    scheduler_.clock_stepped(now, out);
  }
  transitions_.on_clock_set(now, out);
}

void Queue::on(Instant now, const MembersSeen& event, Effects&) {
  fleet_.members = event.members;
  if (options_.partitions > 1) balance_at_ = now;
}

void Queue::on(Instant now, const StopRequested& event, Effects& out) {
  keeps_locks_ = event.keeps_locks && (keeps_locks_ || !stopping_);
  if (stopping_ && !keeps_locks_) return stop_if_drained(now, out);
  begin_drain(now, Drain::kStop, out);
}

template <class LeadershipReply>
void Queue::on(Instant now, const LeadershipReply& event, Effects& out) {
  on_changes(now, leadership_.on(now, event, out), out);
}

void Queue::on(Instant now, const ControlRead& event, Effects& out) {
  const auto asked_by = control_.on(now, event, out);
  if (!asked_by) return;
  if (!draining()) {
    out.emplace_back(Fact{Fact::Kind::kSteppingDown, {}, *asked_by});
  }
  begin_drain(now, Drain::kStepDown, out);
}

// Only refusals lower the limit. Another agent may take more; that is not worth a try.
void Queue::learn_operations(std::size_t most) {
  if (most != 0) options_.max_operations = std::min(options_.max_operations, most);
}

void Queue::on(Instant now, const Committed& event, Effects& out) {
  learn_operations(event.most_operations);
  const WriteBatcher::Result result = commits_.on(now, event, out);
  if (result.proof) on_changes(now, leadership_.proved(now, *result.proof, out), out);
  for (const WriteBatcher::Settled& settled : result.settled) settle(now, settled, out);
  for (const std::uint32_t partition : result.not_leader) {
    on_changes(now, leadership_.refused(now, partition, out), out);
  }
}

void Queue::settle(Instant now, const WriteBatcher::Settled& settled, Effects& out) {
  const bool applied = settled.verdict == WriteBatcher::Verdict::kApplied;
  if (settled.write.purpose == Purpose::kPrune) return;
  if (settled.write.purpose == Purpose::kTick) return scheduler_.on_settled(now, settled, out);
  if (const auto* mark = std::get_if<MarkOp>(&settled.write.op)) {
    if (applied && mark->what == MarkOp::What::kControl) {
      marking_.erase(mark->what);
      control_.on_marked(now);
    }
    if (applied && mark->what == MarkOp::What::kSchedulesFolder) scheduler_.read_again(now, out);
    return;
  }
  if (const auto* finish = std::get_if<FinishOp>(&settled.write.op);
      applied && finish != nullptr && finish->done && holds_lock(0)) {
    history_.add(now, finish->key, settled.modify_index, finish->done->at);
  }
  if (applied && !std::holds_alternative<RestampOp>(settled.write.op)) source_.deleted(now, 1);
  dispatcher_.on_settled(now, settled, out);
  transitions_.on_settled(now, settled, out);
}

void Queue::on(Instant now, const TasksChecked& event, Effects& out) {
  learn_operations(event.most_operations);
  source_.on(now, event, out);
}

void Queue::on(Instant now, const TasksFetched& event, Effects& out) {
  learn_operations(event.most_operations);
  for (const WriteBatcher::Settled& settled : commits_.on(now, event, out).settled) {
    settle(now, settled, out);
  }
  source_.on(now, event, out);
}

void Queue::on(Instant now, const JobExited& event, Effects& out) {
  TaskEntry* entry = table_.find(event.attempt);
  if (entry == nullptr) return;  // it belongs to a term that is over
  if (entry->state != TaskState::kLeftover) return dispatcher_.on_exit(now, *entry, event, out);
  const std::uint32_t partition = entry->partition;
  transitions_.forget_leftover(*entry, holds_lock());
  const bool last = table_.busy_in(partition).leftovers == 0;
  if (last && leadership_.lock(partition).state() == Lock::State::kLost) {
    leadership_.resume(now, partition, out);
  }
}

void Queue::on(Instant now, const Reconfigured& event, Effects& out) {
  const bool had_history = options_.history.has_value();
  const bool followed_jobs = AdaptivePrefetch{options_}.enabled();
  const bool loses_executor = !event.options->runs_all_of(options_);
  table_.reconfigure([&] { options_.take_limits(*event.options); });
  dispatcher_.on_reconfigured(now, holds_lock(), followed_jobs, out);
  if (!holds_lock()) return;
  // Distant tasks do not keep their type, so they are read again.
  if (loses_executor) transitions_.doubt_distant();
  if (!holds_lock(0)) return;
  scheduler_.read_again(now, out);
  if (options_.history && !had_history) history_.start(now);
  if (!options_.history) history_.stop(out);
}

}  // namespace lictor::core
