#pragma once

#include "lictor/time.h"

namespace lictor::core {

/// After an error of Consul or of the network. Longer only makes the outage longer.
inline constexpr Duration kRetry = std::chrono::milliseconds{500};
/// After a refusal that only an operator can mend.
inline constexpr Duration kRefusedRetry = std::chrono::seconds{5};

}  // namespace lictor::core
