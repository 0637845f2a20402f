#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/commands.h"
#include "cli/task_view.h"

namespace lictor::cli {

/// How a task ended. Consul keeps no trace of one that is done, nor of one that was withdrawn.
struct Ending {
  std::optional<TaskView> dead;  ///< its dead letter; nothing: done, or withdrawn
};

/// Waits until the task `id`, created at CreateIndex `index` or after it, is gone, and tells its
/// state on the way, on a terminal. Blocks on its key; an outage of Consul is sat out for a minute.
/// Errors: kFailed when `timeout` has passed first; those of the store.
[[nodiscard]] Result<Ending> follow(const Client& client, const std::string& id,
                                    std::uint64_t index, std::optional<Duration> timeout);

}  // namespace lictor::cli
