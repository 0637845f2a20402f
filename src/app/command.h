#pragma once

#include "app/executors.h"

namespace lictor::app {

/// The whole of the lictor command: reads the arguments, does what they say, and returns the
/// process's exit code (DESIGN section 7). `registry`: the executors of the program around it.
[[nodiscard]] int run_command(int argc, char** argv, const Registry& registry);

}  // namespace lictor::app
