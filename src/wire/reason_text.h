#pragma once

#include <string>
#include <vector>

#include "core/reason.h"
#include "wire/layout.h"

namespace lictor::wire {

struct ReasonWords {
  std::string name;  ///< for programs: "not_due", "paused", ...
  std::string text;  ///< a sentence for people, without a full stop; tasks are named by their ids
};
[[nodiscard]] ReasonWords words_of(const core::Reason& reason, const Layout& layout);

/// [{"reason": "not_due", "text": "...", "until": RFC 3339, "task": id, "count": n}, ...]
[[nodiscard]] std::string reasons_json(const std::vector<core::Reason>& reasons,
                                       const Layout& layout);

}  // namespace lictor::wire
