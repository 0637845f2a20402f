#pragma once

// The text of a cron expression (schedule/cron.h says which there are).

#include <string_view>

#include "lictor/result.h"
#include "schedule/cron.h"

namespace lictor::schedule {

/// Reads an expression, which may match no day at all. Errors: kInvalid, with the field, what was
/// expected and what was found.
[[nodiscard]] Result<CronFields> parse_cron_fields(std::string_view text);

}  // namespace lictor::schedule
