#pragma once

// The words of core::Reason, which says why a task does not run: for "lictor why", "lictor top",
// the admin API and the web page. The core gives kinds and numbers, this unit gives sentences, and
// clients print them unchanged, even those of another version.
//
// Names are an interface: programs compare them, so a name stays when its text changes. The
// manual's troubleshooting page lists them. A text begins in lower case and has no full stop, since
// callers put it behind "task ID: " and join several with "; ".

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
