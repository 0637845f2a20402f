#pragma once

// The instants at which a cron expression fires in a zone. The rules for changes of the clock are
// in schedule/ticks.h.

#include <cstdint>
#include <optional>

#include "schedule/cron.h"
#include "schedule/zone.h"

namespace lictor::schedule {

/// The first in [from, until]. Both are from kFirstTick to kLastTick.
[[nodiscard]] std::optional<Tick> first_tick(const Cron& cron, const Zone& zone, Tick from,
                                             Tick until);
/// The number in [from, until].
[[nodiscard]] std::uint64_t count_ticks(const Cron& cron, const Zone& zone, Tick from, Tick until);

}  // namespace lictor::schedule
