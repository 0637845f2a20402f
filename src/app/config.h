#pragma once

// The configuration: one JSON file with comments, LICTOR_* variables and flags over it, read into
// plain structs and checked before anything starts.
//
//   text --json_tree--> values with lines --config_reader--> Config --config_override--> Config
//        --config_queue, config_executor--> queues --config_check--> relations hold
//
// Every refusal is one line: file:line: setting: what was expected, what came, what to change.

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/options.h"
#include "exec/privileges.h"
#include "lictor/result.h"
#include "lictor/time.h"
#include "net/transport.h"
#include "runtime/log.h"
#include "wire/layout.h"

namespace lictor::app {

inline constexpr std::string_view kDefaultConfigPath = "/etc/lictor/lictor.json";

using LogLevel = runtime::Level;
using LogFormat = runtime::LogStyle;

struct LogConfig {
  LogLevel level = LogLevel::kInfo;
  LogFormat format = LogFormat::kText;
};

struct ConsulConfig {
  net::Options options;          ///< without Consul's own environment; see net/environment.h
  bool register_service = true;  ///< "register": the service and its check in Consul's catalog
};

struct AdminConfig {
  std::vector<std::string> listen{"127.0.0.1:8642"};  ///< empty: switched off
  bool listen_is_default = true;  ///< nobody chose it: another port does where it is taken
  std::string token_file;

  friend bool operator==(const AdminConfig&, const AdminConfig&) = default;
};

/// "logs": how much of the jobs' output is kept.
struct LogsConfig {
  Duration max_age = std::chrono::hours{720};
  std::uint64_t max_bytes = 1ULL << 30U;

  friend bool operator==(const LogsConfig&, const LogsConfig&) = default;
};

/// Resource limits (setrlimit); what is not set is inherited.
struct ExecLimits {
  std::optional<std::uint64_t> open_files;       ///< RLIMIT_NOFILE
  std::optional<std::uint64_t> processes;        ///< RLIMIT_NPROC
  std::optional<std::uint64_t> memory_bytes;     ///< RLIMIT_AS
  std::optional<std::uint64_t> file_size_bytes;  ///< RLIMIT_FSIZE
  std::optional<std::uint64_t> core_bytes;       ///< RLIMIT_CORE
  std::optional<Duration> cpu_time;              ///< RLIMIT_CPU, at least 1s
};

/// {"exec": ["/opt/jobs/any", "--verbose"]}
struct ExecConfig {
  std::vector<std::string> argv;   ///< argv[0] is absolute
  std::string cwd;                 ///< empty: the daemon's own
  std::optional<exec::User> user;  ///< set only where it differs from the daemon's own
  std::map<std::string, std::string> env;
  std::uint64_t output_limit_bytes = 1U << 20U;  ///< of the log file of one attempt
  ExecLimits limits;
};

/// {"noop": {"sleep": "5ms"}}
struct NoopConfig {
  Duration sleep = Duration::zero();
};

/// {"cpp": "name"}: registered by the program that embeds lictor. Whether it is, main checks.
struct CppConfig {
  std::string name;
};

/// {"http": {"url": "http://127.0.0.1:9000/notify"}}, or the URL alone
struct HttpConfig {
  std::string url;
  std::map<std::string, std::string> headers;
  std::string token_file;  ///< sent as "Authorization: Bearer …"; read for each attempt
  std::string ca_file;     ///< empty: the system's CAs
};

/// {"plugin": {"file": "/opt/jobs/libresize.so", "executor": "Resize"}}, or the file alone
struct PluginConfig {
  std::string file;
  std::string executor;  ///< empty: the one called like the type, else the only one
};

using ExecutorConfig = std::variant<ExecConfig, NoopConfig, CppConfig, HttpConfig, PluginConfig>;

struct QueueConfig {
  /// Name, timing and, in `types` and `any_type`, the policy of each executor. `node` is set,
  /// `identity` is left to the daemon.
  core::QueueOptions options;
  std::vector<std::string> session_checks{"serfHealth"};  ///< empty: TTL alone keeps the session

  wire::Layout layout;  ///< no two paths of a configuration overlap

  /// For executors that don't set them.
  core::TypePolicy defaults;

  /// By taskType; "*" takes the rest. The same keys as options.types and any_type.
  std::map<std::string, ExecutorConfig, std::less<>> executors;
};

struct Config {
  std::string file;    ///< where it was read from; empty: there was no file
  std::string digest;  ///< of what all hosts should have alike; empty: there was no file
  std::string node;
  std::string root = "lictor/";
  std::string state_dir = "/var/lib/lictor";
  /// The warden kills a daemon whose loop hangs for this long; zero: never.
  Duration hang_timeout{};
  LogConfig log;
  ConsulConfig consul;
  AdminConfig admin;
  LogsConfig logs;
  std::vector<QueueConfig> queues;    ///< never empty
  std::vector<std::string> warnings;  ///< one line each, for whoever asked to load
};

/// What commands need of a configuration. The daemon needs a file, executors, and programs that are
/// there; a client only where the queues lie; an embedding program brings executors of its own, so
/// that it can do without a file.
enum class Mode { kDaemon, kClient, kEmbedded };

/// What overrides the file, as text: LICTOR_* variables, then flags.
struct Overrides {
  std::optional<std::string> config, node, root, state_dir, log_level, log_format;
  std::optional<std::string> consul_addresses;  ///< separated by commas
  std::optional<std::string> token_file;
};

/// Variables by name.
using Environment = std::map<std::string, std::string, std::less<>>;

struct LoadRequest {
  Mode mode = Mode::kDaemon;
  Overrides flags;
  Environment environment;
  std::string default_path{
      kDefaultConfigPath};  ///< taken where neither flag nor variable names one
  /// Whether a daemon that runs as root refuses files that others could change.
  bool refuse_untrusted = true;
};

/// Reads the file that flags, environment or default name; variables and flags override it.
/// Where the default file does not exist, a client gets default_config(), the daemon an error.
/// Blocks on the file system and on the user database. Not thread safe where getpwnam() is not.
/// Errors: kInvalid, also when the daemon runs as root and others could change the file or a program
/// in it (base/traced_file.h); kPermissionDenied, when the file may not be read.
[[nodiscard]] Result<Config> load_config(const LoadRequest& request);

/// As load_config() for a file that holds `text`; `file` is what errors call it.
[[nodiscard]] Result<Config> parse_config(std::string_view text, std::string_view file,
                                          const LoadRequest& request);

/// One queue "default" below "lictor/", no executors, the local agent.
[[nodiscard]] Config default_config();

/// environ, as load_config() takes it.
[[nodiscard]] Environment read_environment(const char* const* environment);

}  // namespace lictor::app
