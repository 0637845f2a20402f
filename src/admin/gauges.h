#pragma once

// The figures of a queue: a row each, which gives a gauge of /metrics, a field of the status in
// JSON, how it is read, and when it is known. tests/manual/metrics.py holds the manual against it.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lictor/time.h"

namespace lictor::core {
class Queue;
}

namespace lictor::admin {

struct QueueStatus;
using Counts = std::vector<std::pair<std::string, std::size_t>>;

struct Gauge {
  enum class Kind {
    kCount,
    kFlag,
    kSeconds,  ///< in JSON "<name>_ms"
    kCounter,  ///< it never falls; not in JSON
    kByState,  ///< label "state"; in JSON an object without those that are 0
  };
  enum class Known { kAlways, kByLeader };

  std::string_view name;
  const char* metric;  ///< null: in JSON alone
  const char* help;
  Kind kind;
  Known known;
  double (*read)(const core::Queue& queue, Instant now);
  Counts QueueStatus::*by_state = nullptr;  ///< in place of `read`

  [[nodiscard]] bool is_known(const QueueStatus& queue) const;
  [[nodiscard]] std::string field() const;  ///< its name in JSON
};

/// All of them, in the order of /metrics.
[[nodiscard]] std::span<const Gauge> gauges();

/// Reads those with a `read` into `queue`.
void read_gauges(const core::Queue& core, Instant now, QueueStatus& queue);

}  // namespace lictor::admin
