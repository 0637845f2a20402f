#include "core/queue.h"

#include <algorithm>
#include <utility>

#include "core/mutant.h"

namespace lictor::core {
namespace {

constexpr Duration kBurst = 100ms;

}  // namespace

Queue::Queue(QueueOptions options, std::uint64_t seed)
    : options_(std::move(options)),
      random_(seed),
      lease_(options_, requests_),
      commits_(options_, requests_),
      listing_(options_, requests_),
      history_(options_, requests_),
      adaptive_(options_),
      last_attempt_(options_.first_attempt - 1) {
  rate_.set(options_.rate_limit);
}

void Queue::step(Instant now, std::span<const Event> events, Effects& out) {
  if (left_) return;
  for (const Event& event : events) {
    std::visit([&](const auto& e) { on(now, e, out); }, event);
  }
  pump(now, out);
}

// What may have become possible through any event.
void Queue::pump(Instant now, Effects& out) {
  on_change(now, lease_.on_time(now, out), out);
  if (lease_.holding()) {
    if (!control_ && now >= control_at_) watch_control(now, out);
    commits_.on_time(now, out);
    read_distant(now, out);
    history_.on_time(now, out);
    stop_timed_out(now, out);
    if (drain_ != Drain::kNone) continue_drain(now, out);
    if (left_) return;
  }
  if (lease_.holding()) {
    schedule_.advance(wall(now));
    const bool was_burst = attempts_.many_due() > 0;
    attempts_.advance(wall(now));
    watch_burst(now, was_burst);
    bury_expired(now, out);
    if (start_holds_.release(now)) schedule_.bring_back();
    // A pause may come while a claim is on its way: what it brings is given back, too.
    const bool paused = paused_ && !mutant(Mutant::kIgnorePause);
    if ((paused || holds_all()) && lease_.trusted(now)) give_back_held(now, out);
    give_back_too_early(now, out);
    start_held(now, out);
    if (now >= held_too_long_at() && lease_.trusted(now) && drain_ == Drain::kNone) {
      adaptive_.give_up();
      give_back_held(now, out);
    }
    commits_.set_urgency(urgency(now));
    std::size_t before = 0;
    do {  // what was sent makes room for more, while transactions in flight are allowed
      claim_next(now, out);
      prune(now);
      before = out.size();
      commits_.send(now, lease_.session(), out);
    } while (out.size() != before);
    listing_.on_time(now, busy(), quiet_at(), out);
  } else if (drain_ != Drain::kNone && now >= drain_give_up_) {
    finish_drain(now, out);
  }
  leave_if_done(out);
}

// Of many that are due at one instant the last is to start before the ends of the first are
// written, which takes Consul more of the processor than starting them takes us. Not for long: what
// was started and is not finished in Consul would run again, were we to die.
void Queue::watch_burst(Instant now, bool was_burst) {
  const bool is_burst = attempts_.many_due() > 0;
  if (is_burst && !was_burst) burst_until_ = now + kBurst;
  const bool is_over = !is_burst || now >= burst_until_ ||
                       attempts_.count(Attempt::State::kSettling) >= options_.max_unacked;
  if (is_over) burst_until_ = Instant::min();
}

// More is ready, or waits to be finished, than the next transaction takes.
bool Queue::busy() const {
  return schedule_.offered_size() + attempts_.ready_size() +
             attempts_.count(Attempt::State::kSettling) >
         options_.max_operations;
}

Commits::Urgency Queue::urgency(Instant now) const {
  constexpr std::size_t kStock = 8;
  if (now < burst_until_) return Commits::Urgency::kLater;
  const std::size_t ready = attempts_.ready_size();
  if (ready == 0 && running() == 0) {
    const bool none_to_run =
        schedule_.offered_size() == 0 && attempts_.count(Attempt::State::kClaiming) == 0;
    return none_to_run ? Commits::Urgency::kLast : Commits::Urgency::kStarving;
  }
  const bool stocked =
      drain_ == Drain::kNone && ready >= std::max<std::size_t>(kStock, 2 * options_.concurrency);
  return stocked ? Commits::Urgency::kNone : Commits::Urgency::kUsual;
}

Instant Queue::quiet_at() const {
  constexpr Duration kBegin = 2ms;  // of a program
  return commits_.in_flight() > 0 ? Instant::max() : last_start_ + kBegin;
}

Instant Queue::next_deadline() const {
  if (stopped_) return Instant::max();
  Instant next = lease_.next_deadline();
  if (drain_ != Drain::kNone) next = std::min(next, drain_give_up_);
  if (!lease_.holding()) return next;
  next = std::min(
      {next, commits_.next_deadline(), listing_.next_deadline(), attempts_.next_timeout()});
  if (drain_ == Drain::kNone && lease_.state() == Lease::State::kLeading) {
    next = std::min({next, rate_at_, ahead_at_, held_too_long_at()});
    // Without room, what makes room wakes us.
    if (commits_.has_room(Instant::min())) next = std::min(next, history_.next_deadline());
  }
  if (!control_) next = std::min(next, control_at_);
  if (drain_ != Drain::kNone && !drain_stopping_) next = std::min(next, drain_until_);
  if (start_holds_.any()) next = std::min(next, start_holds_.first().until);
  if (burst_until_ != Instant::min()) next = std::min(next, burst_until_);
  if (const auto due = attempts_.next_due()) next = std::min(next, instant_of(*due));
  if (const auto due = schedule_.next_due()) next = std::min(next, instant_of(*due));
  if (const auto due = schedule_.next_distant()) {
    next = std::min(next, instant_of(*due - distance(1)));
  }
  // What expires while we may not write stays in the schedule, and is no reason to look.
  if (drain_ == Drain::kNone && lease_.state() == Lease::State::kLeading) {
    if (const auto expiry = schedule_.next_expiry()) next = std::min(next, instant_of(*expiry));
  }
  return next;
}

bool Queue::drained() const {
  return lease_.holding() && listing_.complete() && attempts_.size() == attempts_.early() &&
         commits_.idle() && schedule_.ready_size() == 0 && burying_.empty();
}

Queue::Held Queue::held() const {
  Held held;
  held.distant = schedule_.distant_size();
  held.tasks = schedule_.size() - held.distant;
  held.unacked = attempts_.count(Attempt::State::kSettling);
  held.claimed = attempts_.size() - held.unacked;
  held.writes = commits_.writes();
  held.in_flight = commits_.in_flight();
  held.refused = refused_.size();
  held.notes = tombstones_.size() + burying_.size() + left_alone_.size();
  return held;
}

void Queue::on(Instant, const TimePassed&, Effects&) {}

void Queue::on(Instant now, const Started& event, Effects& out) {
  lease_.start(now, event.previous_session, out);
}

void Queue::on(Instant now, const WallClockRead& event, Effects&) {
  wall_base_ = event.wall;
  wall_base_at_ = now;
  correct_retries(now);
}

void Queue::on(Instant now, const StopRequested&, Effects& out) {
  begin_drain(now, Drain::kStop, out);
}

template <class LeaseEvent>
void Queue::on(Instant now, const LeaseEvent& event, Effects& out) {
  on_change(now, lease_.on(now, event, out), out);
}

void Queue::on(Instant now, const Committed& event, Effects& out) {
  Commits::Result result = commits_.on(now, event, out);
  if (event.outcome == Outcome::kApplied) listing_.wrote(event.modify_index);
  if (result.proof) on_change(now, lease_.proved(now, *result.proof, out), out);
  for (Commits::Settled& settled : result.settled) settle(now, std::move(settled), out);
  if (result.not_leader) on_change(now, lease_.refused(out), out);
}

void Queue::on(Instant now, const TasksFetched& event, Effects& out) {
  for (Commits::Settled& settled : commits_.on(now, event, out).settled) {
    settle(now, std::move(settled), out);
  }
  if (!listing_.accept(now, event, out)) return;
  // What is missing may have been made since: a listing, which has an index, tells what is gone.
  for (const StoredRecord& record : event.records) take_in(now, record, out);
  for (const std::string& key : event.missing) {
    const bool known = schedule_.version(key) || attempts_.find(key) || left_alone_.contains(key);
    if (!known) static_cast<void>(leave_if_unnameable(key, listing_.index(), out));
  }
}

void Queue::on(Instant now, const HistoryListed& event, Effects& out) {
  history_.accept(now, event, out);
}

// What is claimed goes on under the policy that it was claimed under; what was claimed ahead for an
// executor that is gone is given back.
void Queue::on(Instant now, const Reconfigured& event, Effects& out) {
  const bool had_history = options_.history.has_value();
  const bool followed_jobs = adaptive_.enabled();
  const bool loses_executor = !event.options->runs_all_of(options_);
  options_.take_limits(*event.options);
  rate_.set(options_.rate_limit);
  told_no_executor_.clear();
  const auto is_startable = [&](const Task& task) {
    if (policy_of(task) != nullptr) return true;
    // Also of a task that had one until now: it is not taken in again, and waits from here on.
    if (told_no_executor_.insert(task.type).second) {
      out.emplace_back(Fact{Fact::Kind::kNoExecutor, task.key, 0, 0, task.type, {}});
    }
    return false;
  };
  start_holds_.clear();
  schedule_.bring_back();
  schedule_.refresh(is_startable, options_.serialize_retries);
  if (!lease_.holding()) return;
  if (schedule_.next_distant() && loses_executor) {
    // Whose executor is gone the distant tasks do not tell.
    schedule_.doubt_distant();
    listing_.ask_all_anew(now, out);
  }
  if (options_.history && !had_history) history_.start(now);
  if (!options_.history) history_.stop(out);
  // What was held by the jobs' time, and would have gone back by it, too.
  const bool unasked = followed_jobs && !adaptive_.enabled() && options_.prefetch == 0;
  attempts_.for_each([&](Attempt& attempt) {
    const bool held = attempt.state == Attempt::State::kHeld;
    if (held && (unasked || policy_of(*attempt.task) == nullptr))
      give_back(now, attempt, false, out);
  });
}

WallTime Queue::wall(Instant now) const {
  return wall_base_ + std::chrono::floor<std::chrono::milliseconds>(now - wall_base_at_);
}

Instant Queue::instant_of(WallTime time) const {
  // Far times would overflow nanoseconds.
  constexpr std::chrono::milliseconds kFar = std::chrono::hours{24 * 365 * 100};
  if (time <= wall_base_) return wall_base_at_;
  return time - wall_base_ > kFar ? Instant::max() : wall_base_at_ + (time - wall_base_);
}

}  // namespace lictor::core
