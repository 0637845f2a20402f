#pragma once

#include <functional>
#include <string>
#include <vector>

#include "app/config.h"
#include "app/executors.h"
#include "lictor/result.h"

namespace lictor::app {

struct RunOptions {
  bool once = false;                       ///< end when no due tasks are left
  std::function<Result<Config>()> reload;  ///< reads the configuration again, for SIGHUP
  /// Called once, with the admin API's addresses, before the daemon joins its queues. An error
  /// ends the daemon.
  std::function<Result<void>(const std::vector<std::string>& urls)> on_listen = {};
};

/// `lictor run`: leads or follows in every queue of `config` until SIGTERM or SIGINT. Forks the
/// warden first, so no thread may exist yet. Returns the process's exit code (commands.md).
[[nodiscard]] int run_daemon(const Config& config, const Registry& registry,
                             const RunOptions& options);

}  // namespace lictor::app
