#pragma once

#include <functional>
#include <string>

#include "app/config.h"
#include "app/executors.h"
#include "cli/console.h"

namespace lictor::app {

struct DevCommand {
  std::string listen = "127.0.0.1:8500";  ///< of the store, where a Consul agent would be
  bool worker = true;
};

/// `lictor dev`: runs a store that speaks Consul's HTTP API, in memory and in its own process, and,
/// with `command.worker`, a daemon that uses it. SIGINT and SIGTERM end both. `load` reads the
/// given configuration. Without one, every task is printed and counts as done until another daemon
/// joins the queue; then this daemon stops and the store goes on. Forks, so no thread may exist
/// yet. Errors: those of `load` and of listening. Returns the daemon's exit code.
[[nodiscard]] Result<int> run_dev(const DevCommand& command, const LoadRequest& request,
                                  const Registry& registry,
                                  const std::function<Result<Config>()>& load,
                                  cli::Console& console);

}  // namespace lictor::app
