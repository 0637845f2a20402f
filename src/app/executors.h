#pragma once

#include <map>
#include <memory>
#include <string>

#include "app/config.h"
#include "exec/function_runner.h"
#include "exec/output_log.h"
#include "exec/process_host.h"
#include "exec/runner.h"
#include "lictor/executor.h"
#include "lictor/result.h"
#include "runtime/queue_driver.h"
#include "worker/room.h"

namespace lictor::app {

/// The C++ executors that the embedding program brings, by name.
using Registry = std::map<std::string, std::shared_ptr<Executor>, std::less<>>;

/// `config` with the registered executors added to each queue, except names that are configured as
/// a type there. Errors: kInvalid, the configuration names one that is not registered.
[[nodiscard]] Result<Config> with_registered(Config config, const Registry& registry);

/// Prepares the folder below state_dir for the commits and results of programs: removes the files
/// of an earlier daemon's jobs, none of which may still run. Where a program runs as another user,
/// other users may pass through state_dir, but not list it.
void prepare_scratch(const Config& config);

/// Loads the plug-ins of the configuration and finds their executors, as the daemon's start does.
/// Errors: as of exec::plugin_executor().
[[nodiscard]] Result<void> load_plugins(const Config& config);

/// The folder of the attempts' output.
[[nodiscard]] std::string log_directory(const Config& config);

/// The parts of the runners of one queue. `host` and `workers` must outlive them.
struct RunnerParts {
  const Config& config;
  const QueueConfig& queue;
  exec::LeaseSlot slot;
  exec::ProcessHost& host;
  worker::Room& workers;
  const Registry& registry;
  const std::shared_ptr<exec::ActiveLogs>& active_logs;  ///< they add their logs to it
};

/// The runners of a queue's executors. Loads plug-ins, so call it only after the warden is forked.
/// Errors: kInvalid, naming the executor: a "cpp" name that is not registered, an unusable plug-in;
/// kFailed, the system refused something.
[[nodiscard]] Result<runtime::Runners> make_runners(const RunnerParts& parts);

/// Runs one attempt by `executor` on the calling thread: builds its Context, and converts its
/// answer, KV writes and progress to those of any other job. KV writes or a result that cannot be
/// stored fail the attempt. Exceptions of run() pass through.
[[nodiscard]] exec::Exit run_in_process(Executor& executor, const exec::Attempt& attempt,
                                        const exec::JobTools& tools);

}  // namespace lictor::app
