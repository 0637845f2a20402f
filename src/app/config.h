#pragma once

// The configuration: one JSON file with comments, LICTOR_* variables and flags over it, read into
// plain structs and checked before anything starts.
//
//   text --json_tree--> values with lines --config_reader--> Config --config_override--> Config
//        --config_queue, config_executor--> queues --config_check--> relations hold
//
// Every refusal is one line: file:line: setting: what was expected, what came, what to change.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "client/config_digest.h"
#include "core/options.h"
#include "exec/http_post.h"
#include "exec/process_runner.h"
#include "lictor/result.h"
#include "lictor/time.h"
#include "net/transport.h"
#include "runtime/log.h"
#include "wire/layout.h"
#include "worker/process.h"

namespace lictor::app {

inline constexpr std::string_view kDefaultConfigPath = "/etc/lictor/lictor.json";
/// "billing" for /etc/lictor/billing.json, the file of lictor@billing.service; else empty.
/// The instances of a host have a state_dir and a node name of their own.
[[nodiscard]] std::string_view instance_of(std::string_view file);

using LogLevel = runtime::Level;
using LogFormat = runtime::LogStyle;

struct LogConfig {
  LogLevel level = LogLevel::kInfo;
  LogFormat format = LogFormat::kText;
};

struct ConsulConfig {
  net::Options options;          ///< without Consul's own environment; see net/environment.h
  bool register_service = true;  ///< "register": the service and its check in Consul's catalog

  friend bool operator==(const ConsulConfig&, const ConsulConfig&) = default;
};

struct AdminConfig {
  std::vector<std::string> listen{"127.0.0.1:8642"};  ///< empty: switched off
  /// True if not configured: a taken port is then replaced by a free one. So two daemons of a host,
  /// a usual way to try lictor out, can start with their defaults.
  bool listen_is_default = true;
  std::string token_file;
  std::vector<std::string> names;  ///< further names under which it is asked, such as proxies'
  /// "open": without a token_file it may listen on the network; everybody may read then
  bool open = false;

  friend bool operator==(const AdminConfig&, const AdminConfig&) = default;
};

/// {"exec": ["/opt/jobs/any", "--verbose"]}: the executor's own settings. argv[0] is absolute;
/// `user` is set only where it differs from the daemon's own.
using ExecConfig = exec::ProcessOptions;

/// {"noop": {"sleep": "5ms"}}
struct NoopConfig {
  Duration sleep = Duration::zero();
};

/// {"cpp": "name"}: registered by the program that embeds lictor. with_registered() checks that.
struct CppConfig {
  std::string name;
  std::string where{};  ///< in the configuration, as errors begin with it
};

/// {"http": {"url": "http://127.0.0.1:9000/notify"}}, or the URL alone
using HttpConfig = exec::HttpCall;

/// {"plugin": {"file": "/opt/jobs/libresize.so", "executor": "Resize"}}, or the file alone
struct PluginConfig {
  std::string file;
  std::string executor;  ///< empty: the one named like the type, else the only one
  std::string where;     ///< as of CppConfig
};

/// {"worker": ["/opt/jobs/invoice.py"], "processes": 4}: `program` as of "exec"
using WorkerConfig = worker::WorkerOptions;

using ExecutorConfig =
    std::variant<ExecConfig, NoopConfig, CppConfig, HttpConfig, PluginConfig, WorkerConfig>;

/// The program that an executor runs; null: it runs none.
[[nodiscard]] inline const exec::ProcessOptions* program_of(const ExecutorConfig& executor) {
  if (const auto* worker = std::get_if<WorkerConfig>(&executor)) return &worker->program;
  return std::get_if<ExecConfig>(&executor);
}

struct QueueConfig {
  /// Name, timing and, in `types` and `any_type`, the policy of each executor. `node` is set,
  /// `identity` is left to the daemon.
  core::QueueOptions options;
  /// Consul ends the session when one of them fails. Empty: the TTL alone keeps it.
  std::vector<std::string> session_checks{"serfHealth"};

