#pragma once

// Every transition of a task: an event in a state leads to another state, a write to the store, a
// job's start or stop, a fact. transitions_attempt.cpp has the transitions of our tasks, from claim
// to end. task_state.h defines the states, task_table.h holds the entries, and
// core/dispatch/dispatcher.h decides when a task is claimed and started.

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>

#include "base/random.h"
#include "core/commits/write_batcher.h"
#include "core/effect.h"
#include "core/event.h"
#include "core/leadership/leadership.h"
#include "core/options.h"
#include "core/reading/task_source.h"
#include "core/tasks/first_seen.h"
#include "core/tasks/owners.h"
#include "core/tasks/task_table.h"
#include "core/wall_clock.h"

namespace lictor::core {

class Transitions : public TaskSource::Listener {
 public:
  Transitions(const QueueOptions& options, const Leadership& leadership, TaskTable& table,
              const Owners& owners, WriteBatcher& commits, const WallClock& clock, Random& random);
  /// The source that reads single keys and reports them here.
  void set_source(TaskSource& source) { source_ = &source; }

  // News from the store.
  void on_record(Instant now, const StoredRecord& record, bool in_generation,
                 Effects& out) override;
  void on_generation_read(Instant now, Effects& out) override;
  void on_gone(Instant now, TaskEntry& entry, std::uint64_t index, Effects& out) override;
  bool on_missing(Instant now, const std::string& key, std::uint64_t index, Effects& out) override;
  [[nodiscard]] bool is_deleting(const TaskEntry& entry) const override;
  [[nodiscard]] bool is_stable(const TaskEntry& entry) const override;
  void on_answered_before(Instant time) override { table_.forget_deleted_before(time); }
  void on_restored(const std::string& key) override;
  /// A write of a task has ended.
  void on_settled(Instant now, const WriteBatcher::Settled& settled, Effects& out);

  // Time.
  /// Makes due waiting tasks ready, and reads distant ones that are near.
  void advance(Instant now);
  [[nodiscard]] Instant next_deadline() const;
  /// Moves expired tasks and unreadable records to the dead letters, at most a transaction's worth
  /// at a time, so that other writes are not held up. Only of partitions for which `may_write` is
  /// true.
  void bury_some(Instant now, const std::function<bool(std::uint32_t)>& may_write);
  /// The wall clock was set.
  void on_clock_set(Instant now, Effects& out);

  // Decisions about tasks.
  /// `rate`: the bucket that the claim writes. False: the task ends instead, and no claim is made.
  bool claim(Instant now, TaskEntry& entry, bool due, const std::string& session,
             std::optional<RateMark> rate, Effects& out);
  void start(Instant now, TaskEntry& entry, Effects& out);
  void stop(Instant now, TaskEntry& entry, StopReason why, Effects& out);
  /// Frees a claimed task, which counts as never begun. `why`: for people; may be empty.
  void requeue(Instant now, TaskEntry& entry, std::string why, Effects& out);
  /// Marks a task whose claim is on its way to be given back instead of started.
  void recall(TaskEntry& entry) {
    table_.adjust(entry, [](TaskEntry& e) { e.attempt->recalled = true; });
  }
  void on_exit(Instant now, TaskEntry& entry, const JobExited& exit, Effects& out);
  /// The task's job could not be started, so as far as known no part of it ran. `pause`: how long
  /// no job of its executor is started.
  void on_not_started(Instant now, TaskEntry& entry, std::string error,
                      std::optional<Duration> pause, Effects& out);
  /// A job was asked to stop and did not end in time.
  void on_overdue(Instant now, TaskEntry& entry, Effects& out);
  /// Executors were added or removed.
  void on_reconfigured(Instant now, Effects& out);
  /// Reads every distant task again.
  void doubt_distant();
  /// Another partition was won: reads its tasks.
  void begin_term(std::uint32_t partition);
  /// A partition was lost: stops its running jobs, and keeps only keys and versions of its tasks.
  /// `is_last`: none is held now, and everything but the running jobs is forgotten.
  void end_term(std::uint32_t partition, bool is_last, Effects& out);
  /// A job of an earlier term has ended. `any_held`: its key is read again.
  void forget_leftover(TaskEntry& entry, bool any_held);

