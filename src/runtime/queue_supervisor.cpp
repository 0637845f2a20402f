#include "runtime/queue_supervisor.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/overloaded.h"
#include "runtime/log.h"
#include "wire/fleet.h"

namespace lictor::runtime {
namespace {

using Note = core::DivisionNote::Kind;

// Division only names the kind of a note: the core has no texts for people.
struct NoteWords {
  Note kind;
  Level level;
  const char* message;
};

constexpr NoteWords kNotes[] = {
    {Note::kRequestFailed, Level::kWarn, "a request to Consul failed; trying again"},
    {Note::kCountUnreadable, Level::kWarn,
     "the number of partitions may not be read; this daemon takes it for 1"},
    {Note::kFleetUnreadable, Level::kWarn,
     "the members and partitions of the queue cannot be read"},
    {Note::kMayNotChange, Level::kError,
     "this daemon may not change the number of partitions; it goes on with the number that there "
     "is"},
    {Note::kNotDivided, Level::kWarn, "the queue is not divided until all members want it"},
    {Note::kWaits, Level::kInfo, "waiting until the queue can be divided into partitions"},
    {Note::kOldLocks, Level::kInfo,
     "waiting for the locks of another number of partitions to be free"},
    {Note::kMapsOtherwise, Level::kWarn,
     "this daemon's serialize_by is not that of the daemons that lead; waiting until none leads"},
    {Note::kStays, Level::kWarn,
     "the number of partitions stays until all members want another one"},
    {Note::kNotWritten, Level::kWarn, "the number of partitions could not be written"},
    {Note::kNotChanged, Level::kWarn, "the number of partitions could not be changed"},
    {Note::kDivided, Level::kInfo, "the queue is divided into partitions"},
    {Note::kMapped, Level::kInfo, "the partitions of the queue go by this daemon's serialize_by"},
    {Note::kFinishes, Level::kInfo,
     "the number of partitions changes: this daemon holds all and ends its jobs"},
    {Note::kChanged, Level::kInfo, "the number of partitions has changed"},
    {Note::kGone, Level::kInfo, "the number of partitions is gone"},
};

const NoteWords& words_of(Note kind) { return *std::ranges::find(kNotes, kind, &NoteWords::kind); }

}  // namespace

QueueSupervisor::QueueSupervisor(QueueDriver::Parts parts, std::uint32_t weight, Loop& loop,
                                 net::Transport& transport, net::ConsulClient& commits,
                                 exec::ProcessHost& host)
    : first_attempt_(parts.options.first_attempt),
      parts_(std::move(parts)),
      division_(parts_.options.node, weight, parts_.options.partitions),
      loop_(loop),
      transport_(transport),
      commits_(commits),
      host_(host) {}

// `name`: of the request, in the metrics. The acts of each reply are carried out before the next
// reply is judged, since an act may make or end the driver.
template <class Ask, class... Time>
void QueueSupervisor::ask(const char* name, const Ask& ask, Time... at) {
  transport_.send(
      wire::encode(parts_.binding, ask, at...),
      [this, name, ask, &loop = loop_, alive = std::weak_ptr{alive_}](http::Response response) {
        const Duration took = boot_now() - response.sent_at;
        loop.post([this, name, ask, alive, took, response = std::move(response)] {
          if (alive.expired()) return;  // then `this` is gone, too
          for (Observer* observer : parts_.observers) {
            observer->on_reply(this->name(), name, response, took);
          }
          core::DivisionActs acts;
          division_.on(now_, wire::decode(parts_.binding, ask, response), acts);
          carry_out(acts);
          step(now_);
        });
      });
}

void QueueSupervisor::request_stop() {
  stopping_ = true;
  division_.stop();
  if (driver_) driver_->request_stop();
}

// Names, paths and the timing of leases keep their first values (QueueOptions::take_limits).
// Without a driver the new runners wait here for the next one.
void QueueSupervisor::reconfigure(const core::QueueOptions& options, std::uint32_t weight,
                                  Runners runners) {
  parts_.options.take_limits(options);
  division_.reconfigure(boot_now(), weight, options.partitions);
  if (driver_) return driver_->reconfigure(options, std::move(runners));
  parts_.runners = std::move(runners);
}

std::uint64_t QueueSupervisor::given_up() const {
  if (driver_ && driver_->core().holds_lock()) return 0;
  const std::uint64_t next = driver_ ? driver_->next_attempt() : parts_.options.first_attempt;
  return next == first_attempt_ ? 0 : next - 1;
}

std::string QueueSupervisor::waits_for() const {
  if (driver_) {
    const std::string refusal = driver_->core().first_refusal();
    return refusal.empty() ? refusal : "Consul refuses what is to be written: " + refusal;
  }
  const core::DivisionNote* note = division_.waits_for();
  if (note == nullptr) return "the number of its partitions is not known yet";
  return std::string{words_of(note->kind).message} + ": " + note->error;
}

void QueueSupervisor::step(Instant now) {
  now_ = now;
  if (driver_) driver_->step(now);
  core::DivisionActs acts;
  division_.on_time(now, service(), acts);
  carry_out(acts);
}

Instant QueueSupervisor::next_deadline() const {
  const Instant division = division_.next_deadline();
  return driver_ ? std::min(division, driver_->next_deadline()) : division;
}

core::Division::Service QueueSupervisor::service() const {
  if (!driver_) return {};
  return {.count_changed = driver_->count_changed(),
          .holds_all = division_.is_writer() && driver_->holds_all(),
          .stopped = driver_->stopped(),
          .any_job = driver_->any_job(),
          .kept_by = driver_->locks_kept_by(),
          .locks_free_from = driver_->locks_free_from()};
}

void QueueSupervisor::carry_out(const core::DivisionActs& acts) {
  for (const core::DivisionAct& act : acts) {
    std::visit(
        Overloaded{
            [&](const core::ReadFleet& each) { ask("read_members", each); },
            [&](const core::ReadCount& each) { ask("read_partitions", each); },
            [&](const core::ProbeSingle& each) { ask("read_partitions", each); },
            [&](const core::ProbeChange& each) { ask("probe_partitions", each); },
            [&](const core::CreateCount& each) { ask("create_partitions", each, wall_now()); },
            [&](const core::DeleteLocks& each) { ask("delete_lost_locks", each); },
            [&](const core::ChangeCount& each) { ask("change_partitions", each); },
            [&](const core::ServeQueue& each) { carry_out(each); },
            [&](const core::EndService& each) { driver_->request_stop(each.keeps_locks); },
            [&](const core::DropService&) { drop_driver(); },
            [&](const core::MembersSeen& each) { driver_->members_seen(each.members); },
            [&](const core::DivisionNote& each) { write_note(each); }},
        act);
  }
}

void QueueSupervisor::carry_out(const core::ServeQueue& act) {
  QueueDriver::Parts parts{parts_.options,    parts_.binding,   std::move(parts_.runners),
                           parts_.lease_slot, parts_.state_dir, parts_.observers};
  parts.options.partitions = act.count;
  parts.options.partitions_index = act.index;
  parts.options.only_single = act.only_single;
  driver_ = std::make_unique<QueueDriver>(std::move(parts), loop_, transport_, commits_, host_);
  driver_->start();
  driver_->step(boot_now());  // its first requests go out in this turn
}

void QueueSupervisor::drop_driver() {
  parts_.options.first_attempt = driver_->next_attempt();
  parts_.runners = driver_->take_runners();
  driver_.reset();
}

void QueueSupervisor::write_note(const core::DivisionNote& note) const {
  const NoteWords& words = words_of(note.kind);
  const auto number = [](std::uint32_t count) { return count == 0 ? "" : std::to_string(count); };
  const bool is_change =
      note.kind == Note::kFinishes || note.kind == Note::kChanged || note.kind == Note::kGone;
  log(words.level, words.message,
      {{"queue", name()},
       {"before", is_change ? number(division_.count()) : ""},
       {"partitions", number(note.partitions)},
       {"error", note.error}});
}

}  // namespace lictor::runtime
