#include "app/queue_locks.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "runtime/lock_release.h"

namespace lictor::app {

wire::Binding make_binding(const Config& config, const QueueConfig& queue) {
  wire::Binding binding;
  binding.layout = queue.layout;
  for (const QueueConfig& any : config.queues) binding.reserved.queues.push_back(any.layout);
  binding.reserved.root = config.root;
  binding.queue = queue.options.queue;
  binding.node = config.node;
  binding.session_ttl = queue.options.session_ttl;
  binding.lock_delay = queue.options.lock_delay;
  binding.session_checks = queue.session_checks;
  binding.request_timeout =
      std::chrono::duration_cast<std::chrono::milliseconds>(queue.options.request_timeout);
  return binding;
}

exec::ReleaseLocks release_locks(const Config& config) {
  return [&config](const std::vector<exec::HeldLock>& locks) {
    std::vector<runtime::LockOwner> owners;
    for (const QueueConfig& queue : config.queues) {
      const core::QueueOptions& options = queue.options;
      owners.push_back(
          {make_binding(config, queue),
           {config.state_dir, options.queue, config.node, options.session_ttl, options.lock_delay},
           first_slot(owners.size())});
    }
    return runtime::release_locks(config.consul.options, owners, locks);
  };
}

Duration longest_lock_release(const Config& config) {
  Duration grace{};
  for (const QueueConfig& queue : config.queues) {
    grace = std::max(grace, queue.options.kill_grace);
  }
  return grace + 2 * exec::kLockReleaseTimeout;
}

}  // namespace lictor::app
