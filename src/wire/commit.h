#pragma once

// What a job wants committed with its finish (LICTOR_COMMIT, DESIGN section 5). Pure; takes any
// bytes.

#include <string>
#include <string_view>
#include <vector>

#include "core/effect.h"
#include "lictor/result.h"
#include "wire/layout.h"

namespace lictor::wire {

/// What lictor alone writes: in each of `queues` all but the tasks, and so in every queue that lies
/// below `root` as is the default, whoever serves it.
struct Reserved {
  std::vector<Layout> queues;
  std::string root;  ///< ends in '/', or empty
};

/// `text` is a JSON array such as
///   [{"key": "app/x", "value": "text"}, {"key": "app/y", "delete": true, "cas": 7}]
/// with "value_base64" in place of "value" where the bytes are no text. Refused are `task_key` and
/// what is reserved. Errors: kInvalid; they name entry, field, expectation and finding.
[[nodiscard]] Result<std::vector<core::KvWrite>> read_commit(std::string_view text,
                                                             const Reserved& reserved,
                                                             std::string_view task_key);

/// Whether a job's result is a JSON value that a history can hold. Errors: kInvalid.
[[nodiscard]] Result<void> check_result(std::string_view text);

}  // namespace lictor::wire
