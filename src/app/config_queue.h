#pragma once

#include <array>
#include <string>
#include <string_view>

#include "app/config.h"
#include "app/config_reader.h"
#include "lictor/result.h"

namespace lictor::app {

/// The KV paths of a queue by the names of their settings; those of prefixes end so.
struct QueuePath {
  std::string_view setting;
  std::string wire::Layout::*path;

  [[nodiscard]] bool is_prefix() const { return setting.ends_with("prefix"); }
};
inline constexpr std::array<QueuePath, 6> kQueuePaths{
    {{"tasks_prefix", &wire::Layout::tasks_prefix},
     {"dead_prefix", &wire::Layout::dead_prefix},
     {"done_prefix", &wire::Layout::done_prefix},
     {"members_prefix", &wire::Layout::members_prefix},
     {"leader_key", &wire::Layout::leader_key},
     {"control_key", &wire::Layout::control_key}}};

/// The queue `name` with every default, its paths below `root`.
[[nodiscard]] QueueConfig default_queue(const std::string& name, const std::string& root,
                                        const std::string& node);

/// Reads "queues". `place` is its place. What is not set is derived: paths from root and name,
/// renew_interval from session_ttl, margin from lock_delay.
[[nodiscard]] Result<std::vector<QueueConfig>> read_queues(const Place& place, Mode mode,
                                                           const std::string& root,
                                                           const std::string& node);

}  // namespace lictor::app
