#pragma once

#include <string>
#include <vector>

#include "core/reason.h"
#include "wire/layout.h"

namespace lictor::wire {

/// A word for programs: "not_due", "paused", ...
[[nodiscard]] std::string_view reason_name(core::Reason::Kind kind);

/// A sentence for people, without a full stop. Tasks are named by their ids.
[[nodiscard]] std::string reason_text(const core::Reason& reason, const Layout& layout);

/// [{"reason": "not_due", "text": "...", "until": RFC 3339, "task": id, "count": n}, ...]
[[nodiscard]] std::string reasons_json(const std::vector<core::Reason>& reasons,
                                       const Layout& layout);

}  // namespace lictor::wire
