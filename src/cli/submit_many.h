#pragma once

#include <string>

#include "cli/command.h"

namespace lictor::cli {

/// submit --ndjson: writes a task of each line of `file` ("-": standard input). `type`: of records
/// without one; may be empty.
[[nodiscard]] Result<int> submit_many(const Client& client, const std::string& file,
                                      const std::string& type, SubmitOrder order);

}  // namespace lictor::cli
