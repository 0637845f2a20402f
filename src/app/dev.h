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

/// `lictor dev`: a store that speaks Consul's HTTP API, in a process of its own and in memory, and
/// the daemon against it (if `command.worker`); both end with SIGINT or SIGTERM. `load` reads the
/// configuration that was given; without one every task is printed and done, until another daemon
/// joins the queue: then this one stops in order, and the store stays. Forks, so no thread may exist
/// yet. Errors: those of `load` and of listening. Returns the daemon's exit code.
[[nodiscard]] Result<int> run_dev(const DevCommand& command, const LoadRequest& request,
                                  const Registry& registry,
                                  const std::function<Result<Config>()>& load,
                                  cli::Console& console);

}  // namespace lictor::app
