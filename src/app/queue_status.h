#pragma once

#include <string>
#include <vector>

#include "admin/routes.h"
#include "exec/output_log.h"
#include "runtime/queue_supervisor.h"

namespace lictor::app {

/// What the admin face tells of a queue. On the loop's thread.
[[nodiscard]] admin::QueueStatus status_of(const runtime::QueueSupervisor& queue, bool stopping,
                                           std::vector<std::string> types,
                                           const exec::ActiveLogs& logs);

}  // namespace lictor::app
