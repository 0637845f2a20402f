#include "core/leadership/division.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "core/options.h"
#include "core/requests.h"

namespace lictor::core {
namespace {

using namespace std::chrono_literals;

// A change among few members is known within 2 s; the more members, the less often each asks.
constexpr Duration kAskInterval = 2s;
constexpr Duration kAskIntervalPerMember = 40ms;
// A queue whose hosts all want one partition has no number, unless a stranger writes one. Hosts
// that start later use that number, and the leader that serves one partition has to notice.
constexpr Duration kStrangerInterval = 10s;
// If another client removes the number again and again, this daemon writes it at most so often.
constexpr Duration kLeastInterval = 1s;
// A host with the number's serialize_by takes a lock sooner than one with another gives up waiting.
constexpr Duration kUnusedFor = 5s;
// An operator grants a missing rule by hand.
constexpr Duration kRightPause = 1min;
// Each try of a change stops all jobs. Doubled after each refusal, since only a person can fix it.
constexpr Duration kMostRefusedPause = 1h;

}  // namespace

std::uint32_t agreed_partitions(const std::vector<FleetMember>& members) {
  if (members.empty()) return 0;
  const bool agree = std::all_of(members.begin(), members.end(), [&](const FleetMember& each) {
    return each.desired_partitions == members.front().desired_partitions;
  });
  return agree ? members.front().desired_partitions : 0;
}

CountChange plan_change(const std::vector<FleetMember>& members, const FleetMember& self,
                        std::uint32_t count) {
  std::vector<FleetMember> all = members;
  const auto own = std::find_if(all.begin(), all.end(), [&](const FleetMember& each) {
    return each.member.id == self.member.id;
  });
  if (own == all.end()) {
    all.push_back(self);
  } else {
    own->desired_partitions = self.desired_partitions;  // the entry that was read may be older
  }
  CountChange change;
  for (const FleetMember& each : all) change.members.push_back(each.member);
  const std::uint32_t desired_partitions = agreed_partitions(all);
  if (desired_partitions == count || desired_partitions == 0) return change;
  change.to = desired_partitions;
  // With one partition nothing is handed over: its leader changes the number, by its one lock.
  change.is_ours = count == 1;
  if (count == 1) return change;
  const auto first = std::min_element(
      change.members.begin(), change.members.end(),
      [](const BalancerMember& a, const BalancerMember& b) { return a.id < b.id; });
  change.is_ours = first->id == self.member.id;
  for (BalancerMember& member : change.members) member.draining = member.id != first->id;
  return change;
}

void Division::reconfigure(Instant now, std::uint32_t weight, std::uint32_t wanted) {
  weight_ = weight;
  if (std::exchange(wanted_, wanted) != wanted) {
    may_change_ = false;
    ask_right_at_ = Instant::min();
    refused_pause_ = {};
  }
  if (wanted_ > 1) ask_at_ = std::min(ask_at_, now);
}

void Division::on_time(Instant now, const Service& service, DivisionActs& out) {
  if (stopping_) return;
  const bool serves = phase_ != Phase::kUnknown && phase_ != Phase::kEnding;
  if (serves && service.count_changed) {
    // Also if this host's configuration asks for one partition, and it was cut off while the others
    // divided the queue.
    out.emplace_back(DivisionNote{Note::kChanged});
    end(out);
  } else if (phase_ == Phase::kServing && is_writer() && service.holds_all) {
    out.emplace_back(DivisionNote{Note::kFinishes, {}, change_.to});
    phase_ = Phase::kFinishing;
    out.emplace_back(EndService{true});
  } else if (phase_ == Phase::kFinishing && service.kept_by && asked_ == Pending::kNothing) {
    write(service, out);
  }
  // If a job did not end, the service stops before the number is changed.
  if (phase_ != Phase::kUnknown && service.stopped) {
    phase_ = Phase::kEnding;
    if (!service.any_job) drop(now, service, out);
  }
  if (asked_ == Pending::kNothing && now >= ask_at_) ask_next(now, out);
}

Instant Division::next_deadline() const {
  return asked_ != Pending::kNothing || stopping_ ? Instant::max() : ask_at_;
}

void Division::ask(Pending what, DivisionAct request, DivisionActs& out) {
  asked_ = what;
  out.push_back(std::move(request));
}

void Division::ask_next(Instant now, DivisionActs& out) {
  ask_at_ = now + kRetryPause;
  const bool serves = phase_ != Phase::kUnknown;
  if (wanted_ > 1 || has_count_) return ask(Pending::kFleet, ReadFleet{!serves}, out);
  if (serves) ask_at_ = now + kStrangerInterval;
  ask(Pending::kCount, ReadCount{}, out);
}

void Division::on(Instant now, const DivisionReply& reply, DivisionActs& out) {
  const Pending asked = std::exchange(asked_, Pending::kNothing);
  if (stopping_) return;
  switch (asked) {
    // A queue that should have one partition has no key with the number. The rights to read or
    // write the key may be missing: then nobody could have divided the queue either.
    case Pending::kCount:
      if (reply.answer == Answer::kYes) {
        has_count_ = true;
        ask_at_ = now;
        return;
      }
      if (phase_ != Phase::kUnknown) {  // served with one partition
        if (reply.answer == Answer::kRefused) ask_at_ = Instant::max();
        return;
      }
      if (reply.answer == Answer::kNo) return ask(Pending::kFleet, ReadFleet{true}, out);
      if (reply.answer == Answer::kRefused) {
        serve({}, out);
        return note_once(Note::kCountUnreadable, reply.error, out);
      }
      return note_once(Note::kRequestFailed, "reading the number of partitions: " + reply.error,
                       out);
    case Pending::kSingle:
      if (reply.answer == Answer::kYes || reply.answer == Answer::kRefused) {
        return serve({1, 0, reply.answer == Answer::kYes}, out);
      }
      return note_once(Note::kRequestFailed, "reading the number of partitions: " + reply.error,
                       out);
    case Pending::kRight:
      return on_right(now, reply, out);
    case Pending::kCreate:
      return on_created(now, reply, out);
    case Pending::kDelete:
      may_delete_ = reply.answer != Answer::kRefused;
      if (reply.answer != Answer::kUnknown) ask_at_ = now;
      return;
    case Pending::kChange:
      return on_changed(now, reply, out);
    case Pending::kFleet:
    case Pending::kNothing:
      return;
  }
}

// Asked again while the right is missing: the daemon is not notified when its token gets rights.
void Division::on_right(Instant now, const DivisionReply& reply, DivisionActs& out) {
  const bool answered = reply.answer == Answer::kYes || reply.answer == Answer::kRefused;
  ask_at_ = now;
  may_change_ = reply.answer == Answer::kYes;
  ask_right_at_ = now + (answered ? kRightPause : kRetryPause);
  if (may_change_) {
    notes_.erase(About::kRight);
  } else if (answered) {
    give_up_change(now, reply.error, out);
  } else {
    ask_at_ = ask_right_at_;
    note_once(Note::kRequestFailed,
              "asking for the right to change the number of partitions: " + reply.error, out);
  }
}

void Division::on_created(Instant now, const DivisionReply& reply, DivisionActs& out) {
  if (reply.answer == Answer::kYes) {
    ask_at_ = next_round(now);
    refused_pause_ = {};
    out.emplace_back(has_count_ ? DivisionNote{Note::kMapped}
                                : DivisionNote{Note::kDivided, {}, wanted_});
  } else {
    ask_at_ = now + kRetryPause;
    if (reply.answer == Answer::kNo) return;  // another host was first, or took a lock
    note_once(Note::kNotWritten, reply.error, out);
    if (!has_count_) return on_refused(now, reply, out);
    if (reply.answer == Answer::kRefused) map_at_ = now + kRightPause;
  }
}

// Whatever the outcome, the queue is served again with Consul's number.
void Division::on_changed(Instant now, const DivisionReply& reply, DivisionActs& out) {
  if (reply.answer == Answer::kYes) {
    refused_pause_ = {};
  } else {
    note_once(Note::kNotChanged, reply.error, out);
    on_refused(now, reply, out);
  }
  if (phase_ == Phase::kWriting) end(out);
}

// A condition that does not hold means another host's change, which the next reading shows. All
// other refusals would come again, and each try stops all jobs.
void Division::on_refused(Instant now, const DivisionReply& reply, DivisionActs& out) {
  if (reply.answer != Answer::kRefused) return;
  refused_pause_ = std::clamp(refused_pause_ * 2, kRightPause, kMostRefusedPause);
  ask_right_at_ = now + refused_pause_;
  give_up_change(now, reply.error, out);
}

// Other hosts see in this host's entry that it no longer asks for the change.
void Division::give_up_change(Instant now, const std::string& error, DivisionActs& out) {
  may_change_ = false;
  ask_right_at_ = std::max(ask_right_at_, now + kRightPause);
  note_once(Note::kMayNotChange,
            "its configuration asks for " + std::to_string(wanted_) + ": " + error, out);
}

void Division::on(Instant now, const FleetRead& fleet, DivisionActs& out) {
  asked_ = Pending::kNothing;
  if (stopping_) return;
  const auto members = static_cast<Duration::rep>(fleet.members.size());
  ask_at_ = now + std::max<Duration>(kAskInterval, kAskIntervalPerMember * members);
  const bool serves = phase_ != Phase::kUnknown;
  // With one partition no right to read the locks of others is needed.
  if (fleet.refused && !serves && wanted_ == 1) {
    return ask(Pending::kSingle, ProbeSingle{}, out);
  }
  if (!fleet.error.empty()) return note_once(Note::kFleetUnreadable, fleet.error, out);
  notes_.erase(About::kMembers);
  const bool to_change = wanted_ != fleet.count.value_or(1) && !may_change_;
  const bool matters = (serves || !fleet.count) && phase_ != Phase::kEnding;
  if (to_change && matters && now >= ask_right_at_) {
    return ask(Pending::kRight, ProbeChange{wanted_}, out);
  }
  if (serves) return on_served(fleet, out);
  on_unserved(now, fleet, out);
}

void Division::on_unserved(Instant now, const FleetRead& fleet, DivisionActs& out) {
  const std::uint32_t count = fleet.count.value_or(1);
  has_count_ = fleet.count.has_value();
  see_locks(now, fleet);
  if (std::string reason = why_locked(now, count, fleet.count_index); !reason.empty()) {
    ask_at_ = now + kRetryPause;
    return note_once(Note::kOldLocks, std::move(reason), out);
  }
  DeleteLocks lost;
  for (const FleetRead::Lock& lock : fleet.locks) {
    const bool is_old = lock.count != count || lock.read.modify_index < fleet.count_index;
    if (is_old && !lock.read.released) lost.locks.push_back(lock);
  }
  if (may_delete_ && !lost.locks.empty()) return ask(Pending::kDelete, std::move(lost), out);
  if (fleet.maps_otherwise) return map_again(now, fleet, out);
  if (fleet.count) {
    serve({count, fleet.count_index, false}, out);
    return send_members(fleet, out);
  }
  if (wanted_ == 1 || !may_change_) return ask(Pending::kSingle, ProbeSingle{}, out);
  if (std::string reason = why_not_create(now, fleet); !reason.empty()) {
    return note_once(Note::kWaits, std::move(reason), out);
  }
  ask(Pending::kCreate, CreateCount{wanted_, fleet.locks}, out);
}

// Hosts with the number's serialize_by still run tasks while one of them holds a lock, or lost one.
void Division::map_again(Instant now, const FleetRead& fleet, DivisionActs& out) {
  std::string reason = why_locked(now, 0, 0);
  if (!reason.empty() || mapped_index_ != fleet.count_index) {
    mapped_index_ = fleet.count_index;
    map_at_ = now + kUnusedFor;
  }
  if (!reason.empty()) return note_once(Note::kMapsOtherwise, std::move(reason), out);
  if (now < map_at_) return;
  ask(Pending::kCreate, CreateCount{*fleet.count, fleet.locks, fleet.count_index}, out);
}

void Division::on_served(const FleetRead& fleet, DivisionActs& out) {
  if (phase_ == Phase::kEnding) return;
  if (fleet.count && fleet.count_index < count_index_) return;  // an older answer
  if (!fleet.count && count_index_ == 0) {                      // there is no number yet
    if (wanted_ == 1 || !may_change_) return;
    if (agreed_partitions(fleet.members) == wanted_) return end(out);
    return note_once(
        Note::kNotDivided,
        "this daemon's configuration asks for " + std::to_string(wanted_) + " partitions", out);
  }
  if (fleet.count_index != count_index_) {
    out.emplace_back(
        DivisionNote{fleet.count ? Note::kChanged : Note::kGone, {}, fleet.count.value_or(0)});
    return end(out);
  }
  send_members(fleet, out);
  if (wanted_ != count_ && change_.to == 0 && may_change_) {
    note_once(Note::kStays,
              "there are " + std::to_string(count_) + ", this daemon's configuration asks for " +
                  std::to_string(wanted_),
              out);
  }
}

void Division::send_members(const FleetRead& fleet, DivisionActs& out) {
  change_ = plan_change(fleet.members, {{node_, weight_}, desired_partitions()}, count_);
  if (phase_ != Phase::kServing || change_.members == sent_members_) return;
  sent_members_ = change_.members;
  out.emplace_back(MembersSeen{sent_members_});
}

// All locks are held and no job runs.
void Division::write(const Service& service, DivisionActs& out) {
  if (!change_.is_ours || !service.holds_all) return end(out);
  phase_ = Phase::kWriting;
  ask(Pending::kChange, ChangeCount{change_.to, count_, count_index_, *service.kept_by}, out);
}

void Division::see_locks(Instant now, const FleetRead& fleet) {
  const auto lose = [&](SeenLock& seen) {
    if (seen.holder) seen.lost_at = now;
    seen.holder.reset();
  };
  std::set<std::string_view> found;
  for (const auto& [key, read, count] : fleet.locks) {
    found.insert(key);
    if (read.session.empty() && read.released) {
      seen_locks_.erase(key);
      continue;
    }
    SeenLock& seen = seen_locks_[key];
    if (seen.modify_index != read.modify_index) seen = {count, read.modify_index, read.holder};
    if (read.session.empty()) lose(seen);
  }
  for (auto& [key, seen] : seen_locks_) {
    if (!found.contains(key)) lose(seen);
  }
}

// A change by lictor is written when no job runs. After a change by a stranger, jobs of the old
// leaders run until those notice, and no lock of the new number keeps others away from them.
// `except`: the number whose locks do not matter if they were acquired after `count_index`.
std::string Division::why_locked(Instant now, std::uint32_t except,
                                 std::uint64_t count_index) const {
  for (const auto& [key, lock] : seen_locks_) {
    if (lock.count == except && lock.modify_index >= count_index) continue;
    if (lock.holder) return (lock.holder->empty() ? "a session" : *lock.holder) + " holds " + key;
    if (now - lock.lost_at < kMostLockDelay) {
      return "the holder of " + key + " was lost, and its lock-delay is not over";
    }
  }
  if (now >= locks_free_from_) return {};
  return "a leader was lost, and its lock-delay is not over";
}

// The first number is written when all members want it, and no leader is left that may not know it.
std::string Division::why_not_create(Instant now, const FleetRead& fleet) const {
  for (const FleetMember& each : fleet.members) {
    if (each.desired_partitions != wanted_ && each.member.id != node_) {
      return each.member.id + " asks for " + std::to_string(each.desired_partitions) +
             " so far, this daemon for " + std::to_string(wanted_);
    }
  }
  return why_locked(now, 0, 0);
}

void Division::end(DivisionActs& out) {
  phase_ = Phase::kEnding;
  out.emplace_back(EndService{});
}

void Division::serve(ServeQueue with, DivisionActs& out) {
  std::erase_if(notes_, [](const auto& each) { return each.first != About::kRight; });
  phase_ = Phase::kServing;
  seen_locks_.clear();
  has_count_ = with.index != 0;
  count_ = with.count;
  count_index_ = with.index;
  out.emplace_back(with);
}

// When to read the number, at the end of a service or once it was written.
Instant Division::next_round(Instant now) {
  return last_round_ = std::max(now, last_round_ + kLeastInterval);
}

void Division::drop(Instant now, const Service& service, DivisionActs& out) {
  phase_ = Phase::kUnknown;
  locks_free_from_ = service.locks_free_from;
  change_ = {};
  sent_members_.clear();
  ask_at_ = next_round(now);
  out.emplace_back(DropService{});
}

Division::About Division::about(Note kind) {
  if (kind == Note::kMayNotChange) return About::kRight;
  const bool is_of_members = kind == Note::kRequestFailed || kind == Note::kFleetUnreadable;
  return is_of_members ? About::kMembers : About::kCount;
}

void Division::note_once(Note kind, std::string error, DivisionActs& out) {
  DivisionNote note{kind, std::move(error)};
  const auto last = notes_.find(about(kind));
  if (last != notes_.end() && last->second.kind == kind && last->second.error == note.error) return;
  notes_.insert_or_assign(about(kind), note);
  out.emplace_back(std::move(note));
}

const DivisionNote* Division::waits_for() const {
  for (const About each : {About::kCount, About::kMembers}) {
    if (const auto note = notes_.find(each); note != notes_.end()) return &note->second;
  }
  return nullptr;
}

}  // namespace lictor::core
