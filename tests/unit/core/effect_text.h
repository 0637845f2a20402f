#pragma once

#include <string>

#include "core/effect.h"

namespace lictor::core::test {

/// An effect as one line for a person, without request ids: "commit finish tasks/a, claim tasks/b".
[[nodiscard]] std::string effect_text(const Effect& effect);
[[nodiscard]] std::string fact_name(Fact::Kind kind);

}  // namespace lictor::core::test
