#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <lictor/result.h>
#include <lictor/time.h>
#include <nlohmann/json.hpp>

namespace lictor {

/// The address of Consul and the place of the queue in it.
struct ClientOptions {
  /// "http://host:port", "https://host:port", "host:port" or "unix:///path"; tried in this order.
  /// Empty: CONSUL_HTTP_ADDR or, without that, http://127.0.0.1:8500.
  std::vector<std::string> addresses{};
  /// The ACL token. Both empty: CONSUL_HTTP_TOKEN or CONSUL_HTTP_TOKEN_FILE.
  std::string token{}, token_file{};
  /// Whether Consul's other variables (TLS, basic authentication, namespace) are honoured as by the
  /// consul command, and the variables above for options that are not set here.
  bool use_environment = true;

  std::string root = "lictor/";  ///< prefix of all keys; ends in '/'
  std::string queue = "default";
  /// Whole paths in Consul KV, for a layout of one's own; prefixes end in '/'. An empty path lies
  /// under `<root><queue>/`.
  std::string tasks_prefix{}, leader_key{}, dead_prefix{}, done_prefix{}, control_key{};
  /// As in the queue's configuration, if it is set there: gives the partition of a task without a
  /// serialKey, and so whether its owner still leads that partition.
  std::string serialize_by{};
};

/// A task to be written.
struct NewTask {
  std::string type{};  ///< taskType: picks the executor
  std::string id{};    ///< empty: a new one is made, ordered by time
  nlohmann::json parameters = nlohmann::json::object();  ///< taskPara, in UTF-8, 512 levels at most
  std::optional<WallTime> time{};                        ///< its place in the order; default: now
  std::optional<WallTime> execute_at{};                  ///< not before
  std::optional<WallTime> expire_at{};                   ///< a dead letter if not started by then
  std::string serial_key{};  ///< tasks of one key run one after the other; empty: none
  std::optional<std::uint32_t> max_attempts{};
  std::optional<Duration> timeout{};  ///< of an attempt; 0: none, whatever its executor's
};

struct Submitted {
  std::string id;
  std::uint64_t index = 0;  ///< CreateIndex, or a lower bound of it: for Client::wait()
};

enum class TaskState {
  kRunning,     ///< claimed by the session that leads its partition
  kOrphan,      ///< claimed by a session that does not lead its partition; will be run again
  kWaiting,     ///< may start
  kScheduled,   ///< not yet due
  kUnreadable,  ///< becomes a dead letter as soon as there is a leader
  kTooLarge,    ///< cannot be rewritten, so it can be neither claimed nor run
  kUnnameable,  ///< its key is not UTF-8: Consul lists it under another, and it can only be deleted
  kDead,
  kDone,       ///< in the history, if the queue keeps one
  kCancelled,  ///< in the history, if the queue keeps one
};

/// A task as Consul holds it.
struct TaskInfo {
  std::string id;  ///< the key's part after the prefix; for a dead letter its own name
  /// The task's id. A dead letter's differs from `id` if it is not the task's first. Empty: its key
  /// is not of this queue.
  std::string task_id;
  std::string key;
  std::string type;
  TaskState state = TaskState::kWaiting;
  std::optional<WallTime> time;     ///< decides its place in the order
  std::optional<WallTime> due;      ///< not before
  std::optional<WallTime> since;    ///< claimed; dead: buried; done: finished
  std::optional<WallTime> started;  ///< done only
  std::optional<Duration> took;     ///< done only: the last attempt
  std::uint32_t attempt = 0;        ///< attempts begun
  std::uint32_t lost = 0;           ///< owners lost
  std::string node;                 ///< the host that holds it, or ended it
  std::string session;
  std::string serial_key;
  std::string reason;  ///< dead only
  std::string error;   ///< dead: the last one; waiting: of the failed attempt
  std::string output_tail;
  std::string result;  ///< done only: JSON text; empty: none
  std::string record;  ///< the value's bytes; the whole value for a dead or done task
  std::uint64_t create_index = 0;
  std::uint64_t modify_index = 0;
};

struct TaskFilter {
  std::optional<TaskState> state{};  ///< nothing: all but kDone; kRunning: orphans too
  std::string type{};                ///< empty: all
  std::string reason{};              ///< for dead letters; empty: all
  std::string error{};               ///< for dead letters, numbers in its details aside; empty: all
  std::optional<WallTime> before{};  ///< for dead or done tasks: only those that ended before
};

struct TaskList {
  std::vector<TaskInfo> tasks;      ///< running tasks, then the next to start, then dead ones
  std::vector<std::string> hidden;  ///< prefixes below which the token may not read everything
};

/// The outcome of an operation on many tasks.
struct BulkResult {
  struct Refusal {
    std::string id;
    Error error;  ///< kTimeout: unknown whether it was done; any other: it was not done
  };
  std::vector<TaskInfo> tasks;   ///< as they were before the operation
  std::vector<Refusal> refused;  ///< tasks that were gone by their turn are in neither list
};

/// The progress of a long operation. Must not throw.
using Progress = std::function<void(std::size_t done, std::size_t total)>;

struct WaitOptions {
  std::optional<Duration> timeout{};
  /// From Submitted: leftovers of an earlier task of the same id do not count. 0: they count.
  std::uint64_t index = 0;
  /// Called with each state on the way, and with whether its partition has a leader.
  std::function<void(const TaskInfo&, bool led)> changed{};
  /// Called if Consul does not answer; wait() then waits for it, up to a minute.
  std::function<void(const Error&)> trouble{};
};

struct Ending {
  enum class How {
    kDone,       ///< `task` is its record in the history, with its result
    kDead,       ///< `task` is its dead letter
    kCancelled,  ///< `task` says by whom and when
    kGone,       ///< no trace: done, if there is no history, or its key was deleted
    kTimedOut,   ///< not ended; `task` is its last known state
  };
  How how = How::kGone;
  TaskInfo task;
};

/// Whether the queue is paused, and since when.
struct PauseState {
  bool paused = false;
  std::string by, reason;
  std::optional<WallTime> at;
};

/// The order in which tasks that are submitted together appear in Consul.
enum class SubmitOrder {
  kAsGiven,  ///< an active leader finds no task before those that come before it
  kAny,      ///< it may: faster, for tasks that may start in any order, or later
};

/// A producer's and an operator's access to one queue.
///
///   auto client = lictor::Client::open();
///   const auto sent = client->submit({.type = "Greet", .parameters = {{"name", "reader"}}});
///   const auto ending = client->wait(sent->id, {.index = sent->index});
///
/// Thread safe: every method may be called from any thread. All but open() block until Consul has
/// answered: 10 s at most for a request, 60 s for a listing. If the reply to a new task was lost,
/// submit() looks for it up to 20 s more.
///
/// Errors of all methods: kUnavailable, Consul cannot be reached or has no leader, nothing was
/// changed; kTimeout, the reply was lost, and it is unknown whether a change was made;
/// kPermissionDenied; kInvalid, an impossible id or record.
class Client {
 public:
  /// Opens no connection. Errors: kInvalid, naming the option or the variable.
  [[nodiscard]] static Result<Client> open(const ClientOptions& options = {});
  ~Client();
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;

