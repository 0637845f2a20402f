#pragma once

#include <string>
#include <vector>

#include "app/config.h"
#include "app/config_reader.h"
#include "lictor/result.h"

namespace lictor::app {

/// The words of "log.level" and "log.format".
[[nodiscard]] const Choices<LogLevel>& log_levels();
[[nodiscard]] const Choices<LogFormat>& log_formats();

/// Applies variables, then flags to `config`; not --config, which load_config() reads itself.
/// Errors: kInvalid, naming the variable or the flag.
[[nodiscard]] Result<void> apply_overrides(const LoadRequest& request, Config& config);

/// A line for each LICTOR_* variable that nothing reads, with the nearest one that something does.
[[nodiscard]] std::vector<std::string> unknown_variables(const Environment& environment);

}  // namespace lictor::app
