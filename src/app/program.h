#pragma once

// The program's options, and the configuration that they name, for the commands of this folder.

#include <optional>
#include <string>
#include <vector>

#include "app/config.h"
#include "app/executors.h"
#include "cli/check.h"
#include "cli/command_line.h"
#include "cli/command_table.h"
#include "cli/console.h"

namespace lictor::app {

struct Program {
  const Registry& registry;
  cli::Console& console;

  // The options that every command takes, once they are read.
  Overrides overrides{};
  std::optional<std::string> queue{};
  bool json = false;

  /// The mode of a daemon: a program that embeds lictor needs no file.
  [[nodiscard]] Mode daemon_mode() const {
    return registry.empty() ? Mode::kDaemon : Mode::kEmbedded;
  }
  [[nodiscard]] LoadRequest load_request(Mode mode) const;
};

/// Calls load_config(), and adds Consul's own variables, which the flags override.
[[nodiscard]] Result<Config> load(const LoadRequest& request);

/// Afterwards no job, not even one of this user, can read Consul's secrets from
/// /proc/<daemon>/environ or from this process's memory. The process dumps no core, and only root
/// can debug it. load() still finds them.
void hide_secrets();

struct Target {
  std::string queue;
  wire::Layout layout;
};
/// The queue that was named, else the only one, else "default". Errors: kInvalid.
[[nodiscard]] Result<Target> target_of(const Config& config,
                                       const std::optional<std::string>& queue);

/// The addresses of the admin API of this host's daemon.
[[nodiscard]] std::vector<std::string> own_admin(const Config& config);
/// Empty: there is no token, or it may not be read.
[[nodiscard]] std::string admin_token_of(const Config& config);

/// For "lictor check": starts a process of each worker, waits until it is ready, and ends it. Call
/// it while this process has no other thread. Blocks for each worker's start_timeout at most, and
/// for its kill_grace.
[[nodiscard]] std::vector<cli::CheckOptions::Worker> try_workers(const Config& config);

/// Adds all commands, and the options that every command takes.
void add_commands(cli::CommandLine& line, Program& program);

/// Reads the arguments; "help" and "--version", too.
[[nodiscard]] std::variant<cli::Command, cli::ParseOutcome> read_arguments(
    cli::CommandLine& line, std::vector<std::string> words);

/// Runs a command on the queue that was named.
[[nodiscard]] Result<int> run_on_queue(const Program& program, const cli::Command& command);

// The commands of this folder; cli/command_table.h has the order of all.
#define LICTOR_ELSEWHERE(name)
#define LICTOR_DECLARE(name) void add_##name(cli::Commands& to, Program& program);
LICTOR_COMMANDS(LICTOR_DECLARE, LICTOR_ELSEWHERE)
#undef LICTOR_DECLARE
#undef LICTOR_ELSEWHERE

}  // namespace lictor::app
