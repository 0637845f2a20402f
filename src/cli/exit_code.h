#pragma once

#include "lictor/result.h"

namespace lictor::cli {

// What a command's exit code says (DESIGN section 7).
inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;  ///< the thing asked about failed
inline constexpr int kUsage = 2;   ///< bad usage or configuration
inline constexpr int kNotFound = 3;
inline constexpr int kUnreachable = 4;  ///< Consul
inline constexpr int kDenied = 5;

[[nodiscard]] int exit_code(ErrorCode code);

}  // namespace lictor::cli
