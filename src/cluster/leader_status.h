#pragma once

// Merges the status of all leaders of a queue.
//
// A queue with several partitions has several leaders, each with figures of its own tasks alone. A
// daemon that is asked for the queue asks the others (/v1/queues?relayed) and adds their answers to
// its own:
//
//   counts      added up
//   "*_ms"      the longest, except lease_left_ms, the shortest, and took_ms, a sum
//   "types"     types that all leaders have: a type that one lacks may not run
//   delays      the longest of each minute, since quantiles cannot be added
//   role        "leading", if one leads

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "cluster/diagnosis.h"

namespace lictor::cluster {

/// The status in another leader's answer to /v1/queues?relayed. Null: the answer has another form.
/// A client that may write members' entries could have named another program's address.
[[nodiscard]] nlohmann::ordered_json read_status(const std::string& answer);

/// Adds another leader's status: sums, the longest times, the shortest lease, and the types that
/// all leaders have. `into`: null before the first.
void add_status(nlohmann::ordered_json& into, const nlohmann::ordered_json& from);

/// Merges the status of all leaders; errors name their host. Null: nobody leads.
[[nodiscard]] nlohmann::ordered_json merged(const std::vector<LeaderStatus>& leaders);

}  // namespace lictor::cluster
