#pragma once

// The KV writes that a job wants committed with its finish (LICTOR_COMMIT, jobs.md). Pure;
// accepts any bytes.

#include <string>
#include <string_view>
#include <vector>

#include "core/effect.h"
#include "lictor/result.h"
#include "wire/layout.h"

namespace lictor::wire {

/// Keys that only lictor writes: all but the tasks, in each of `queues` and in every queue at its
/// default place below `root`.
struct Reserved {
  std::vector<Layout> queues;
  std::string root;  ///< ends in '/', or empty
};

/// `text` is a JSON array such as
///   [{"key": "app/x", "value": "text"}, {"key": "app/y", "delete": true, "cas": 7}]
/// with "value_base64" in place of "value" for bytes that are not text. `task_key` and reserved
/// keys are refused. Errors: kInvalid, with entry, field, what was expected and what was found.
[[nodiscard]] Result<std::vector<core::KvWrite>> read_commit(std::string_view text,
                                                             const Reserved& reserved,
                                                             std::string_view task_key);

/// Errors: kInvalid, why a job's result cannot be stored in the history.
[[nodiscard]] Result<void> check_result(std::string_view text);

}  // namespace lictor::wire
