#pragma once

#include "exec/function_runner.h"
#include "exec/runner.h"
#include "lictor/executor.h"

namespace lictor::app {

/// Carries out one attempt by `executor` on the calling thread: builds its Context, and makes of
/// its answer, its KV writes and its progress what any other job would leave. Writes and results
/// that cannot be handed over fail the attempt. What run() throws passes through.
[[nodiscard]] exec::Exit run_in_process(Executor& executor, const exec::Attempt& attempt,
                                        const exec::JobTools& tools);

}  // namespace lictor::app