  /// Writes the task if its id is new. A lost reply is resolved by reading back.
  /// Errors: kConflict, a task of this id exists, and was left unchanged; kTooLarge.
  [[nodiscard]] Result<Submitted> submit(const NewTask& task);

  /// As submit(), for a whole record as JSON text. Missing taskId and taskTime are added, fields
  /// that only lictor may write are removed, the rest is kept to the byte.
  [[nodiscard]] Result<Submitted> submit_record(std::string_view record);

  /// As submit() for each, 63 in a transaction, several transactions at a time. Tasks without a
  /// time get one, by which they start in this order; tasks of one time start in the order in which
  /// they are written. Unless `order` says otherwise, that is this order, and a leader finds no
  /// task before those that come before it.
  ///
  /// Each task's result is in its place; a refused task holds back no other. After an error of
  /// Consul (an outage of half a minute, a lost reply that cannot be resolved within 20 s, no
  /// permission) the rest is not sent, and has that error.
  [[nodiscard]] std::vector<Result<Submitted>> submit_many(
      std::span<const NewTask> tasks, const Progress& progress = {},
      SubmitOrder order = SubmitOrder::kAsGiven);

  [[nodiscard]] Result<TaskList> list(const TaskFilter& filter = {});

  /// Everything under this id: the task itself, then its dead letters, then its entries in the
  /// history. Errors: kNotFound.
  [[nodiscard]] Result<std::vector<TaskInfo>> show(const std::string& id);

  /// Withdraws a task in any state, and returns it with that state. The leader then stops the job
  /// of a running one, within kill_grace. Leaves a record of the task in the history, by which
  /// wait() tells a cancelled task from a finished one. If the queue keeps no history, this client
  /// deletes the record after two seconds, for which its destructor waits. Errors: kNotFound;
  /// kConflict, the task changed all the time.
  [[nodiscard]] Result<TaskInfo> cancel(const std::string& id);
  /// Leaves records only if the queue keeps a history. A kUnnameable task is refused, with kFailed.
  [[nodiscard]] Result<BulkResult> cancel_all(const TaskFilter& filter,
                                              const Progress& progress = {});

  /// Makes a dead letter a waiting task again, in one transaction, with its producer's record and
  /// under the task's old key. `id` is the task's, which means its newest dead letter, or else the
  /// name of one ("x,57"). Returns the dead letter. Errors: kNotFound; kConflict, a task of this id
  /// exists; kInvalid, it cannot be read as a task, its key is not of this queue, or its expireAt
  /// has passed and `drop_expiry` is not set.
  [[nodiscard]] Result<TaskInfo> retry(const std::string& id, bool drop_expiry = false);
  /// If a task has several dead letters, retries the newest.
  [[nodiscard]] Result<BulkResult> retry_all(const TaskFilter& filter, bool drop_expiry = false,
                                             const Progress& progress = {});

  /// Deletes the dead letter of exactly this name. Errors: kNotFound.
  [[nodiscard]] Result<TaskInfo> purge(const std::string& id);
  [[nodiscard]] Result<BulkResult> purge_all(const TaskFilter& filter,
                                             const Progress& progress = {});

  /// Waits until the task has ended, and through an outage of Consul for a minute. Errors:
  /// kNotFound, there is nothing under this id and `index` is 0.
  [[nodiscard]] Result<Ending> wait(const std::string& id, const WaitOptions& options = {});

  /// Running jobs go on, no task is started until resume(). `by`: "user@host"; empty: ours. False:
  /// the queue was paused already, and its pause is unchanged.
  [[nodiscard]] Result<bool> pause(const std::string& reason = {}, const std::string& by = {});
  /// False: the queue was not paused.
  [[nodiscard]] Result<bool> resume(const std::string& by = {});
  [[nodiscard]] Result<PauseState> paused();

  /// Asks the leader, or the leaders of all partitions, to hand over; does not wait for that.
  [[nodiscard]] Result<void> step_down();

  class Impl;
  explicit Client(std::unique_ptr<Impl> impl);  ///< for lictor's own commands

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace lictor
