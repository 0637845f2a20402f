#pragma once

#include <string>

#include "client/queue.h"
#include "client/task_info.h"

namespace lictor::client {

/// Waits until the task `id` has ended, blocking on its key: see Client::wait().
[[nodiscard]] Result<Ending> follow(const Queue& queue, const std::string& id,
                                    const WaitOptions& options);

/// "running on host-a, attempt 2: exit 3", in one line, printable.
[[nodiscard]] std::string described(const TaskInfo& task);

}  // namespace lictor::client
