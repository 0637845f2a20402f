#pragma once

// What the leaders of a queue tell of their partitions, as one.

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "cluster/diagnosis.h"

namespace lictor::admin {

using cluster::LeaderStatus;

/// The status in another leader's answer to /v1/queues?relayed. Null: the answer has another form.
/// Whoever may write members' entries could have named another program's address.
[[nodiscard]] nlohmann::ordered_json read_status(const std::string& answer);

/// One status of the same form: sums, the longest times, the shortest lease, and the types that all
/// leaders have. Null: nobody leads.
[[nodiscard]] nlohmann::ordered_json merged(const std::vector<LeaderStatus>& leaders);

}  // namespace lictor::admin
