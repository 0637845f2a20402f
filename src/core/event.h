#pragma once

// The events of a queue. Every reply names the request that it answers; a reply to a request that
// the core no longer waits for is ignored.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/id.h"
#include "base/job_ending.h"
#include "core/effect.h"
#include "core/key_list.h"
#include "core/leadership/balancer.h"
#include "core/task.h"
#include "lictor/time.h"

namespace lictor::core {

/// The outcome of a write. Unknown is neither of the others: the reply was lost, or Consul failed
/// in mid-flight, and the write may have landed or may land yet (consul.md 6.5).
enum class Outcome { kApplied, kRejected, kUnknown };

/// Only time has passed; the core asks for this by next_deadline().
struct TimePassed {};

/// The daemon is up. `previous_session` is the session of an earlier daemon of this node, if its
/// id was kept; it may still live, and hold the lock.
struct Started {
  std::optional<std::string> previous_session;
  std::vector<std::uint64_t> held_indexes{};  // see RememberHolder; by partition, or empty
};

/// The wall clock read `wall` at `at`. Sent at the start and whenever the clock was found to have
/// stepped; in between, the core counts on. The process may stand still before it takes this event.
struct WallClockRead {
  WallTime wall;
  Instant at;
};

struct SessionCreated {
  RequestId request;
  Outcome outcome = Outcome::kUnknown;
  std::string session;  // when applied
  std::string error;
};

struct SessionRenewed {
  enum class Answer {
    kAlive,    // proves nothing about leadership (consul.md 6.4), keeps the session
    kGone,     // no such session
    kNothing,  // no answer, or an error
  };
  RequestId request;
  Answer answer = Answer::kNothing;
  std::string error;
};

struct SessionDestroyed {
  RequestId request;
  Outcome outcome = Outcome::kUnknown;
};

struct LockReplied {
  enum class Answer {
    kAcquired,
    kHeld,          // by another session
    kLockDelay,     // free, but barred since its last holder was lost
    kChanged,       // the key is no longer in the state that the request names
    kCountChanged,  // the queue has another number of partitions than the request names
    kSessionGone,   // ours is not valid any more
    kOverLimit,     // a limit of Consul's is reached; nothing was done
    kRefused,       // no right, or a malformed request; see error
    kUnknown,
  };
  RequestId request;
  Answer answer = Answer::kUnknown;
  std::uint64_t modify_index = 0;  // of the leader key, when acquired
  std::string error;
};

struct UnlockReplied {
  RequestId request;
  Outcome outcome = Outcome::kUnknown;
};

/// The leader key, by a consistent read or by the watch.
struct LeaderRead {
  RequestId request;
  bool ok = false;                              // false: see error
  bool found = false;                           // the key exists
  std::string session;                          // the holder of the lock; empty: free
  std::string holder;                           // the holder's display name, from the key's value
  bool released = false;                        // by its last holder, in order; for a free key
  std::optional<Duration> holder_lock_delay{};  // of the last holder, from the key's value
  std::uint64_t modify_index = 0;
  std::uint64_t consul_index = 0;  // for the next blocking read
  std::string error;
  bool over_limit = false;  // not ok because of Consul's limits; the last answer still holds
};

/// The operator's switches, by the watch on the control key.
struct ControlRead {
  RequestId request;
  bool ok = false;
  bool found = false;
  bool paused = false;
  bool unreadable = false;  // malformed: counts as paused, and `by` says so
  std::string step_down;    // id of the last requested step-down; empty: none
  std::string by;           // the requester
  std::uint64_t consul_index = 0;
  std::string error;
  bool denied = false;  // the token may not read it
  bool over_limit = false;
};

using StoredRecord = std::variant<Task, BadRecord>;
[[nodiscard]] inline const std::string& key_of(const StoredRecord& stored) {
  return std::visit([](const auto& record) -> const std::string& { return record.key; }, stored);
}
[[nodiscard]] inline std::uint64_t index_of(const StoredRecord& stored) {
  return std::visit([](const auto& record) { return record.modify_index; }, stored);
}

/// The names of the tasks.
struct TasksListed {
  RequestId request;
  bool ok = false;
  bool denied = false;  // the token may not read the prefix
  bool marker = false;  // the prefix's own folder key was there
  KeyList keys;
  std::vector<std::string> folders{};  // other keys that end in '/': no tasks
  std::uint64_t consul_index = 0;
  std::string error;
  bool over_limit = false;  // not ok, because of Consul's limits
  Duration transfer{};      // from the answer's first byte to its last
};

/// Single tasks. If some keys are missing, the keys in no list were not read; otherwise the token
/// may not read them.
struct TasksFetched {
  RequestId request;
  bool ok = false;
  std::vector<StoredRecord> records;
  std::vector<std::string> missing;
  std::string error;
  std::vector<std::string> folders{};  // non-empty keys that end in '/'
  std::size_t bytes = 0;               // of the answer
  std::size_t most_operations = 0;     // see Committed
};

/// The versions that are no longer current: another version exists, or none.
struct TasksChecked {
  RequestId request;
  bool ok = false;
  bool denied = false;
  std::vector<std::string> changed;
  std::vector<std::string> missing;
  std::string error;
  std::size_t most_operations = 0;  // see Committed
};

/// The queue's bucket.
struct RateRead {
  RequestId request;
  bool ok = false;
  bool denied = false;                // the token may not read it
  std::uint64_t modify_index = 0;     // 0: there is no such key
  std::optional<WallTime> full_at{};  // std::nullopt if the value cannot be read
  std::string error;
};

/// By node: the nonce of the last claim that its daemon has given up, with all claims before it.
using GivenUp = std::map<std::string, std::string, std::less<>>;
struct OwnersRead {
  RequestId request;
  bool ok = false;
  bool refused = false;  // not ok, and it would be refused again
  GivenUp given_up{};
  std::string error{};
};

/// The finished tasks that are kept, in any order.
struct HistoryListed {
  struct Entry {
    std::string key;  // the task's former key
    std::uint64_t modify_index = 0;
    WallTime at{};  // when it was finished
  };
  RequestId request;
  bool ok = false;
  std::vector<Entry> entries;
  std::string error;
};

/// The recurring tasks, in any order.
struct SchedulesListed {
  struct Entry {
    std::string name;
    std::string key;
    std::string tasks_prefix;   // of the queue; a task's id follows
    std::string last_task_key;  // of Definition::last_task; empty: no task was made yet
    std::uint64_t create_index = 0;
    std::uint64_t modify_index = 0;
    std::uint64_t flags = 0;
    std::shared_ptr<const std::string> record;
    std::shared_ptr<const schedule::Definition> definition;  // null: unreadable
    std::string error{};                                     // why it is unreadable
  };
  RequestId request;
  bool ok = false;
  bool unchanged = false;  // since the requested index; `entries` is empty then
  bool marker = false;     // the prefix's own folder key was there
  std::vector<Entry> entries;
  std::uint64_t consul_index = 0;
  Duration cost{};  // spent on transfer and parsing
  std::string error;
  bool over_limit = false;
};

/// Why one operation of a transaction failed.
enum class OpFailure {
  kNotLeader,  // the fence: the lock of a partition is not held by our session
  kStale,      // the task changed or is gone; of a dead letter: that name is taken; of a job's
               // write: its own condition does not hold
  kDenied,     // no right
  kTooLarge,   // the whole: the store takes no request of this size
  kMalformed,  // the whole: the store cannot read some operation in it
  kOther,
};

struct Committed {
  /// The part of the operation that failed. A dead letter's name being taken, say, is not a failure
  /// of the task. kTask also stands for the schedule of an operation.
  enum class Part { kTask, kDeadLetter, kJobWrite, kNewTask, kRate };
  struct Failure {
    std::size_t op = 0;  // position in the Commit; kFence for the fence itself
    OpFailure why = OpFailure::kOther;
    Part part = Part::kTask;
    std::string text;
    std::uint32_t partition = 0;  // the fence's partition
  };
  static constexpr std::size_t kFence = static_cast<std::size_t>(-1);

