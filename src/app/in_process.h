#pragma once

#include "exec/function_runner.h"
#include "exec/runner.h"
#include "lictor/executor.h"

namespace lictor::app {

/// Runs one attempt by `executor` on the calling thread: builds its Context, and converts its
/// answer, KV writes and progress to those of any other job. KV writes or a result that cannot be
/// stored fail the attempt. Exceptions of run() pass through.
[[nodiscard]] exec::Exit run_in_process(Executor& executor, const exec::Attempt& attempt,
                                        const exec::JobTools& tools);

}  // namespace lictor::app
