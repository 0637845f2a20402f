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
void add_registered(Config& config, const Registry& registry);

/// Readies the folder below state_dir where programs leave commits and results: removes what jobs
/// of an earlier daemon left, of which none may run any more, and, where a program runs as another
/// user, lets others pass through state_dir (not list it).
void prepare_scratch(const Config& config);

/// Where the output of attempts goes.
[[nodiscard]] std::string log_directory(const Config& config);

/// The runners that `queue` configures, which tell `active_logs` what they write. `host` must
/// outlive them.
/// Errors: kInvalid, naming the executor: a "cpp" name that nobody registered, a plug-in
/// that cannot be taken; kFailed: the system's refusals. Loads plug-ins: not before the warden is
/// forked.
[[nodiscard]] Result<runtime::Runners> make_runners(
    const Config& config, const QueueConfig& queue, exec::LeaseSlot slot, exec::ProcessHost& host,
    const Registry& registry, const std::shared_ptr<exec::ActiveLogs>& active_logs);

}  // namespace lictor::app
