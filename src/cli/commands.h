#pragma once

// The subcommands that talk to Consul, in files of their names; bulk.cpp has those that change many
// tasks. Each returns its exit code, or an error that app prints and maps to one. All block.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/console.h"
#include "client/client.h"
#include "client/new_record.h"
#include "client/store.h"
#include "client/task_id.h"
#include "core/options.h"
#include "lictor/result.h"
#include "net/transport.h"
#include "wire/layout.h"

namespace lictor::cli {

using client::Store;

/// What every command works on: one queue.
struct Client {
  Console& console;
  lictor::Client& api;
  Store& store;  ///< for what the API does not offer
  std::string queue;
  wire::Layout layout;
  bool json = false;
  std::string admin_token{};                   ///< of the members' admin APIs; empty: none is sent
  std::vector<std::string> admin_addresses{};  ///< URLs of the admin API of this host's daemon

  [[nodiscard]] client::Queue stored() const { return {store, queue, layout}; }
};

/// Runs a command that shows something again and again, on a terminal in one place, until a signal
/// or the end of its reader.
[[nodiscard]] Result<int> watch(Console& console, const std::function<Result<int>()>& show);

/// The queue on a full screen, until q. Errors: kInvalid, there is no terminal.
[[nodiscard]] Result<int> top(const Client& client);

/// A task as the flags of `submit` describe it, unread.
struct TaskText {
  std::string type;
  std::optional<std::string> id;
  std::vector<std::string> paras;        ///< "NAME=VALUE"
  std::optional<std::string> para_json;  ///< JSON
  std::optional<std::string> at;         ///< RFC 3339, or seconds since the epoch
  std::optional<std::string> in;         ///< a duration
  std::optional<std::string> expire_at;  ///< as `at`
  std::optional<std::string> expire_in;  ///< as `in`
  std::optional<std::string> task_time;
  std::optional<std::string> serial_key;
  std::optional<std::uint32_t> max_attempts;
  std::optional<std::string> timeout;
  std::optional<std::string> backoff;  ///< a duration: the first one
};

/// Errors: kInvalid, naming the flag.
[[nodiscard]] Result<client::NewRecord> new_task(const TaskText& text, WallTime now,
                                                 client::TaskIds& ids);

/// The record of a schedule's tasks. Errors: as above.
[[nodiscard]] Result<std::string> task_template(const TaskText& text);

/// A time as an argument: RFC 3339 with a zone, or seconds or milliseconds since the epoch.
[[nodiscard]] Result<WallTime> time_argument(std::string_view text);

struct SubmitOptions {
  TaskText task;
  bool wait = false;
  std::optional<Duration> wait_timeout;
};
[[nodiscard]] Result<int> submit(const Client& client, const SubmitOptions& options);

struct SubmitManyOptions {
  std::string file;  ///< "-": standard input
  std::string type;  ///< for records without one; may be empty
  SubmitOrder order = SubmitOrder::kAsGiven;
};
[[nodiscard]] Result<int> submit_many(const Client& client, const SubmitManyOptions& options);

struct ListOptions {
  std::string state;      ///< empty: all but what is done
  std::string type;       ///< empty: all
  std::size_t limit = 0;  ///< 0: none
  bool watch = false;     ///< see watch()
};
[[nodiscard]] Result<int> list(const Client& client, const ListOptions& options);

[[nodiscard]] Result<int> show(const Client& client, const std::string& id);

[[nodiscard]] Result<int> why(const Client& client, const std::string& id);

/// What the queue's leader counts now.
[[nodiscard]] Result<int> stats(const Client& client);

struct EventsOptions {
  bool follow = false;              ///< until a signal
  std::string task, type;           ///< only of this id, this type; empty: all
  std::optional<WallTime> since;    ///< only from then on
  std::optional<std::size_t> last;  ///< of those that are kept the newest N
};
/// What happened in the queue, by its leader.
[[nodiscard]] Result<int> events(const Client& client, const EventsOptions& options);

struct CancelOptions {
  std::vector<std::string> ids;  ///< else all that match `state` and `type`
  bool all = false;
  bool yes = false;  ///< do not ask
  std::string state;
  std::string type;
};
[[nodiscard]] Result<int> cancel(const Client& client, const CancelOptions& options);

struct RetryOptions {
  std::vector<std::string> ids;
  bool all = false;
  bool drop_expiry = false;
  std::string type;
  std::string reason;
};
[[nodiscard]] Result<int> retry(const Client& client, const RetryOptions& options);

struct DeadListOptions {
  std::string type;
  std::string reason;
  std::optional<Duration> older_than;
  std::size_t limit = 0;  ///< 0: none
};
[[nodiscard]] Result<int> dead_list(const Client& client, const DeadListOptions& options);
struct DeadShowOptions {
  std::string id;
};
[[nodiscard]] Result<int> dead_show(const Client& client, const DeadShowOptions& options);
struct DeadPurgeOptions {
  std::vector<std::string> ids;
  bool all = false;
  bool yes = false;  ///< do not ask
  std::string type;
  std::string reason;
  std::optional<Duration> older_than;
};
[[nodiscard]] Result<int> dead_purge(const Client& client, const DeadPurgeOptions& options);

/// When a schedule has its ticks, as flags say it, unread.
struct RuleText {
  std::optional<std::string> cron, every, timezone, start, end;
  std::vector<std::string> at;
};
struct ScheduleListOptions {};
[[nodiscard]] Result<int> schedule_list(const Client& client, const ScheduleListOptions& options);
struct ScheduleShowOptions {
  std::string name;
};
[[nodiscard]] Result<int> schedule_show(const Client& client, const ScheduleShowOptions& options);
struct ScheduleAddOptions {
  std::string name;
  std::optional<std::string> file;  ///< with the whole record; "-": standard input
  RuleText rule;
  std::optional<std::string> missed, missed_max_age, overlap, jitter;
  std::optional<std::uint32_t> missed_limit;
  TaskText task;  ///< the template
  bool replace = false;
};
[[nodiscard]] Result<int> schedule_add(const Client& client, const ScheduleAddOptions& options);
struct ScheduleRemoveOptions {
  std::string name;
};
[[nodiscard]] Result<int> schedule_remove(const Client& client,
                                          const ScheduleRemoveOptions& options);
struct ScheduleRunOptions {
  std::string name;
};
[[nodiscard]] Result<int> schedule_run(const Client& client, const ScheduleRunOptions& options);
/// What the configuration file on this host says of a schedule.
struct LocalSchedule {
  std::string file;            ///< empty: no file has it
  std::optional<bool> paused;  ///< nothing: its operator decides
};
struct SchedulePauseOptions {
  std::string name;
  LocalSchedule local{};
};
[[nodiscard]] Result<int> schedule_pause(const Client& client, const SchedulePauseOptions& options);
struct ScheduleResumeOptions {
  std::string name;
  LocalSchedule local{};
};
[[nodiscard]] Result<int> schedule_resume(const Client& client,
                                          const ScheduleResumeOptions& options);
struct ScheduleNextOptions {
  std::string name;  ///< empty: `rule`
  RuleText rule;
  std::size_t count = 10;
  std::optional<std::string> from;  ///< nothing: now
};
[[nodiscard]] Result<int> schedule_next(const Client& client, const ScheduleNextOptions& options);

struct PauseOptions {
  std::string reason;
};
[[nodiscard]] Result<int> pause(const Client& client, const PauseOptions& options);
struct ResumeOptions {};
[[nodiscard]] Result<int> resume(const Client& client, const ResumeOptions& options);

struct LeaderOptions {
  bool step_down = false;
  bool wait = true;
  Duration timeout = std::chrono::seconds{30};
  bool watch = false;  ///< see watch()
};
[[nodiscard]] Result<int> leader(const Client& client, const LeaderOptions& options);

[[nodiscard]] Result<int> members(const Client& client);

struct DrainOptions {
  std::string host;  ///< a member's name
  bool wait = false;
  std::optional<Duration> wait_timeout{};
};
/// Makes a host give all its partitions away. Errors: kInvalid, the queue has one partition;
/// kNotFound, there is no such member; kFailed, it still has some after the timeout.
[[nodiscard]] Result<int> drain(const Client& client, const DrainOptions& options);
struct UndrainOptions {
  std::string host;
};
/// Errors: kNotFound, there is no such member, and nothing to end.
[[nodiscard]] Result<int> undrain(const Client& client, const UndrainOptions& options);

struct LogsOptions {
  std::string id;
  bool follow = false;
  std::optional<std::uint32_t> attempt;  ///< nothing: the newest
  std::string node;                      ///< empty: any
  // From the configuration: the member on this host, and where its logs are.
  std::string own_node, state_dir;
};
/// Prints what an attempt of a program printed, wherever it ran.
[[nodiscard]] Result<int> logs(const Client& client, const LogsOptions& options);

/// What `check` looks at. app has loaded the configuration.
struct CheckOptions {
  struct Queue {
    std::string name;
    wire::Layout layout;
    core::QueueOptions options;
    std::vector<std::string> session_checks;
    Duration hang_timeout{};               ///< of the daemon; zero: switched off
    std::string admin_token{};             ///< for the admin APIs; empty: there is none, or unread
    std::vector<std::string> own_admin{};  ///< addresses of the admin API of this host's daemon
  };
  /// A worker of which a process was started.
  struct Worker {
    std::string queue, type;  ///< empty: none could be tried
    Duration ready_after{};
    std::string error;  ///< empty: it was ready
  };
  std::string file;                   ///< of the configuration; empty: there is none
  std::vector<std::string> warnings;  ///< of the configuration
  std::optional<Error> error;         ///< why it could not be loaded; the rest is empty then
  std::optional<Error> daemon_error;  ///< why the daemon cannot use it
  bool serves = false;                ///< it has executors, so a daemon uses it
  bool registers = false;             ///< that daemon registers its service
  std::size_t served_queues = 0;      ///< of that daemon, whichever are checked here
  bool has_admin = false;             ///< that daemon has an admin API
  /// That API does, wherever it is asked but on a unix socket.
  bool asks_for_token = false;
  std::vector<std::string> own_admin{};  ///< its addresses
  std::string state_dir;                 ///< of that daemon
  std::string state_dir_exposure;        ///< how others can access it; empty: not at all
  std::string state_dir_owner;           ///< its owner if another user; else empty
  std::vector<Worker> workers;           ///< of that daemon
  net::Options consul;
  std::vector<Queue> queues;
  bool strict = false;  ///< warnings count as failures
};
[[nodiscard]] Result<int> check(Console& console, const CheckOptions& options, bool json);

/// How many connections to one agent such a daemon takes, and what follows from that, in one line.
[[nodiscard]] std::string connections_text(std::size_t queues, bool has_admin);

struct BenchOptions {
  std::size_t tasks = 2'000;  ///< for each measurement
  net::Options consul;        ///< of the configuration: for the daemon that is measured
};
/// Measures lictor beside Consul alone, below a prefix of its own that is gone afterwards.
[[nodiscard]] Result<int> bench(const Client& client, const BenchOptions& options);

[[nodiscard]] Result<int> version(Console& console, bool json);

}  // namespace lictor::cli
