#pragma once

#include <string_view>

namespace lictor::cli {

/// "0.1.0"
[[nodiscard]] std::string_view lictor_version();

}  // namespace lictor::cli
