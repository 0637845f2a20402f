#pragma once

#include "app/config.h"
#include "app/config_reader.h"

namespace lictor::app {

/// Reads an http executor: a URL, or an object with "url", "headers", "token_file" and "ca_file".
/// For the daemon the files must be there.
[[nodiscard]] Reader http(HttpConfig& target, Mode mode);

}  // namespace lictor::app
