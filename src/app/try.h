#pragma once

#include <string>

#include "app/config.h"
#include "app/executors.h"
#include "cli/commands.h"
#include "cli/console.h"

namespace lictor::app {

struct TryCommand {
  cli::TaskText task;  ///< its type is the executor's, or one for "*"
};

/// `lictor try`: runs one attempt of a task by the executor of its type, as the daemon would, on this
/// host and without Consul, in a folder of its own; prints its output, and what would have become of
/// the task. Commits nothing. Forks, so no thread may exist yet. Errors: kNotFound, no executor;
/// kInvalid; kFailed. Returns kDone or kFailed.
[[nodiscard]] Result<int> run_try(const TryCommand& command, Config config,
                                  const std::string& queue, const Registry& registry,
                                  cli::Console& console, bool json);

}  // namespace lictor::app
