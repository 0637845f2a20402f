#pragma once

// Makes the tasks of recurring tasks. The schedules are watched by a blocking query. When a tick is
// due, one transaction writes its task, which must not exist, and the schedule with its lastTick,
// which must be the known version: so no tick makes two tasks, whoever leads.
//
//   listed --> next tick --due--> write under way --applied--> next tick
//     ^                                |
//     +----- quorum read <--refused----+
//
// A schedule without lastTick counts from now on: this is written at once. A schedule rewritten
// without lastTick keeps the known one, unless its rule has changed.
//
// Configured schedules are written like the others: a stored one that differs is replaced, and one
// that the configuration no longer has is deleted. Records of other clients stay.
//
// At most one write of a schedule is under way. If a tick is due and its `overlap` needs to know
// whether the last task is over, the tick waits for that: the task's key may be known already;
// otherwise the key is read alone.
//
// Other writes of a schedule make no task: a first lastTick, ticks that are skipped, and a change
// that the configuration wants. A leader that dies between two ticks loses nothing: lastTick in
// Consul says up to when the ticks are dealt with, and `missed` decides about the rest.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "core/commits/write_batcher.h"
#include "core/effect.h"
#include "core/event.h"
#include "core/options.h"
#include "core/reading/task_source.h"
#include "core/requests.h"
#include "core/tasks/task_table.h"
#include "core/wall_clock.h"

namespace lictor::core {

class Scheduler {
 public:
  Scheduler(const QueueOptions& options, Requests& requests, const TaskTable& table,
            TaskSource& source, const WallClock& clock)
      : options_(options), requests_(requests), table_(table), source_(source), clock_(clock) {}

  /// A term begins.
  void start(Instant now, Effects& out);
  void stop(Effects& out);
  /// Reads all schedules again: tzdata may have changed.
  void read_again(Instant now, Effects& out);
  /// The wall clock stepped: schedules may have to wait for it now.
  void clock_stepped(Instant now, Effects& out) const;
  /// Asks for the schedules when it is time.
  void on_time(Instant now, Effects& out);
  void on(Instant now, const SchedulesListed& reply, Effects& out);
  /// Adds the writes of the ticks that are due.
  void make_due(Instant now, WriteBatcher& commits, Effects& out);
  void on_settled(Instant now, const WriteBatcher::Settled& settled, Effects& out);

  /// The schedules' folder key is missing.
  [[nodiscard]] bool folder_missing() const { return folder_missing_; }
  /// When the schedules are to be read.
  [[nodiscard]] Instant next_reading() const { return read_at_; }
  /// When the next tick is due.
  [[nodiscard]] Instant next_tick() const;

  struct Stats {
    std::size_t active = 0;
    std::size_t paused = 0;
    std::size_t bad = 0;  // unreadable, or its tasks are too large
  };
  [[nodiscard]] Stats stats() const;

 private:
  using Tick = schedule::Tick;
  struct Entry {
    SchedulesListed::Entry known;     // newest version
    Tick last{};                      // ticks up to this are dealt with
    Tick paused_until = Tick::min();  // ticks up to this were due in a pause
    bool noted = true;                // `last` is in the store
    bool too_large = false;
    bool outdated = false;  // the next version is still to be read
    // If the last task was made in this term: its ModifyIndex, and whether it was read alone, since
    // no listing came in time.
    std::uint64_t made_at = 0;
    bool fetched = false;
    Instant wrote_at = Instant::min();  // when our last write was settled
    std::optional<Tick> next;           // its place in due_

    // The write under way:
    bool writing = false;
    bool makes_task = false;
    std::uint64_t skipped = 0;
    bool overlaps = false;  // the skipped ticks overlapped; false: nobody made them in time
    bool configures = false;

    bool taken_reported = false;
  };
  using Entries = std::map<std::string, Entry, std::less<>>;

  void ask(Instant now, std::uint64_t index, Effects& out);
  [[nodiscard]] bool shows_present(const Entry& entry) const;
  /// Takes a version from a listing if it is newer, or was read with newer time zones.
  void take(Instant now, const SchedulesListed::Entry& listed, Effects& out);
  [[nodiscard]] Tick last_of(Instant now, const Entry* before, const SchedulesListed::Entry& listed,
                             bool& noted) const;
  void emit_fault(const Entry& entry, const std::string& why, Effects& out) const;
  void emit_if_ahead(Instant now, const Entry& entry, Effects& out) const;
  /// Gives the entry its place in due_, if it has a next tick and need not wait.
  void place(const std::string& name, Entry& entry);
  void remove(const std::string& name, Entry& entry);
  enum class Lives { kYes, kNo, kUnknown };
  [[nodiscard]] Lives last_task_lives(const Entry& entry) const;
  [[nodiscard]] std::optional<ScheduleOp> decide(Instant now, const std::string& name,
                                                 Entry& entry) const;

  /// Adds entries for configured schedules that Consul does not have.
  void add_configured(Effects& out);
  [[nodiscard]] const ConfiguredSchedule* configured(const std::string& name) const;
  /// Whether the configuration wants another version than the stored one.
  [[nodiscard]] bool differs(const std::string& name, const Entry& entry) const;
  void configure(Instant now, const Entry& entry, ScheduleOp& op) const;
  /// Gives the wall clock's second.
  [[nodiscard]] Tick tick_at(Instant now) const;
  /// How late a tick may be made and still counts as on time.
  [[nodiscard]] std::chrono::seconds grace() const;

  const QueueOptions& options_;
  Requests& requests_;
  const TaskTable& table_;
  TaskSource& source_;
  const WallClock& clock_;

  Entries entries_;
  std::set<std::pair<Tick, std::string>> due_;  // by the next tick
  std::uint64_t index_ = 0;                     // of the last listing
  RequestId request_;
  std::uint64_t asked_ = 0;  // the index that the request waits beyond; 0: a quorum read
  Instant asked_at_{};
  Instant answered_at_{};  // the last listing
  Instant held_until_{};   // until then Consul had the state of the listing before the last
  Instant read_at_ = Instant::max();
  Instant not_before_ = Instant::min();  // no tick is made before this
  bool folder_missing_ = false;
  StoreTrouble trouble_;
  WatchFailures failures_;
};

}  // namespace lictor::core
