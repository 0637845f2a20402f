#pragma once

// The routes of the admin face, a function a topic, and what they ask of the daemon. The arguments
// must outlive the router.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "admin/router.h"
#include "exec/output_log.h"
#include "lictor/time.h"

namespace lictor::admin {

struct QueueStatus {
  enum class Role { kFollowing, kLeading, kDraining };
  std::string name;
  Role role = Role::kFollowing;
  std::size_t waiting = 0;        ///< tasks known and not begun; a follower knows of none
  std::size_t claimed_ahead = 0;  ///< claimed, and not started yet
  std::size_t running = 0;        ///< jobs on this host
  bool paused = false;            ///< as a leader knows
  std::string cannot_start{};     ///< why the last start of a job here failed; empty: it did not
  Duration lease_left{};          ///< until the lease runs out without another proof
  Duration oldest_due{};          ///< since when the first task that may start has been due
  std::size_t unacked = 0;        ///< jobs that ended and whose end is not in Consul yet
  std::uint64_t discovered = 0;   ///< keys that became known since the daemon's start
  std::vector<std::pair<std::string, std::size_t>> states{};  ///< tasks in each state, by name
};

struct Status {
  std::string node;
  std::string version;
  int pid = 0;
  Duration uptime{};
  WallTime since{};
  bool stopping = false;
  std::vector<QueueStatus> queues;
};

/// What the admin face asks the daemon. Thread safe. Every method blocks, two seconds at most.
class Backend {
 public:
  virtual ~Backend() = default;

  /// Nothing: the daemon's loop did not answer in time, or has ended.
  [[nodiscard]] virtual std::optional<Status> status() = 0;

  /// Why Consul cannot be used now; empty: it can.
  [[nodiscard]] virtual std::string consul_trouble() = 0;

  /// JSON that says why the task is not running. Nothing: this member does not lead the queue.
  [[nodiscard]] virtual std::optional<std::string> why(const std::string& queue,
                                                       const std::string& id) = 0;
};

/// Where the output of attempts lies.
struct LogStore {
  std::string directory;
  std::shared_ptr<const exec::ActiveLogs> active;
};

/// /healthz, /readyz, /v1/status, /v1/tasks/<id>/why
void add_status_routes(Router& router, Backend& backend);
/// /v1/logs
void add_log_routes(Router& router, const LogStore& store);

class Metrics;
/// /metrics
void add_metrics_route(Router& router, Backend& backend, const Metrics& metrics);

class Events;
/// /v1/events
void add_event_route(Router& router, Events& events);

}  // namespace lictor::admin
