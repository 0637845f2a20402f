#pragma once

// The effects that a queue wants. They carry no promise of order: where B needs A, the core waits
// for A's reply. The runtime answers every request with the event named beside it, sooner or later.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/id.h"
#include "core/partition.h"
#include "core/task.h"
#include "lictor/time.h"
#include "schedule/ticks.h"

namespace lictor::core {

struct CreateSession {  // SessionCreated
  RequestId request;
};
struct RenewSession {  // SessionRenewed
  RequestId request;
  std::string session;
};
struct DestroySession {  // SessionDestroyed
  RequestId request;
  std::string session;
};

/// Keep the id for a restart of the daemon; empty: forget it.
struct RememberSession {
  std::string session;
};

/// Keep for a restart of the daemon that somebody held the lock at this ModifyIndex, and as far as
/// known nobody at a later one.
struct RememberHolder {
  std::uint32_t partition = 0;
  std::uint64_t index = 0;
};

/// `held_at`: if not 0, the ModifyIndex at which the session already holds the leader key; its
/// value is restored. Otherwise `free_at`: the ModifyIndex at which the key is free; 0: there is no
/// key. If the key has another ModifyIndex, nothing is acquired. `count_index`: see Commit.
/// `if_single`: not while Consul has a number of partitions.
struct AcquireLock {  // LockReplied
  RequestId request;
  std::string session;
  std::uint64_t held_at = 0;
  std::uint64_t free_at = 0;
  Partition partition{};
  std::uint64_t count_index = 0;
  bool if_single = false;
};
/// `index`: the ModifyIndex that the leader key must still have. Otherwise a release believed lost
/// could land after the same session acquired again, and free the lock without lock-delay.
struct ReleaseLock {  // UnlockReplied
  RequestId request;
  std::string session;
  std::uint64_t index = 0;
  Partition partition{};
};

/// `consistent`: a quorum read, at once. Otherwise a blocking query from `index` (0: at once).
/// `held`: the lock is ours, and nothing waits for the answer.
struct ReadLeader {  // LeaderRead
  RequestId request;
  bool consistent = false;
  std::uint64_t index = 0;
  Partition partition{};
  bool held = false;
};
struct WatchControl {  // ControlRead
  RequestId request;
  std::uint64_t index = 0;
};

/// The names of all tasks: a blocking query from `index`; 0: a quorum read, at once.
struct ListTasks {  // TasksListed
  RequestId request;
  std::uint64_t index = 0;
};
/// The values of single tasks, by a quorum read.
struct FetchTasks {  // TasksFetched
  RequestId request;
  std::vector<std::string> keys;  // at most QueueOptions::max_operations
};
/// Asks whether these are still the newest versions, by a quorum read without values.
struct CheckTasks {  // TasksChecked
  struct Version {
    std::string key;
    std::uint64_t index = 0;  // its ModifyIndex
  };
  RequestId request;
  std::vector<Version> versions;  // at most QueueOptions::max_operations
};

/// The queue's bucket of rate_limit, by a quorum read.
struct ReadRate {  // RateRead
  RequestId request;
};

/// The claims that the members have given up, by a quorum read.
struct ReadOwners {  // OwnersRead
  RequestId request;
};

/// The finished tasks kept in the history.
struct ListHistory {  // HistoryListed
  RequestId request;
};

/// The recurring tasks: a blocking query from `index`; 0: a quorum read, at once.
struct ListSchedules {  // SchedulesListed
  RequestId request;
  std::uint64_t index = 0;
};

// Operations of a transaction. Each names the task and the ModifyIndex that it must still have.

/// The queue's bucket after a claim. Written only if its key still has the ModifyIndex `index`; 0:
/// only if there is no such key.
struct RateMark {
  std::uint64_t index = 0;
  WallTime full_at{};
};
/// Rewrites the record with `stamp`: a claim, a retry, a task given back. A claim that takes tokens
/// of rate_limit also writes the bucket; both or nothing.
struct RestampOp {
  std::string key;
  std::uint64_t index = 0;
  std::shared_ptr<const std::string> record;
  Stamp stamp;
  std::uint64_t flags = 0;
  std::optional<RateMark> rate{};
};
/// A KV write that an attempt wants committed together with its finish.
struct KvWrite {
  std::string key;
  std::string value;
  bool erase = false;
  std::optional<std::uint64_t> cas;  // the ModifyIndex that the key must still have; 0: no key yet

  friend bool operator==(const KvWrite&, const KvWrite&) = default;
};
/// The history's record of a finished task.
struct DoneRecord {
  std::shared_ptr<const std::string> record;  // null: too large to be kept
  std::string result;                         // JSON; empty: no result
  bool result_left_out = false;               // the result was too large to be kept
  std::uint32_t attempts = 0;
  std::uint32_t lost = 0;
  WallTime started{};
  WallTime at{};
};
/// Deletes the task, together with `writes` and `done`; all or nothing.
struct FinishOp {
  std::string key;
  std::uint64_t index = 0;
  std::vector<KvWrite> writes{};
  std::shared_ptr<const DoneRecord> done{};
};
/// Deletes an old entry of the history.
struct PruneOp {
  std::string key;  // the task's former key
  std::uint64_t index = 0;
};
/// Moves the task to the dead letters, never over another one: if dead/<id> is taken, to
/// dead/<id>,<index>. The index belongs to the record that ends, so no listing of names is needed.
struct BuryOp {
  std::string key;
  std::uint64_t index = 0;
  std::shared_ptr<const std::string> record;
  bool readable = true;  // the record is a JSON object
  Stamp stamp;
  std::string reason;
  std::string error;
  std::string output_tail;
  WallTime at{};
  // How many names are taken. Above 1 only if a task has such an id, or indexes came again.
  std::uint32_t taken = 0;

