#pragma once

// Merges the status of all leaders of a queue.

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "cluster/diagnosis.h"

namespace lictor::cluster {

/// The status in another leader's answer to /v1/queues?relayed. Null: the answer has another form.
/// Whoever may write members' entries could have named another program's address.
[[nodiscard]] nlohmann::ordered_json read_status(const std::string& answer);

/// Adds what another leader tells: sums, the longest times, the shortest lease, and the types that
/// all leaders have. `into`: null before the first.
void add_status(nlohmann::ordered_json& into, const nlohmann::ordered_json& from);

/// Of all leaders; errors name their host. Null: nobody leads.
[[nodiscard]] nlohmann::ordered_json merged(const std::vector<LeaderStatus>& leaders);

}  // namespace lictor::cluster
