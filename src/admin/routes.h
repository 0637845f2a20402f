#pragma once

// The routes of the admin API, a function a topic, and their questions to the daemon. The arguments
// must outlive the router.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "admin/router.h"
#include "client/queue.h"
#include "cluster/diagnosis.h"
#include "cluster/succession.h"
#include "exec/output_log.h"
#include "lictor/client.h"
#include "lictor/time.h"

namespace lictor::core {
class Queue;
}

namespace lictor::admin {

struct QueueStatus;
using Counts = std::vector<std::pair<std::string, std::size_t>>;

/// A figure of a queue, a row of gauges.cpp: a gauge of /metrics and a field of the status in JSON,
/// how it is read, and when it is known. tests/manual/metrics.py holds the manual against the rows.
struct Gauge {
  enum class Kind {
    kCount,
    kFlag,
    kSeconds,  ///< in JSON "<name>_ms"
    kCounter,  ///< it never falls; not in JSON
    kByState,  ///< label "state"; in JSON an object of the states that are not 0
  };
  enum class Known { kAlways, kByLeader };

  std::string_view name;
  const char* metric;  ///< null: only in JSON
  const char* help;
  Kind kind;
  Known known;
  double (*read)(const core::Queue& queue, Instant now);
  Counts QueueStatus::*by_state = nullptr;  ///< in place of `read`

  [[nodiscard]] bool is_known(const QueueStatus& queue) const;
  [[nodiscard]] std::string field() const;  ///< its name in JSON
};

/// All gauges, in the order of /metrics.
[[nodiscard]] std::span<const Gauge> gauges();

/// Reads the gauges with a `read` into `queue`.
void read_gauges(const core::Queue& core, Instant now, QueueStatus& queue);

/// The processes of one worker on this host.
struct WorkerStatus {
  std::string type;
  std::vector<std::pair<std::string, std::uint64_t>> states;  ///< the number in each state, by name
  std::vector<std::pair<std::string, std::uint64_t>> ends;    ///< since the start, by reason
};

struct QueueStatus {
  enum class Role { kFollowing, kLeading, kDraining };
  std::string name;
  Role role = Role::kFollowing;
  std::map<std::string_view, double> gauges{};  ///< by name; a missing one is 0
  std::string cannot_start{};    ///< why the last start of a job here failed; empty: it worked
  std::string log_error{};       ///< why the output of jobs is lost here; empty: none is lost
  Counts states{};               ///< tasks in each state, by name
  Counts schedules{};            ///< recurring tasks in each state
  std::uint32_t partitions = 1;  ///< of the queue; 0: not known yet
  std::vector<std::uint32_t> leads{};  ///< the partitions that this daemon leads
  std::vector<std::string> types{};    ///< with an executor in this daemon; "*": all others
  std::vector<WorkerStatus> workers{};

  [[nodiscard]] double value(const Gauge& gauge) const {
    const auto found = gauges.find(gauge.name);
    return found != gauges.end() ? found->second : 0;
  }
};

/// The queue as /v1/status shows it. Figures that a follower does not know are null or missing.
[[nodiscard]] nlohmann::ordered_json queue_json(const QueueStatus& queue);

struct Status {
  std::string node;
  std::string version;
  int pid = 0;
  Duration uptime{};
  WallTime since{};
  bool stopping = false;
  std::string waits_for{};  ///< why this daemon cannot work yet, or why it takes long to stop
  std::vector<QueueStatus> queues;
};

/// Why Consul cannot be used.
struct ConsulTrouble {
  std::string what;  ///< empty: it can be used, and the rest has no meaning
  /// When the admin API first saw it.
  WallTime since{};
  bool at_least = false;  ///< nobody had asked for a while, so it may be older

