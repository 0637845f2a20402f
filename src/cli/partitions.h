#pragma once

// What is told of a queue's partitions. Pure.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/members.h"
#include "client/locks.h"

namespace lictor::cli {

using Partitions = std::vector<std::uint32_t>;  ///< in ascending order

/// "0-3,7"
[[nodiscard]] std::string ranges(const Partitions& partitions);
/// "partition 7", "partitions 0-3,7"
[[nodiscard]] std::string partitions_text(const Partitions& partitions);

/// Those that nobody leads.
[[nodiscard]] Partitions free_partitions(const client::Locks& locks);
/// By Lock::name().
[[nodiscard]] std::map<std::string, Partitions> partitions_by_leader(const client::Locks& locks);

/// The partitions that are not with the member that should have them, and so move to it. Free ones do
/// not count. `queue`: whose weights count.
[[nodiscard]] Partitions misplaced(const client::Locks& locks, const std::vector<Member>& members,
                                   const std::string& queue);

}  // namespace lictor::cli
