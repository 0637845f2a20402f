#pragma once

// What the leaders of a queue tell of their partitions, as one, and what is wrong with the queue.

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "admin/routes.h"
#include "lictor/client.h"

namespace lictor::admin {

/// What a leader tells: queue_json() with "types" and "activity".
struct LeaderStatus {
  std::string node;
  nlohmann::ordered_json status;
};

/// The status in another leader's answer to /v1/queues?relayed. Null: the answer has another form.
/// Whoever may write members' entries could have named another program's address.
[[nodiscard]] nlohmann::ordered_json read_status(const std::string& answer);

/// One status of the same form: sums, the longest times, the shortest lease, and the types that all
/// leaders have. Null: nobody leads.
[[nodiscard]] nlohmann::ordered_json merged(const std::vector<LeaderStatus>& leaders);

/// What is wrong with a schedule.
struct ScheduleFault {
  enum class Kind { kBad, kOdd, kType };  ///< makes no tasks; is odd; nobody runs its tasks
  Kind kind = Kind::kOdd;
  std::string name, key, what;
};

/// What is known of a queue.
struct QueueFacts {
  ConsulTrouble consul_trouble;
  Result<Fleet> fleet{};                ///< of no meaning while there is trouble
  std::vector<LeaderStatus> leaders{};  ///< those that have told their status
  PauseState paused{};
  std::vector<ScheduleFault> schedules{};  ///< empty also where they cannot be read
};
/// What is wrong with it, and the way out: [{"kind", "severity", "what", "remedy"}, ...]
[[nodiscard]] nlohmann::ordered_json findings_of(const QueueFacts& facts);

/// "0-3, 7"
[[nodiscard]] std::string ranges(const std::vector<std::uint32_t>& partitions);
/// "partition 7", "partitions 0-3, 7"
[[nodiscard]] std::string partitions_text(const std::vector<std::uint32_t>& partitions);

}  // namespace lictor::admin
