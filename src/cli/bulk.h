#pragma once

// What the commands that change many tasks have in common.

#include <functional>
#include <string>
#include <vector>

#include "cli/commands.h"

namespace lictor::cli {

/// Prints the result and returns the exit code: kUnreachable if Consul stopped answering, else that
/// of the first refusal. `done`: "cancelled". `line` words one task; empty: print only the count.
[[nodiscard]] int tell_bulk(const Client& client, const BulkResult& result, const std::string& done,
                            const std::function<std::string(const TaskInfo&)>& line);

/// Changes each id by itself. A refusal does not stop the others; a Consul that does not answer does.
[[nodiscard]] BulkResult each_of(const std::vector<std::string>& ids,
                                 const std::function<Result<TaskInfo>(const std::string&)>& change);

}  // namespace lictor::cli
