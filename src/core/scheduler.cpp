#include "core/scheduler.h"

#include <algorithm>
#include <vector>

namespace lictor::core {
namespace {

using schedule::Tick;
using std::chrono::ceil;
using std::chrono::floor;
using std::chrono::seconds;

// After a reading comes a pause of kPace times its cost, at least kLeastPause: our own writes wake
// the blocking query, too.
constexpr Duration kLeastPause = 1s;
constexpr int kPace = 50;
// Without the folder key a blocking query would wake on every write of the cluster.
constexpr Duration kPollPause = 10s;
constexpr Duration kLookAgain = 100ms;
// Two hosts' clocks may differ by this much.
constexpr Duration kFarAhead = 1min;

constexpr Tick kDueNow = Tick::min();

}  // namespace

void Scheduler::start(Instant now, Effects& out) { ask(now, 0, out); }

void Scheduler::stop(Effects& out) {
  cancel(request_, out);
  read_at_ = Instant::max();
  not_before_ = Instant::min();
  entries_.clear();
  due_.clear();
  index_ = 0;
  folder_missing_ = false;
  trouble_.over();
}

// Reads by a quorum, and soon, but not in a loop while our writes are not applied.
void Scheduler::read_again(Instant now, Effects& out) {
  if (request_ && asked_ == 0) return;
  cancel(request_, out);
  index_ = 0;
  read_at_ = std::max(now, asked_at_ + kLeastPause);
  on_time(now, out);
}

void Scheduler::ask(Instant now, std::uint64_t index, Effects& out) {
  read_at_ = Instant::max();
  asked_ = index;
  asked_at_ = now;
  request_ = requests_.next();
  out.emplace_back(ListSchedules{request_, index});
}

void Scheduler::on_time(Instant now, Effects& out) {
  if (now < read_at_) return;
  ask(now, folder_missing_ ? 0 : index_, out);
}

void Scheduler::on(Instant now, const SchedulesListed& reply, Effects& out) {
  if (reply.request != request_) return;
  request_ = {};
  if (!reply.ok && asked_ != 0 && failures_.keeps_index(reply.over_limit)) {
    read_at_ = now + kLeastPause;
    return;
  }
  if (!reply.ok) {
    index_ = 0;
    read_at_ = now + kRefusedPause;
    trouble_.report("listing the schedules", reply.error, out);
    return;
  }
  trouble_.over();
  failures_.over();
  if (asked_ != 0 && reply.consul_index < index_) return ask(now, 0, out);  // a lagging server
  index_ = reply.consul_index;
  read_at_ = now + std::max(kLeastPause, reply.cost * kPace);
  // A query that waited was woken by the change. Otherwise the change came since the last answer.
  const bool waited = asked_ != 0 && now - asked_at_ >= kLeastPause;
  held_until_ = waited ? now - kLeastPause : answered_at_;
  answered_at_ = now;
  if (reply.unchanged) return;
  folder_missing_ = !reply.marker;
  if (folder_missing_) read_at_ = now + kPollPause;

  std::set<std::string_view> names;
  for (const SchedulesListed::Entry& listed : reply.entries) {
    names.insert(listed.name);
    take(now, listed, out);
  }
  for (auto it = entries_.begin(); it != entries_.end();) {
    // A listing without the folder key proves nothing: a token without the right sees the same.
    const bool adding = it->second.writing && it->second.known.modify_index == 0;
    const bool is_older = it->second.known.modify_index > index_ && !shows_present(it->second);
    const bool gone = reply.marker && !names.contains(it->first) && !adding && !is_older;
    if (gone) remove(it->first, it->second);
    it = gone ? entries_.erase(it) : std::next(it);
  }
  if (reply.marker) add_configured(out);
  if (asked_ != 0) return;
  for (auto& [name, entry] : entries_) {
    if (std::exchange(entry.outdated, false) || differs(name, entry)) place(name, entry);
  }
}

const ConfiguredSchedule* Scheduler::configured(const std::string& name) const {
  const auto found = options_.schedules.find(name);
  return found == options_.schedules.end() ? nullptr : &found->second;
}

// Gives a schedule that is not stored an entry without a version.
void Scheduler::add_configured(Effects& out) {
  for (const auto& [name, wanted] : options_.schedules) {
    const auto [it, is_new] = entries_.try_emplace(name);
    Entry& entry = it->second;
    if (is_new) {
      entry.known.key = wanted.key;
      place(name, entry);
    }
    const auto& stored = entry.known.definition;
    const bool taken = entry.known.modify_index != 0 && (!stored || stored->configured.empty());
    if (taken && !entry.taken_reported) {
      out.emplace_back(Fact{Fact::Kind::kScheduleTaken, wanted.key});
    }
    entry.taken_reported = taken;
  }
}

// Whether the configuration wants another version than the stored one.
bool Scheduler::differs(const std::string& name, const Entry& entry) const {
  const ConfiguredSchedule* wanted = configured(name);
  if (entry.known.modify_index == 0) return wanted != nullptr;
  const schedule::Definition* stored = entry.known.definition.get();
  if (stored == nullptr || stored->configured.empty()) return false;
  return wanted == nullptr || stored->configured != wanted->definition->configured ||
         (wanted->sets_paused && stored->paused != wanted->definition->paused);
}

// A new rule counts from now. The leader's and the operator's changes stay.
void Scheduler::configure(Instant now, const Entry& entry, ScheduleOp& op) const {
  const ConfiguredSchedule* wanted = configured(op.name);
  op.erases = wanted == nullptr;
  if (op.erases) return;
  const schedule::Definition* stored = entry.known.definition.get();
  const bool same_rule = stored != nullptr && stored->rule == wanted->definition->rule;
  if (!same_rule) op.last = std::max(op.last, tick_at(now));
  op.pauses = !wanted->sets_paused && stored != nullptr && stored->paused;
  op.record = wanted->record;
  op.definition = wanted->definition;
}

// Whether the listing at hand shows the stored version, also where a restored snapshot has brought
// back an older one: it was read by a quorum, after our last write.
bool Scheduler::shows_present(const Entry& entry) const {
  return asked_ == 0 && !entry.writing && asked_at_ >= entry.wrote_at;
}

void Scheduler::take(Instant now, const SchedulesListed::Entry& listed, Effects& out) {
  const auto [it, is_new] = entries_.try_emplace(listed.name);
  Entry& entry = it->second;
  const bool newer = listed.modify_index > entry.known.modify_index ||
                     (listed.modify_index != entry.known.modify_index && shows_present(entry));
  // Another definition of the same version: time zones were read again.
  const bool redefined = listed.modify_index == entry.known.modify_index &&
                         listed.definition != entry.known.definition;
  if (!newer && !redefined) return;
  // A tick in a pause is not on time, however recent.
  const auto is_paused = [](const SchedulesListed::Entry& version) {
    return version.definition && version.definition->paused;
  };
  if (is_paused(entry.known) && !is_paused(listed)) entry.paused_until = tick_at(held_until_);
  if (newer && listed.definition) {
    entry.last = last_of(now, is_new ? nullptr : &entry, listed, entry.noted);
  }
  if (newer) entry.outdated = false;
  // The last task may be one of an earlier leader, of "lictor schedule run", or of ours whose write
  // had no answer. The known names may be older.
  if (listed.last_task_key != entry.known.last_task_key) {
    entry.made_at = listed.modify_index;
    entry.fetched = false;
  }
  entry.too_large = false;
  entry.known = listed;
  place(it->first, entry);
  if (!listed.definition) return emit_fault(entry, listed.error, out);
  if (newer) emit_if_ahead(now, entry, out);
}

void Scheduler::clock_stepped(Instant now, Effects& out) const {
  for (const auto& [name, entry] : entries_) emit_if_ahead(now, entry, out);
}

// The clock was ahead when the last tick was made, or has been set back since.
void Scheduler::emit_if_ahead(Instant now, const Entry& entry, Effects& out) const {
  const Duration ahead = -clock_.since(now, entry.last);
  if (!entry.known.definition || !entry.noted || ahead <= kFarAhead) return;
  out.emplace_back(
      Fact{Fact::Kind::kScheduleAhead, entry.known.key, schedule::tick_text(entry.last), ahead});
}

// The tick up to which the new version is dealt with. `noted`: the version itself says so.
Tick Scheduler::last_of(Instant now, const Entry* before, const SchedulesListed::Entry& listed,
                        bool& noted) const {
  const std::optional<Tick>& stored = listed.definition->last_tick;
  const bool same_key = before != nullptr && before->known.definition != nullptr &&
                        before->known.create_index == listed.create_index;
  const bool same_rule = same_key && before->known.definition->rule == listed.definition->rule;
  Tick last = tick_at(now);
  if (same_rule && !stored) {
    last = before->last;
  } else if (stored && same_key && !same_rule && *stored == before->last) {
    last = std::max(*stored, last);  // the new rule must not make up for ticks that never were
  } else if (stored) {
    last = *stored;
  }
  noted = stored == last;
  return last;
}

void Scheduler::emit_fault(const Entry& entry, const std::string& why, Effects& out) const {
  out.emplace_back(Fact{Fact::Kind::kScheduleFault, entry.known.key, why});
}

// Finds the next tick. An entry that has to wait has none until then.
void Scheduler::place(const std::string& name, Entry& entry) {
  remove(name, entry);
  if (entry.too_large || entry.writing || entry.outdated) return;
  const schedule::Definition* definition = entry.known.definition.get();
  const bool is_read = definition != nullptr;
  if (differs(name, entry) || (is_read && !entry.noted)) {
    entry.next = kDueNow;
  } else if (is_read && !definition->paused) {
    entry.next = definition->schedule.next_after(entry.last);
  }
  if (entry.next) due_.emplace(*entry.next, name);
}

void Scheduler::remove(const std::string& name, Entry& entry) {
  if (entry.next) due_.erase({*entry.next, name});
  entry.next.reset();
}

Tick Scheduler::tick_at(Instant now) const { return floor<seconds>(clock_.at(now)); }

// A tick is on time if made within the longest takeover: the next leader makes it.
seconds Scheduler::grace() const {
  constexpr Duration kLeast = 1min;
  return ceil<seconds>(std::max(
      kLeast, 2 * options_.session_ttl + options_.lock_delay + 3 * options_.request_timeout));
}

Scheduler::Lives Scheduler::last_task_lives(const Entry& entry) const {
  const std::string& key = entry.known.last_task_key;
  if (key.empty()) return Lives::kNo;
  if (const TaskEntry* task = table_.find(key)) {
    return task->state == TaskState::kDeleted ? Lives::kNo : Lives::kYes;
  }
  const bool is_read =
      source_.has_read(key, entry.made_at) || (entry.fetched && !source_.will_read(key));
  return is_read ? Lives::kNo : Lives::kUnknown;
}

// The write that is due; std::nullopt while it is unknown whether the last task is over.
std::optional<ScheduleOp> Scheduler::decide(Instant now, const std::string& name,
                                            Entry& entry) const {
  ScheduleOp op{entry.known.key,
                entry.known.modify_index,
                name,
                entry.known.record,
                entry.known.definition,
                entry.last,
                {},
                false,
                entry.known.flags};
  // The record may be older than a write of this term.
  if (const std::string& key = entry.known.last_task_key; !key.empty()) {
    op.last_task = key.substr(entry.known.tasks_prefix.size());
  }
  entry.makes_task = entry.overlaps = false;
  entry.skipped = 0;
  entry.configures = differs(name, entry);
  if (entry.configures) configure(now, entry, op);
  if (entry.configures || !entry.noted) return op;
  const schedule::Definition& definition = *entry.known.definition;
  const Tick late_until = std::max(tick_at(now) - grace() - seconds{1}, entry.paused_until);
  const schedule::Due due = schedule::due_ticks(definition.schedule, definition.missed, entry.last,
                                                tick_at(now), late_until);
  op.last = due.last.value_or(entry.last);
  entry.skipped = due.skipped;
  if (due.make.empty()) return op;
  if (definition.overlap == schedule::Overlap::kSkip) {
    const Lives lives = last_task_lives(entry);
    if (lives == Lives::kUnknown) return std::nullopt;
    entry.overlaps = lives == Lives::kYes;
  }
  if (entry.overlaps) {
    entry.skipped += due.make.size();
    return op;
  }
  op.last = due.make.front();
  op.last_task = schedule::tick_id(name, op.last);
  op.makes_task = entry.makes_task = true;
  entry.skipped = definition.schedule.count(entry.last, op.last) - 1;
  return op;
}

// Writes ticks in their order, as far as transactions have room. A schedule whose last task may
// still live is looked at again after kLookAgain.
void Scheduler::make_due(Instant now, WriteBatcher& commits, Effects& out) {
  if (now < not_before_) return;
  not_before_ = Instant::min();
  const Tick tick = tick_at(now);
  for (auto it = due_.begin(); it != due_.end() && it->first <= tick && commits.has_room(now);) {
    const std::string name = (it++)->second;
    Entry& entry = entries_.at(name);
    std::optional<ScheduleOp> op = decide(now, name, entry);
    if (!op) {
      if (!std::exchange(entry.fetched, true)) source_.fetch(entry.known.last_task_key);
      not_before_ = now + kLookAgain;
      continue;
    }
    remove(name, entry);
    if (!commits.fits(*op)) {
      entry.too_large = true;
      emit_fault(entry, "the task is too large for one of Consul's transactions", out);
      continue;
    }
    entry.writing = true;
    commits.add(now, {Purpose::kTick, *std::move(op), {}});
  }
}

// A tick was written, or not. After kVoid another client or leader has written the schedule: a
// quorum read shows how. After kRefused the next reading decides, so that a missing right causes no
// loop.
void Scheduler::on_settled(Instant now, const WriteBatcher::Settled& settled, Effects& out) {
  const ScheduleOp& op = std::get<ScheduleOp>(settled.write.op);
  const auto it = entries_.find(op.name);
  if (it == entries_.end() || !std::exchange(it->second.writing, false)) return;
  Entry& entry = it->second;
  entry.wrote_at = now;
  switch (settled.verdict) {
    case WriteBatcher::Verdict::kApplied: {
      if (entry.configures) {
        const char* done = op.erases ? "removed" : op.index == 0 ? "added" : "changed";
        out.emplace_back(Fact{Fact::Kind::kScheduleConfigured, op.key, done});
        entry.outdated = entry.known.modify_index <= op.index;
        break;
      }
      entry.last = std::max(entry.last, op.last);
      const bool newest = settled.modify_index > entry.known.modify_index;
      if (newest) {
        entry.known.modify_index = settled.modify_index;
        entry.noted = true;
      } else {
        entry.noted = entry.noted && entry.known.definition &&
                      entry.known.definition->last_tick == entry.last;
      }
      const std::string task = entry.known.tasks_prefix + schedule::tick_id(op.name, op.last);
      if (entry.makes_task) {
        entry.known.last_task_key = task;
        entry.made_at = settled.modify_index;
        entry.fetched = false;
        Fact made{op.makes_task ? Fact::Kind::kTickMade : Fact::Kind::kTickExists, task};
        made.late = clock_.since(now, op.last);
        out.emplace_back(std::move(made));
      }
      if (entry.skipped > 0) {
        Fact skipped{entry.overlaps ? Fact::Kind::kTicksOverlap : Fact::Kind::kTicksMissed,
                     entry.known.key};
        skipped.count = entry.skipped;
        out.emplace_back(std::move(skipped));
      }
      break;
    }
    case WriteBatcher::Verdict::kNoToken:  // for claims only
    case WriteBatcher::Verdict::kVoid:     // another client wrote the schedule
      entry.outdated = entry.known.modify_index <= op.index;
      if (entry.outdated) read_again(now, out);
      break;
    case WriteBatcher::Verdict::kRefused:
      entry.outdated = true;  // until the next reading, so that it is not tried in a loop
      cancel(request_, out);
      index_ = 0;
      read_at_ = now + kRefusedPause;
      break;
  }
  place(it->first, entry);
}

Instant Scheduler::next_tick() const {
  if (due_.empty()) return Instant::max();
  const Tick first = due_.begin()->first;
  const Instant due = first == kDueNow ? Instant::min() : clock_.when(first);
  return std::max(due, not_before_);
}

Scheduler::Stats Scheduler::stats() const {
  Stats stats;
  for (const auto& [name, entry] : entries_) {
    if (entry.known.modify_index == 0) continue;
    if (!entry.known.definition || entry.too_large) {
      ++stats.bad;
    } else {
      ++(entry.known.definition->paused ? stats.paused : stats.active);
    }
  }
  return stats;
}

}  // namespace lictor::core
