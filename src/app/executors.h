#pragma once

#include "app/config.h"
#include "app/registry.h"
#include "exec/process_host.h"
#include "lictor/result.h"
#include "runtime/queue_driver.h"

namespace lictor::app {

/// Adds to each queue the registered executors whose name is not configured as a type there.
void add_registered(Config& config, const Registry& registry);

/// The runners that `queue` configures. `host` must outlive them.
/// Errors: kInvalid, naming the executor: a "cpp" name that nobody registered.
[[nodiscard]] Result<runtime::Runners> make_runners(const Config& config, const QueueConfig& queue,
                                                    exec::LeaseSlot slot, exec::ProcessHost& host,
                                                    const Registry& registry);

}  // namespace lictor::app
