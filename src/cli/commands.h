#pragma once

// The subcommands that ask or tell Consul something, each in a file of its name. Each returns its
// exit code, or the error that app prints and maps to one. All block.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/console.h"
#include "cli/new_task.h"
#include "cli/store.h"
#include "core/options.h"
#include "lictor/result.h"
#include "net/transport.h"
#include "wire/layout.h"

namespace lictor::cli {

/// What every command works on: one queue.
struct Client {
  Console& console;
  Store& store;
  std::string queue;
  wire::Layout layout;
  bool json = false;
};

struct SubmitOptions {
  TaskText task;
  bool wait = false;
  std::optional<Duration> wait_timeout;
};
[[nodiscard]] Result<int> submit(const Client& client, const SubmitOptions& options);

struct SubmitManyOptions {
  std::string file;  ///< "-": standard input
  std::string type;  ///< for records without one; may be empty
};
[[nodiscard]] Result<int> submit_many(const Client& client, const SubmitManyOptions& options);

struct ListOptions {
  std::string state;      ///< empty: all
  std::string type;       ///< empty: all
  std::size_t limit = 0;  ///< 0: none
};
[[nodiscard]] Result<int> list(const Client& client, const ListOptions& options);

[[nodiscard]] Result<int> show(const Client& client, const std::string& id);

struct LeaderOptions {
  bool step_down = false;
  bool wait = true;
  Duration timeout = std::chrono::seconds{30};
};
[[nodiscard]] Result<int> leader(const Client& client, const LeaderOptions& options);

[[nodiscard]] Result<int> members(const Client& client);

struct LogsOptions {
  std::string id;
  bool follow = false;
  std::optional<std::uint32_t> attempt;  ///< nothing: the newest
  std::string node;                      ///< empty: who has it
  // Of the configuration: whose logs lie on this host, and where.
  std::string own_node, state_dir;
};
/// Prints what an attempt of a program printed, wherever it ran.
[[nodiscard]] Result<int> logs(const Client& client, const LogsOptions& options);

/// What `check` looks at. The configuration has been loaded by app, the only one who knows it.
struct CheckOptions {
  struct Queue {
    std::string name;
    wire::Layout layout;
    core::QueueOptions options;
    std::vector<std::string> session_checks;
  };
  std::string file;                   ///< of the configuration; empty: there is none
  std::vector<std::string> warnings;  ///< of the configuration
  std::optional<Error> error;         ///< it could not be loaded; what follows is then empty
  std::optional<Error> daemon_error;  ///< it serves clients, not the daemon
  bool serves = false;                ///< it has executors: a daemon is to run with it
  net::Options consul;
  std::vector<Queue> queues;
};
[[nodiscard]] Result<int> check(Console& console, const CheckOptions& options, bool json);

[[nodiscard]] Result<int> version(Console& console, bool json);

}  // namespace lictor::cli
