#pragma once

#include <map>
#include <memory>
#include <string>

#include "app/config.h"
#include "exec/output_log.h"
#include "exec/process_host.h"
#include "lictor/executor.h"
#include "lictor/result.h"
#include "runtime/queue_driver.h"

namespace lictor::app {

/// The C++ executors that the embedding program brings, by name.
using Registry = std::map<std::string, std::shared_ptr<Executor>, std::less<>>;

/// Adds to each queue the registered executors whose name is not configured as a type there.
/// Errors: kInvalid, the configuration names one that is not registered.
[[nodiscard]] Result<void> add_registered(Config& config, const Registry& registry);

/// Prepares the folder below state_dir for the commits and results of programs: removes the files
/// of an earlier daemon's jobs, none of which may still run. Where a program runs as another user,
/// other users may pass through state_dir, but not list it.
void prepare_scratch(const Config& config);

/// Where the output of attempts goes.
[[nodiscard]] std::string log_directory(const Config& config);

/// The runners of `queue`'s executors; they add their logs to `active_logs`. `host` must outlive
/// them. Loads plug-ins, so call it only after the warden is forked.
/// Errors: kInvalid, naming the executor: a "cpp" name that is not registered, an unusable plug-in;
/// kFailed, the system refused something.
[[nodiscard]] Result<runtime::Runners> make_runners(
    const Config& config, const QueueConfig& queue, exec::LeaseSlot slot, exec::ProcessHost& host,
    const Registry& registry, const std::shared_ptr<exec::ActiveLogs>& active_logs);

}  // namespace lictor::app