  /// The end of the name after dead/<id>.
  [[nodiscard]] std::string name_end() const {
    std::string end;
    for (std::uint32_t i = 0; i < taken; ++i) end += ',' + std::to_string(index);
    return end;
  }
};
/// Makes a key that must always be there, if it is missing: the folder key at the tasks' prefix
/// (a listing without it was filtered by ACLs), or the control key and the schedules' folder key (a
/// blocking query on a missing key wakes on every write near it).
struct MarkOp {
  enum class What { kTasksFolder, kControl, kSchedulesFolder } what = What::kTasksFolder;
};
/// Writes a schedule, whose ticks up to `last` are dealt with. With `makes_task` the task of the
/// tick `last` is made, too; all or nothing.
struct ScheduleOp {
  std::string key;
  std::uint64_t index = 0;  // 0: there is no such schedule
  std::string name;
  std::shared_ptr<const std::string> record;
  std::shared_ptr<const schedule::Definition> definition;
  schedule::Tick last{};
  std::string last_task;  // the id of the last task made, including this tick's
  bool makes_task = false;
  std::uint64_t flags = 0;
  bool pauses = false;  // the record is written as paused
  bool erases = false;  // the schedule is deleted
};

using Op = std::variant<RestampOp, FinishOp, BuryOp, MarkOp, PruneOp, ScheduleOp>;

/// The operations of a transaction, in order.
using Ops = std::vector<Op>;

/// One transaction. Its fence: the session holds the lock of each partition that it writes for, and
/// the queue still has this number of partitions.
struct Commit {  // Committed
  RequestId request;
  std::string session;
  Ops ops;
  std::vector<std::uint32_t> partitions{0};  // in ascending order
  std::uint32_t partition_count = 1;         // of the queue
  std::uint64_t count_index = 0;  // the ModifyIndex of the key with that number; 0: there is none
};

/// The answer is no longer waited for; if it comes, it is ignored.
struct CancelRequest {
  RequestId request;
};

struct StartJob {  // JobExited
  AttemptId attempt;
  std::shared_ptr<const Task> task;
  std::uint64_t fencing_token = 0;
  std::optional<Instant> deadline;  // when the attempt times out
  std::uint32_t partition = 0;      // the partition whose lease it runs under
};
struct StopJob {
  AttemptId attempt;
  Duration grace{};
};

/// Jobs may run until `until`; then the warden kills them.
struct ExtendLease {
  Instant until{};
  std::uint32_t partition = 0;
};
/// No job runs under the lease any more.
struct EndLease {
  std::uint32_t partition = 0;
};

/// Something worth a log line, a counter or an event. The runtime words it.
struct Fact {
  enum class Kind {
    kCampaigning,
    kLeading,
    kLeaseLost,
    kLeaseExpired,
    kLeaseRegained,
    kLeaderRestored,  // another client had overwritten the leader key
    kSteppingDown,
    kSteppedDown,
    kStopped,
    kSessionCreated,
    kSessionLost,
    kLockDelay,  // the last leader didn't release the lock; took: how long we wait
    kClaimed,
    kStarted,
    kDone,
    kFailed,
    kNotStarted,  // on this host, for now; took: how long its executor starts no job
    kDead,
    kGivenBack,
    kLost,
    kWithdrawn,
    kChanged,
    kTooLarge,  // text: its size, and the most that a transaction holds
    kDenied,
    kStoreTrouble,
    kPaused,
    kControlUnreadable,  // the control key; the queue is paused until it is corrected
    kResumed,
    kNoExecutor,
    kResultLeftOut,
    kUnnameable,
    kInFolder,
    kUnwritten,      // leadership ended before Consul confirmed the result
    kDoneLate,       // the job finished after its timeout
    kResultVoid,     // the task was rewritten while its job ran: nothing of this run is written
    kGoesOn,         // it was asked to stop, and its time for that is over; text: why it was asked
    kTickMade,       // key: the task's; late: since the tick
    kTickExists,     // key: the task's, which was there already
    kTicksMissed,    // nobody made `count` ticks of the schedule `key` in time; they are skipped
    kTicksOverlap,   // `count` ticks are skipped: the schedule's last task waits or runs
    kScheduleFault,  // the schedule `key` makes no tasks; text: why
    kScheduleAhead,  // lastTick is in the future by `took`; no tasks until then
    kScheduleConfigured,  // `key` was written as the configuration says; text: the change
    kScheduleTaken,       // another client wrote `key`, so the configured schedule is not written
  };
  Kind kind;
  std::string key{};
  std::string text{};
  Duration took{};
  /// The task at that time. Null: the fact is not about a task, or its record is not known.
  std::shared_ptr<const Task> task{};
  std::uint32_t attempt = 0;
  std::uint64_t token = 0;
  Duration waited{};               // kStarted: since it was due and known here
  std::optional<Duration> late{};  // kStarted: since executeAt or taskRetryAt
  std::uint64_t count = 0;
  std::uint32_t partition = 0;  // for facts about lock and lease
};

/// No job runs and no write is under way any more; locks that were held are still held with this
/// session. See StopRequested.
struct Drained {
  std::string session;
};

/// The queue is done: it may be destroyed.
struct Stopped {};

using Effect =
    std::variant<CreateSession, RenewSession, DestroySession, RememberSession, RememberHolder,
                 AcquireLock, ReleaseLock, ReadLeader, WatchControl, ListTasks, FetchTasks,
                 CheckTasks, ListHistory, ListSchedules, ReadRate, ReadOwners, Commit,
                 CancelRequest, StartJob, StopJob, ExtendLease, EndLease, Fact, Drained, Stopped>;

using Effects = std::vector<Effect>;

}  // namespace lictor::core
