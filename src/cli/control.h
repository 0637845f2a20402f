#pragma once

#include <string>
#include <string_view>

#include "lictor/result.h"
#include "lictor/time.h"

namespace lictor::cli {

/// The value of the control key with a request to step down in it, its other fields as they are.
/// `control` is what it holds now; empty: nothing. Errors: kInvalid, when that is not an object.
[[nodiscard]] Result<std::string> with_step_down(std::string_view control, std::string_view id,
                                                 std::string_view by, WallTime at);

/// "user@host", for the trace that an operator's request leaves.
[[nodiscard]] std::string who_asks();

}  // namespace lictor::cli
