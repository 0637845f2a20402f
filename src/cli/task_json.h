#pragma once

#include <nlohmann/json_fwd.hpp>

#include "client/task_info.h"

namespace lictor::cli {

/// A task as `--json` prints it. Every field is always there, null where it has no value, so that a
/// script need not ask; times are RFC 3339.
[[nodiscard]] nlohmann::ordered_json task_json(const TaskInfo& view);

}  // namespace lictor::cli
