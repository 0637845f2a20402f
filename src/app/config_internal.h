#pragma once

// The parts of load_config(), and the manual's list of settings.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/config.h"
#include "app/config_reader.h"
#include "lictor/result.h"

namespace lictor::app {

// config.cpp

/// The settings of the whole file. The value of "queues" is left in `queues`.
[[nodiscard]] Settings top_settings(Config& config, std::optional<ConfigNode>& queues);

/// The keys of one kind of object in the configuration.
struct ObjectForm {
  std::string name;  ///< as the manual's page calls it: "Queues"
  std::vector<KeyForm> keys;
};
/// Every key of the configuration, from the tables that the parser reads it by.
[[nodiscard]] std::vector<ObjectForm> configuration_forms();

// config_override.cpp

/// The words of "log.level" and "log.format".
inline const Choices<LogLevel> kLogLevels{{"trace", LogLevel::kTrace},
                                          {"debug", LogLevel::kDebug},
                                          {"info", LogLevel::kInfo},
                                          {"warn", LogLevel::kWarn},
                                          {"error", LogLevel::kError}};
inline const Choices<LogFormat> kLogFormats{
    {"text", LogFormat::kText}, {"json", LogFormat::kJson}, {"journal", LogFormat::kJournal}};

/// Applies variables, then flags to `config`; not --config, which load_config() reads itself.
/// Errors: kInvalid, naming the variable or the flag.
[[nodiscard]] Result<void> apply_overrides(const LoadRequest& request, Config& config);

/// A line for each LICTOR_* variable that nothing reads, with the nearest one that something does.
[[nodiscard]] std::vector<std::string> unknown_variables(const Environment& environment);

/// The most jobs at a time, of a queue or of an executor.
inline constexpr std::uint64_t kMostConcurrency = 10'000;

// config_queue.cpp

/// The KV paths of a queue by the names of their settings; names of prefixes end in "prefix".
struct QueuePath {
  std::string_view setting;
  std::string wire::Layout::*path;

  [[nodiscard]] bool is_prefix() const { return setting.ends_with("prefix"); }
};
inline constexpr std::array<QueuePath, 7> kQueuePaths{
    {{"tasks_prefix", &wire::Layout::tasks_prefix},
     {"dead_prefix", &wire::Layout::dead_prefix},
     {"done_prefix", &wire::Layout::done_prefix},
     {"members_prefix", &wire::Layout::members_prefix},
     {"schedules_prefix", &wire::Layout::schedules_prefix},
     {"leader_key", &wire::Layout::leader_key},
     {"control_key", &wire::Layout::control_key}}};

/// The queue `name` with every default, its paths below `root`.
[[nodiscard]] QueueConfig default_queue(const std::string& name, const std::string& root,
                                        const std::string& node);

/// The members of a queue that are read after its settings.
struct QueueMembers {
  std::optional<ConfigNode> executors, schedules;
};

/// The settings of a queue; `policy` takes the defaults of its executors.
[[nodiscard]] Settings queue_settings(QueueConfig& queue, core::TypePolicy& policy,
                                      QueueMembers& members);

/// Reads "queues", whose place is `place`, into config.queues. Derives settings that are not set:
/// paths from root and name, renew_interval from session_ttl, margin from lock_delay.
[[nodiscard]] Result<void> read_queues(const ConfigNode& place, const LoadRequest& request,
                                       Config& config);

// config_executor.cpp

/// The settings that a queue gives as defaults and an executor may give itself.
[[nodiscard]] Settings policy_settings(core::TypePolicy& policy);

/// The settings of every kind of executor, though an executor has one kind: the kind is known only
/// when all keys were read, and the manual's list has the keys of all kinds.
struct ExecutorParts {
  ExecConfig exec;
  NoopConfig noop;
  CppConfig cpp;
  HttpConfig http;
  PluginConfig plugin;
  WorkerConfig worker;  ///< `program`, without its vector, is in `exec`
};

/// The settings of an executor.
[[nodiscard]] Settings executor_settings(ExecutorParts& parts, core::TypePolicy& policy, Mode mode);

/// A task that runs at most once is not tried again after a failure, unless the configuration sets
/// max_attempts (`counts_attempts`). A record cannot ask for more.
void limit_at_most_once(core::TypePolicy& policy, bool counts_attempts);

/// Reads "executors" into queue.executors and, starting each from `defaults`, into the policies of
/// queue.options; `counts_attempts`: the queue sets max_attempts. For the daemon, programs, folders
/// and users must exist on this host; if request.only_type is set, only that type's.
[[nodiscard]] Result<void> read_executors(const ConfigNode& place, const LoadRequest& request,
                                          const core::TypePolicy& defaults, bool counts_attempts,
                                          QueueConfig& queue);

// config_check.cpp

/// max(1s, 2% of lock_delay): covers scheduling delays, and the clocks of two hosts that each drift
/// by up to 1%.
[[nodiscard]] Duration margin_for(Duration lock_delay);

/// Whether a queue's settings fit together: renewals into the session's TTL, the kill of all jobs
/// and two tries of a proof into the lock-delay, the jobs into max_unacked. `place` is the queue's.
/// Errors: kInvalid, naming the settings, their values and what to change.
[[nodiscard]] Result<void> check_relations(const ConfigNode& place,
                                           const core::QueueOptions& options);

/// Checks that no KV path of the queues lies in another, and that no two queues have one name.
/// `place` is that of "queues", in the order of `queues`.
[[nodiscard]] Result<void> check_layout(const ConfigNode& place,
                                        const std::vector<QueueConfig>& queues);

/// Errors: all workers together may have more processes than a daemon. `place` is that of "queues".
[[nodiscard]] Result<void> check_workers(const ConfigNode& place,
                                         const std::vector<QueueConfig>& queues);

/// A third of the shortest session_ttl, so that a daemon that hangs is replaced before its session
/// would end; half of the shortest lease, where that is less.
[[nodiscard]] Duration default_hang_timeout(const std::vector<QueueConfig>& queues);

/// Errors: a hang_timeout that is not 0 and not less than each lease: at a lease's end the jobs of
/// a hung daemon are killed anyway. `place` is that of the whole file.
[[nodiscard]] Result<void> check_hang_timeout(const ConfigNode& place, Duration hang_timeout,
                                              const std::vector<QueueConfig>& queues);

}  // namespace lictor::app
