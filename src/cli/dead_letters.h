#pragma once

#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/task_view.h"

namespace lictor::cli {

/// The dead letters of the task `id`: dead/<id>, dead/<id>~2, ... in this order.
[[nodiscard]] Result<std::vector<TaskView>> dead_letters_of(const Client& client,
                                                            const std::string& id);

}  // namespace lictor::cli
