#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>

#include "app/config.h"
#include "core/partition.h"
#include "exec/function_runner.h"
#include "exec/lease_board.h"
#include "exec/lock_keeper.h"
#include "exec/output_log.h"
#include "exec/process_host.h"
#include "exec/runner.h"
#include "lictor/executor.h"
#include "lictor/result.h"
#include "runtime/queue_driver.h"
#include "wire/consul.h"
#include "worker/room.h"

namespace lictor::app {

/// The C++ executors that the embedding program brings, by name.
using Registry = std::map<std::string, std::shared_ptr<Executor>, std::less<>>;

/// `config` with the registered executors added to each queue, but for names that are configured
/// as a type there. Errors: kInvalid, the configuration names one that is not registered.
[[nodiscard]] Result<Config> with_registered(Config config, const Registry& registry);

/// Prepares the folder below state_dir for the commits and results of programs: removes the files
/// of an earlier daemon's jobs, none of which may still run. Where a program runs as another user,
/// other users may pass through state_dir, but not list it.
void prepare_scratch(const Config& config);

/// Where the output of attempts goes.
[[nodiscard]] std::string log_directory(const Config& config);

/// What the runners of one queue are made of. `host` and `workers` must outlive them.
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

// The locks of a daemon's queues: where Consul has them, under which leases their jobs run, and how
// the warden releases them when the daemon is dead.

/// Without leader_value.
[[nodiscard]] wire::Binding make_binding(const Config& config, const QueueConfig& queue);

/// The lease of partition 0 of the `index`-th queue; of the number of queues: how many leases there
/// are. Each queue has as many as it may get partitions while the daemon runs.
[[nodiscard]] inline exec::LeaseSlot first_slot(std::size_t index) {
  return static_cast<exec::LeaseSlot>(index) * core::kMostPartitions;
}

/// Runs in a child of the warden, which is forked from this process as it is now. `config` must
/// outlive it.
[[nodiscard]] exec::ReleaseLocks release_locks(const Config& config);
/// How long the warden of a dead daemon may take to end its jobs and release its locks.
[[nodiscard]] Duration longest_lock_release(const Config& config);

}  // namespace lictor::app
