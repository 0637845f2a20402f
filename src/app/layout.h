#pragma once

#include "app/config.h"
#include "wire/layout.h"

namespace lictor::app {

/// Where the keys of `queue` lie.
[[nodiscard]] inline wire::Layout layout_of(const QueueConfig& queue) {
  return {queue.tasks_prefix, queue.leader_key,     queue.dead_prefix, queue.done_prefix,
          queue.control_key,  queue.members_prefix, queue.serialize_by};
}

}  // namespace lictor::app
