#pragma once

#include <string>

#include "lictor/result.h"

namespace lictor::cli {

/// The text that an argument stands for: itself, or with "@FILE" what the file holds, with "-" what
/// standard input does. Blocks on it. Errors: kInvalid, naming `flag` and the file.
[[nodiscard]] Result<std::string> read_argument(const std::string& flag,
                                                const std::string& argument);

}  // namespace lictor::cli