  /// `expireAt` passed before the task, which is claimed, was ever started.
  [[nodiscard]] bool is_expired(Instant now, const TaskEntry& entry) const;
  void expire_claimed(Instant now, TaskEntry& entry);

  /// The id that the next attempt would get.
  [[nodiscard]] std::uint64_t next_attempt() const { return last_attempt_ + 1; }

 private:
  static constexpr const char* kExpired = "expireAt passed before it was started";

  void add(Instant now, const TaskEntry& entry, Write write);
  [[nodiscard]] std::uint32_t partition_of(const StoredRecord& record) const;
  void make_foreign(TaskEntry& entry, std::uint32_t partition, std::uint64_t index);
  [[nodiscard]] bool is_held(Instant now, const Task& task) const;
  // Whether the known task was deleted, and the record is a new task of the same name.
  [[nodiscard]] static bool is_another(const TaskEntry& entry, const StoredRecord& record);
  void read_again(TaskEntry& entry);
  void place(Instant now, TaskEntry& entry, const StoredRecord& record, Effects& out,
             bool in_generation = false);
  void place(Instant now, TaskEntry& entry, std::shared_ptr<const Task> task, Effects& out);
  void place_bad(TaskEntry& entry, const BadRecord& record, Effects& out);
  void ignore(TaskEntry& entry, Lack lack, std::uint64_t index, const std::string& why,
              Effects& out);
  void emit_lost(const TaskEntry& entry, Effects& out);
  void emit_no_executor(const Task& task, Effects& out);
  void emit(Fact::Kind kind, const TaskEntry& entry, std::string text, Effects& out,
            Duration took = {});
  [[nodiscard]] WallTime due_at(Instant now, const Task& task) const;
  [[nodiscard]] Instant ready_at(Instant now, const Task& task) const;
  [[nodiscard]] bool is_distant(Instant now, const Task& task, WallTime due) const;
  [[nodiscard]] std::chrono::milliseconds distance(int times) const;

  void on_claim_settled(Instant now, TaskEntry& entry, const WriteBatcher::Settled& settled,
                        Effects& out);
  void on_end_settled(Instant now, TaskEntry& entry, const WriteBatcher::Settled& settled,
                      Effects& out);
  void on_rewrite_applied(Instant now, TaskEntry& entry, const WriteBatcher::Settled& settled,
                          Effects& out);
  void on_void(Instant now, TaskEntry& entry, const WriteBatcher::Settled& settled, Effects& out);
  void withdraw(Instant now, TaskEntry& entry, std::uint64_t index, Effects& out);

  void end_withdrawn(Instant now, TaskEntry& entry, Effects& out);
  void finish(Instant now, TaskEntry& entry, const JobExited& exit, Effects& out);
  void emit_end(const TaskEntry& entry, const Write& write, Effects& out);
  void fail(Instant now, TaskEntry& entry, const std::string& error, const std::string& tail,
            std::optional<Duration> retry_after, Effects& out);
  void lose(Instant now, TaskEntry& entry, const std::string& why, Effects& out);
  void interrupt(Instant now, TaskEntry& entry, std::string reason, std::string why, Effects& out);
  void make_dead(Instant now, TaskEntry& entry, std::string reason, std::string error,
                 std::string tail);
  void rewrite(Instant now, TaskEntry& entry, Purpose purpose, Stamp stamp);
  [[nodiscard]] Instant backoff_end(Instant now, const TaskEntry& entry, std::uint32_t failures);

  const QueueOptions& options_;
  const Leadership& leadership_;
  TaskTable& table_;
  const Owners& owners_;
  WriteBatcher& commits_;
  const WallClock& clock_;
  Random& random_;
  TaskSource* source_ = nullptr;
  std::uint64_t last_attempt_;
  std::set<std::size_t> no_executor_reported_;  // hashes of types
  FirstSeen first_seen_;
};

}  // namespace lictor::core
