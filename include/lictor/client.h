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

/// Where Consul is and where the queue lies in it.
struct ClientOptions {
  /// "http://host:port", "https://host:port", "host:port" or "unix:///path"; tried in this order.
  /// Empty: CONSUL_HTTP_ADDR, else http://127.0.0.1:8500.
  std::vector<std::string> addresses{};
  /// The ACL token. Both empty: CONSUL_HTTP_TOKEN or CONSUL_HTTP_TOKEN_FILE.
  std::string token{}, token_file{};
  /// Whether the rest of Consul's variables (TLS, basic authentication, namespace), and those above
  /// where nothing is set here, are honoured as the consul command honours them.
  bool use_environment = true;

  std::string root = "lictor/";  ///< what all keys begin with; ends in '/'
  std::string queue = "default";
  /// Whole paths in Consul KV, for a layout of one's own; prefixes end in '/'. What is empty lies
  /// under `<root><queue>/`.
  std::string tasks_prefix{}, leader_key{}, dead_prefix{}, done_prefix{}, control_key{};
  /// As the queue's configuration has it, if it does: tells the partition of a task without a
  /// serialKey, and so whether its owner still leads that.
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
  std::optional<Duration> timeout{};  ///< of an attempt; 0: none, whatever its executor has
};

struct Submitted {
  std::string id;
  std::uint64_t index = 0;  ///< CreateIndex, or one not above it: for Client::wait()
};

enum class TaskState {
  kRunning,     ///< claimed by the session of its leader: that of its partition
  kOrphan,      ///< claimed, but by a session that does not lead it (any more); will be run again
  kWaiting,     ///< may start
  kScheduled,   ///< not yet due
  kUnreadable,  ///< becomes a dead letter as soon as somebody leads
  kTooLarge,    ///< cannot be rewritten, so it can be neither claimed nor run
  kUnnameable,  ///< its key is not UTF-8: Consul lists it under another, and it can only be deleted
  kDead,
  kDone,       ///< in the history, where the queue keeps one
  kCancelled,  ///< likewise
};

/// What Consul holds of a task.
struct TaskInfo {
  std::string id;  ///< the key's part after the prefix: of a dead letter its own name
  /// The task's id. A dead letter's differs from `id` if it is not the task's first. Empty: its key
  /// is not of this queue.
  std::string task_id;
  std::string key;
  std::string type;
  TaskState state = TaskState::kWaiting;
  std::optional<WallTime> time;     ///< what its place in the order goes by
  std::optional<WallTime> due;      ///< not before
  std::optional<WallTime> since;    ///< claimed; dead: buried; done: finished
  std::optional<WallTime> started;  ///< done only
  std::optional<Duration> took;     ///< done only: the last attempt
  std::uint32_t attempt = 0;        ///< attempts begun
  std::uint32_t lost = 0;           ///< owners lost
  std::string node;                 ///< who holds it, or ended it
  std::string session;
  std::string serial_key;
  std::string reason;  ///< dead only
  std::string error;   ///< dead: the last one; waiting: of the attempt that failed
  std::string output_tail;
  std::string result;  ///< done only: JSON text; empty: none
  std::string record;  ///< the value's bytes; of a dead or done one all of them
  std::uint64_t create_index = 0;
  std::uint64_t modify_index = 0;
};

struct TaskFilter {
  std::optional<TaskState> state{};  ///< nothing: all but kDone; kRunning: orphans too
  std::string type{};                ///< empty: all
  std::string reason{};              ///< of dead letters; empty: all
  std::string error{};  ///< of dead letters, but for numbers in its details; empty: all
  std::optional<WallTime> before{};  ///< of what is dead or done: only what ended before
};

struct TaskList {
  std::vector<TaskInfo> tasks;      ///< what runs, what starts next, what is dead
  std::vector<std::string> hidden;  ///< prefixes below which the token may not read everything
};

/// What became of many tasks.
struct BulkResult {
  struct Refusal {
    std::string id;
    Error error;  ///< kTimeout: nobody can tell whether it was done; with any other it was not
  };
  std::vector<TaskInfo> tasks;   ///< as they were when it was done to them
  std::vector<Refusal> refused;  ///< what was gone by its turn is in neither
};

/// How far something has come that takes longer. Must not throw.
using Progress = std::function<void(std::size_t done, std::size_t total)>;

struct WaitOptions {
  std::optional<Duration> timeout{};
  /// Of Submitted: what an earlier task of the same id left behind does not count. 0: what is there
  /// counts.
  std::uint64_t index = 0;
  /// Called with each state that is seen on the way, and whether anybody leads its partition.
  std::function<void(const TaskInfo&, bool led)> changed{};
  /// Consul does not answer; it is waited for, up to a minute.
  std::function<void(const Error&)> trouble{};
};

