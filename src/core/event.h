#pragma once

// What happens to a queue. Every reply names the request that it answers; a reply to a request
// that the core no longer waits for is ignored.

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

/// What became of a write. Unknown is neither of the others: the reply was lost, or Consul failed
/// in mid-flight, and the write may have landed or may land yet (consul.md 6.5).
enum class Outcome { kApplied, kRejected, kUnknown };

/// Nothing but time; the core says by next_deadline() when it wants this.
struct TimePassed {};

/// The daemon is up. `previous_session` is the session of an earlier daemon of this node, if its
/// id was kept; it may still live, and hold the lock.
struct Started {
  std::optional<std::string> previous_session;
  std::vector<std::uint64_t> held_indexes{};  // see RememberHolder; by partition, or empty
};

/// The wall clock read `wall` at `at`. Sent at the start and whenever the clock was found to have
/// stepped; between, the core counts on. The process may stand still before this is taken.
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
    kChanged,       // it is not any more as the request says
    kCountChanged,  // the queue has another number of partitions than the request says
    kSessionGone,   // ours is not valid any more
    kOverLimit,     // a limit of Consul's is reached; nothing was done
    kRefused,       // no right, or nonsense; see error
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
  bool ok = false;                              // else see error
  bool found = false;                           // the key exists
  std::string session;                          // who holds the lock; empty: free
  std::string holder;                           // a name for people, out of the key's value
  bool released = false;                        // by its last holder, in order; of a free key
  std::optional<Duration> holder_lock_delay{};  // of the last holder, out of the key's value
  std::uint64_t modify_index = 0;
  std::uint64_t consul_index = 0;  // for the next blocking read
  std::string error;
  bool over_limit = false;  // why not: Consul's limits; what was asked for holds as before
};

/// The operator's switches, by the watch on the control key.
struct ControlRead {
  RequestId request;
  bool ok = false;
  bool found = false;
  bool paused = false;
  bool unreadable = false;  // it holds nonsense: paused, then, and `by` says so
  std::string step_down;    // id of the last step-down that was asked for; empty: none
  std::string by;           // who asked
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
};

/// Single tasks. If some are missing, the keys in none of the lists were not read; else the token
/// may not read them.
struct TasksFetched {
  RequestId request;
  bool ok = false;
  std::vector<StoredRecord> records;
  std::vector<std::string> missing;
  std::string error;
  std::vector<std::string> folders{};  // keys that end in '/' and hold something
  std::size_t bytes = 0;               // of the answer
  std::size_t most_operations = 0;     // see Committed
};

/// Which of the versions are no longer there: another is, or none.
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

/// By node: the nonce of the last claim that its daemon has given up, with all before it.
using GivenUp = std::map<std::string, std::string, std::less<>>;
struct OwnersRead {
  RequestId request;
  bool ok = false;
  bool refused = false;  // not ok, as it would be again
  GivenUp given_up{};
  std::string error{};
};

/// The finished tasks that are kept, in any order.
struct HistoryListed {
  struct Entry {
    std::string key;  // that the task had
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
    std::string last_task_key;  // of Definition::last_task; empty: it has made none
    std::uint64_t create_index = 0;
    std::uint64_t modify_index = 0;
    std::uint64_t flags = 0;
    std::shared_ptr<const std::string> record;
    std::shared_ptr<const schedule::Definition> definition;  // null: it cannot be read
    std::string error{};                                     // why
  };
  RequestId request;
  bool ok = false;
  bool unchanged = false;  // since the index that was asked for; `entries` is empty then
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
  kMalformed,  // the whole: the store cannot read some operation of it
  kOther,
};

struct Committed {
  /// What of the operation failed: a dead letter whose name is taken, say, is not the task. kTask
  /// also stands for the schedule that an operation is about.
  enum class Part { kTask, kDeadLetter, kJobWrite, kNewTask, kRate };
  struct Failure {
    std::size_t op = 0;  // position in the Commit; kFence for the fence itself
    OpFailure why = OpFailure::kOther;
    Part part = Part::kTask;
    std::string text;
    std::uint32_t partition = 0;  // of a fence
  };
  static constexpr std::size_t kFence = static_cast<std::size_t>(-1);

  RequestId request;
  Outcome outcome = Outcome::kUnknown;
  std::uint64_t modify_index = 0;  // of everything written, when applied; 0 if nothing but deletes
  std::vector<Failure> failures;   // when rejected
  std::string error;               // when unknown
  /// Consul refused the transaction for its number of operations: it takes so many. 0: it did not.
  std::size_t most_operations = 0;
};

using lictor::JobEnding;
using lictor::JobTaken;

/// An attempt is over, and nothing of it runs any more.
struct JobExited {
  AttemptId attempt;
  JobEnding ending = JobEnding::kDone;
  std::string error;
  std::string output_tail;
  std::vector<KvWrite> writes{};          // to commit with the finish
  std::string result{};                   // JSON; empty: none
  std::optional<Duration> retry_after{};  // asked for by what was called
  JobTaken taken = JobTaken::kYes;  // if not, it counts only where that goes on for the same task
  std::string result_fault{};       // why there is no result, of a job that had one
};

/// The configuration was read again; see QueueOptions::take_limits().
struct Reconfigured {
  std::shared_ptr<const QueueOptions> options;
};

/// The members of the queue, this host among them, whenever they change. Of a queue with several
/// partitions alone.
struct MembersSeen {
  std::vector<BalancerMember> members;
};

/// The daemon shuts down in order. `keeps_locks`: it goes no further than Drained, until it is
/// requested without.
struct StopRequested {
  bool keeps_locks = false;
};

using Event =
    std::variant<TimePassed, Started, WallClockRead, SessionCreated, SessionRenewed,
                 SessionDestroyed, LockReplied, UnlockReplied, LeaderRead, ControlRead, TasksListed,
                 TasksFetched, TasksChecked, HistoryListed, SchedulesListed, RateRead, OwnersRead,
                 Committed, JobExited, Reconfigured, MembersSeen, StopRequested>;

}  // namespace lictor::core
