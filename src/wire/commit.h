#pragma once

// What a job wants committed with its finish (LICTOR_COMMIT, DESIGN section 5). Pure; takes any
// bytes.

#include <string_view>
#include <vector>

#include "core/effect.h"
#include "lictor/result.h"
#include "wire/layout.h"

namespace lictor::wire {

/// `text` is a JSON array such as
///   [{"key": "app/x", "value": "text"}, {"key": "app/y", "delete": true, "cas": 7}]
/// with "value_base64" in place of "value" where the bytes are no text. Refused are keys that
/// lictor writes itself: those of `task_key` and, below `layout`, everything but other tasks.
/// Errors: kInvalid; they name entry, field, expectation and finding.
[[nodiscard]] Result<std::vector<core::KvWrite>> read_commit(std::string_view text,
                                                             const Layout& layout,
                                                             std::string_view task_key);

/// Whether a job's result is a JSON value that a history can hold. Errors: kInvalid.
[[nodiscard]] Result<void> check_result(std::string_view text);

}  // namespace lictor::wire