struct Ending {
  enum class How {
    kDone,       ///< `task` is its record in the history, with its result
    kDead,       ///< `task` is its dead letter
    kCancelled,  ///< `task` says by whom and when
    kGone,       ///< without a trace: done, where there is no history, or its key was deleted
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

/// In which order tasks that are submitted together come to be there.
enum class SubmitOrder {
  kAsGiven,  ///< a leader at work finds none before those that come before it
  kAny,      ///< it may: faster, for what may start in any order, or later
};

/// A producer's and an operator's access to one queue.
///
///   auto client = lictor::Client::open();
///   const auto sent = client->submit({.type = "Greet", .parameters = {{"name", "reader"}}});
///   const auto ending = client->wait(sent->id, {.index = sent->index});
///
/// Thread safe: every method may be called from any thread. All but open() block until Consul has
/// answered: 10 s at most for a request, 60 s for a listing; where the reply to a new task was
/// lost, it is looked for up to 20 s more.
///
/// Errors of all: kUnavailable, Consul cannot be reached or has no leader, nothing was changed;
/// kTimeout, the reply was lost, and nobody can tell whether a change was made; kPermissionDenied;
/// kInvalid, an id or a record that cannot be one.
class Client {
 public:
  /// Connects to nothing. Errors: kInvalid, naming the option or the variable.
  [[nodiscard]] static Result<Client> open(const ClientOptions& options = {});
  ~Client();
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;

  /// Writes the task if its id is new. A lost reply is resolved by reading back.
  /// Errors: kConflict, there is a task of this id, and it was left as it is; kTooLarge.
  [[nodiscard]] Result<Submitted> submit(const NewTask& task);

  /// As submit(), for a whole record as JSON text. taskId and taskTime are added where they are
  /// missing, what only lictor may say is taken out, all else is kept to the byte.
  [[nodiscard]] Result<Submitted> submit_record(std::string_view record);

  /// As submit() for each, 63 in a transaction, several transactions at a time. Tasks without a
  /// time are given one, by which they start in this order; those of one time start in the order in
  /// which they are written. Unless `order` says otherwise, that is this order, and a leader finds
  /// no task before those that come before it.
  ///
  /// What became of each stands in its place; one that is refused keeps back no other. After an
  /// error of Consul (an outage of half a minute, a lost reply that cannot be resolved within 20 s,
  /// no permission) the rest is not sent, and has that error.
  [[nodiscard]] std::vector<Result<Submitted>> submit_many(
      std::span<const NewTask> tasks, const Progress& progress = {},
      SubmitOrder order = SubmitOrder::kAsGiven);

  [[nodiscard]] Result<TaskList> list(const TaskFilter& filter = {});

  /// All there is under this id: the task itself, then its dead letters, then what the history
  /// says. Errors: kNotFound.
  [[nodiscard]] Result<std::vector<TaskInfo>> show(const std::string& id);

  /// Withdraws a task, in whatever state it is, and says what that was. The leader then stops the
  /// job of a running one, within kill_grace. Leaves a record of it in the history, by which wait()
  /// tells a cancelled task from a finished one. Where the queue keeps no history, this client
  /// deletes the record after two seconds, for which its destructor waits. Errors: kNotFound;
  /// kConflict, it changed all the time.
  [[nodiscard]] Result<TaskInfo> cancel(const std::string& id);
  /// Leaves records only where the queue keeps a history. What is kUnnameable is refused, with
  /// kFailed.
  [[nodiscard]] Result<BulkResult> cancel_all(const TaskFilter& filter,
                                              const Progress& progress = {});

  /// Makes a dead letter a waiting task again, in one transaction, with the record as its producer
  /// wrote it and under the key that the task had. `id` is the task's, which means the newest of
  /// its dead letters, or else the name of one ("x,57"). Returns the dead letter.
  /// Errors: kNotFound; kConflict, there is a task of this id; kInvalid, it cannot be read as a
  /// task, its key is not of this queue, or its expireAt has passed and `drop_expiry` is not set.
  [[nodiscard]] Result<TaskInfo> retry(const std::string& id, bool drop_expiry = false);
  /// Of several dead letters of one task the newest.
  [[nodiscard]] Result<BulkResult> retry_all(const TaskFilter& filter, bool drop_expiry = false,
                                             const Progress& progress = {});

  /// Deletes the dead letter of exactly this name. Errors: kNotFound.
  [[nodiscard]] Result<TaskInfo> purge(const std::string& id);
  [[nodiscard]] Result<BulkResult> purge_all(const TaskFilter& filter,
                                             const Progress& progress = {});

  /// Waits until the task has ended. An outage of Consul is sat out for a minute.
  /// Errors: kNotFound, there is nothing under this id and `index` is 0.
  [[nodiscard]] Result<Ending> wait(const std::string& id, const WaitOptions& options = {});

  /// Running jobs go on, nothing is started until resume(). `by`: "user@host"; empty: ours.
  /// False: it was paused already, and stays as it was.
  [[nodiscard]] Result<bool> pause(const std::string& reason = {}, const std::string& by = {});
  /// False: it was not paused.
  [[nodiscard]] Result<bool> resume(const std::string& by = {});
  [[nodiscard]] Result<PauseState> paused();

  /// Asks the leader to hand over, of several partitions all leaders; does not wait for it.
  [[nodiscard]] Result<void> step_down();

  class Impl;
  explicit Client(std::unique_ptr<Impl> impl);  ///< for lictor's own commands

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace lictor
