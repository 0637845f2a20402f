#pragma once

// One file a topic; each adds its routes. What they are given must outlive the router.

#include "admin/backend.h"
#include "admin/router.h"

namespace lictor::admin {

/// /healthz, /readyz, /v1/status
void add_status_routes(Router& router, Backend& backend);
/// /v1/tasks/<id>/why
void add_task_routes(Router& router, Backend& backend);
/// /v1/logs
void add_log_routes(Router& router, const LogStore& store);

}  // namespace lictor::admin