  [[nodiscard]] bool any() const { return !what.empty(); }
};
/// {"what", "since", "at_least"}; null: there is none.
[[nodiscard]] nlohmann::ordered_json consul_json(const ConsulTrouble& trouble);

inline constexpr const char* kNoAnswer = "the daemon's loop does not answer";  ///< no status()

/// The admin API's questions to the daemon. Thread safe. Every method blocks: two seconds at most
/// for the daemon's own knowledge, ten if Consul or another member is asked.
class Backend {
 public:
  virtual ~Backend() = default;

  /// std::nullopt if the daemon's loop did not answer in time, or has ended.
  [[nodiscard]] virtual std::optional<Status> status() = 0;

  /// Why Consul cannot be used now.
  [[nodiscard]] virtual ConsulTrouble consul_trouble() = 0;

  /// JSON that says why the task is not running. std::nullopt if this member does not lead its
  /// partition.
  [[nodiscard]] virtual std::optional<std::string> why(const std::string& queue,
                                                       const std::string& id) = 0;

  /// Errors: as for a read of Consul.
  [[nodiscard]] virtual Result<cluster::Fleet> fleet(const std::string& queue) = 0;

  /// The answer of a member's admin API to GET `target`. Errors: kFailed, there is no such member,
  /// it is this daemon, or it cannot be asked from here; those of the answer.
  [[nodiscard]] virtual Result<std::string> ask_member(const std::string& queue,
                                                       const std::string& node,
                                                       const std::string& target) = 0;

  /// The answer of the leader of the task's partition. Errors: as above; kNotFound, no such task.
  [[nodiscard]] virtual Result<std::string> ask_leader_of(const std::string& queue,
                                                          const std::string& id,
                                                          const std::string& target) = 0;

  struct Answer {
    std::string node;
    Result<std::string> body;
  };
  /// The answers of all leaders but this daemon, asked in parallel. An answer may be a second old.
  [[nodiscard]] virtual std::vector<Answer> ask_leaders(const std::string& queue,
                                                        const std::string& target) = 0;
};

/// A queue in Consul. Its members must outlive the router.
struct StoredQueue {
  Client& client;
  client::Queue queue;
};
using StoredQueues = std::vector<StoredQueue>;
/// The queue that ?queue= names, "default" without one. Errors: kNotFound, with the names to choose
/// from.
[[nodiscard]] Result<const StoredQueue*> find_queue(const StoredQueues& queues,
                                                    const Request& request);
/// `queue`, if a command must name it, and "" otherwise.
[[nodiscard]] std::string needed_name(const StoredQueues& queues, const std::string& queue);
/// How many entries ?limit= wants on a page, 50 without one. Errors: kInvalid.
[[nodiscard]] Result<std::size_t> page_limit(const Request& request);

/// The place of the output of attempts.
struct LogStore {
  std::string directory;
  std::shared_ptr<const exec::ActiveLogs> active;
  std::string node{};  ///< this daemon's
};

/// /healthz, /readyz, /v1/status, /v1/tasks/<id>/why
void add_status_routes(Router& router, Backend& backend);
/// /v1/logs
void add_log_routes(Router& router, Backend& backend, const LogStore& store);

class Metrics;
/// /metrics
void add_metrics_route(Router& router, Backend& backend, const Metrics& metrics);

class Events;
/// /v1/events
void add_event_route(Router& router, Events& events, const StoredQueues& queues);

class Activity;
/// /v1/queues, /v1/members, GET /v1/schedules, /v1/schedules/<name>
void add_queue_routes(Router& router, Backend& backend, const StoredQueues& queues,
                      const Activity& activity);
/// GET /v1/tasks, /v1/tasks/<id>, /v1/dead, /v1/done
void add_task_routes(Router& router, const StoredQueues& queues);
/// The changes: POST /v1/tasks, /v1/dead/<id>/retry, ...
void add_change_routes(Router& router, const StoredQueues& queues);
/// / and the files that it loads, /v1/openapi.json
void add_page_routes(Router& router);

}  // namespace lictor::admin