  std::uint32_t weight = 1;  ///< this host's share of the partitions, relative to those of others

  wire::Layout layout;  ///< no two paths of a configuration overlap

  /// Defaults for executors that don't set them.
  core::TypePolicy defaults;

  /// The executors by taskType; "*" takes the rest. The same keys as options.types and any_type.
  std::map<std::string, ExecutorConfig, std::less<>> executors;
};

/// An executor of one kind, with its queue and type.
template <class Kind>
struct ConfiguredExecutor {
  const QueueConfig& queue;
  const std::string& type;
  const Kind& settings;
};
template <class Kind>
[[nodiscard]] std::vector<ConfiguredExecutor<Kind>> executors_of(
    const std::vector<QueueConfig>& queues) {
  std::vector<ConfiguredExecutor<Kind>> all;
  for (const QueueConfig& queue : queues) {
    for (const auto& [type, executor] : queue.executors) {
      if (const auto* settings = std::get_if<Kind>(&executor))
        all.push_back({queue, type, *settings});
    }
  }
  return all;
}

struct Config {
  std::string file;    ///< where it was read from; empty: there was no file
  std::string digest;  ///< of the settings that all hosts should share; empty: there was no file
  client::ConfigParts parts;  ///< of the same settings
  std::string node;
  std::string root = "lictor/";
  std::string state_dir = "/var/lib/lictor";
  /// The warden kills a daemon whose loop hangs for this long; zero: never.
  Duration hang_timeout{};
  LogConfig log;
  ConsulConfig consul;
  AdminConfig admin;
  exec::LogLimits logs;
  std::vector<QueueConfig> queues;    ///< never empty
  std::vector<std::string> warnings;  ///< one line each

  /// The queue of this name; null: there is none.
  [[nodiscard]] const QueueConfig* find(std::string_view queue) const;
};

/// The parts of a configuration that a command needs. The daemon needs a file, executors, and
/// programs that exist; a client needs only the queues' keys; a program that embeds lictor brings
/// its own executors and needs no file.
enum class Mode { kDaemon, kClient, kEmbedded };

/// Overrides of the file, as text: LICTOR_* variables, then flags.
struct Overrides {
  std::optional<std::string> config, node, root, state_dir, log_level, log_format;
  std::optional<std::string> consul_addresses;  ///< separated by commas
  std::optional<std::string> token_file;
};

/// Variables by name; none is empty.
using Environment = std::map<std::string, std::string, std::less<>>;

struct LoadRequest {
  Mode mode = Mode::kDaemon;
  Overrides flags;
  Environment environment;
  std::string default_path{
      kDefaultConfigPath};  ///< taken where neither flag nor variable names one
  /// The type that is tried out: programs of other executors may be missing on this host.
  std::optional<std::string> only_type{};
  /// Whether a daemon that runs as root refuses files that others could change.
  bool refuse_untrusted = true;
};

/// Reads the file that flags, environment or default name; variables and flags override it. Where
/// the default file does not exist, the daemon gets an error, a client one queue "default" below
/// "lictor/", without executors, and the local agent. Blocks on the file system and on the user
/// database. Not thread safe where getpwnam() is not. Errors: kInvalid, also when the daemon runs
/// as root and others could change the file or a program in it (base/traced_file.h);
/// kPermissionDenied, when the file may not be read.
[[nodiscard]] Result<Config> load_config(const LoadRequest& request);

/// Does as load_config() for a file that holds `text`; errors call the file `file`.
[[nodiscard]] Result<Config> parse_config(std::string_view text, std::string_view file,
                                          const LoadRequest& request);

/// environ, as load_config() takes it: an empty variable counts as not set, as Consul's own do.
[[nodiscard]] Environment read_environment(const char* const* environment);

/// The shortage if `config` needs more open files than `most`, and what to do; empty: none.
[[nodiscard]] std::string descriptor_shortage(const Config& config, std::uint64_t most);

}  // namespace lictor::app
