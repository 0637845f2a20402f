#pragma once

#include <cstdint>
#include <string>

#include "exec/process_runner.h"
#include "lictor/time.h"

namespace lictor::worker {

/// What the configuration says of a worker, and the defaults of its keys.
struct WorkerOptions {
  exec::ProcessOptions program;
  std::uint32_t processes = 1;          ///< the most on this host
  std::uint32_t tasks_per_process = 1;  ///< attempts that one may have at a time
  std::uint64_t max_tasks = 0;          ///< then the process is replaced; 0: never
  Duration idle_timeout = std::chrono::minutes{5};
  Duration start_timeout = std::chrono::seconds{30};

  // Not the configuration's:
  std::string queue;
  std::string type;

  friend bool operator==(const WorkerOptions&, const WorkerOptions&) = default;
};

/// The most processes of all workers of a daemon: each takes a lease slot, and the warden looks at
/// all of them. Twice as many as a configuration may ask for, since a reload starts the new ones
/// while the old ones end.
inline constexpr std::uint32_t kMostConfigured = 512;
inline constexpr std::uint32_t kMostProcesses = 2 * kMostConfigured;

}  // namespace lictor::worker