  RequestId request;
  Outcome outcome = Outcome::kUnknown;
  std::uint64_t modify_index = 0;  // of everything written, if applied; 0 if it only deletes
  std::vector<Failure> failures;   // when rejected
  std::string error;               // when unknown
  /// Consul refused the transaction for its number of operations and takes this many. 0: no.
  std::size_t most_operations = 0;
};

using lictor::JobEnding;
using lictor::JobTaken;

/// An attempt is over; no process or thread of it runs any more.
struct JobExited {
  AttemptId attempt;
  JobEnding ending = JobEnding::kDone;
  std::string error;
  std::string output_tail;
  std::vector<KvWrite> writes{};          // to commit with the finish
  std::string result{};                   // JSON; empty: none
  std::optional<Duration> retry_after{};  // asked for by the job's receiver
  JobTaken taken = JobTaken::kYes;  // if not, it counts only where that goes on for the same task
  std::string result_fault{};       // why a job's result is left out
};

/// The configuration was read again; see QueueOptions::take_limits().
struct Reconfigured {
  std::shared_ptr<const QueueOptions> options;
};

/// The members of the queue, this host among them, whenever they change. Only for a queue with
/// several partitions.
struct MembersSeen {
  std::vector<BalancerMember> members;
};

/// The daemon shuts down in order. `keeps_locks`: stop at Drained, until a request without it
/// comes.
struct StopRequested {
  bool keeps_locks = false;
};

using Event =
    std::variant<TimePassed, Started, WallClockRead, SessionCreated, SessionRenewed,
                 SessionDestroyed, LockReplied, UnlockReplied, LeaderRead, ControlRead, TasksListed,
                 TasksFetched, TasksChecked, HistoryListed, SchedulesListed, RateRead, OwnersRead,
                 Committed, JobExited, Reconfigured, MembersSeen, StopRequested>;

}  // namespace lictor::core
