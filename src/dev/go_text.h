#pragma once

// How Go, in which Consul is written, reads and writes text, as far as lictor's users can tell.

#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "base/text.h"
#include "lictor/result.h"
#include "lictor/time.h"

namespace lictor::dev {

/// Whether every character is printable to unicode.IsPrint, its rarer categories aside.
[[nodiscard]] bool is_printable_path(std::string_view path);

/// `text` in double quotes, as JSON, with U+FFFD for each byte that is not UTF-8.
[[nodiscard]] std::string quote(std::string_view text);

/// Whether encoding/json takes `name` for the field `wanted`: letters' case does not matter.
[[nodiscard]] inline bool is_name(std::string_view name, std::string_view wanted) {
  return equal_but_for_case(name, wanted);
}

/// Null changes nothing. Errors: kInvalid, no string.
[[nodiscard]] Result<void> read_text(const nlohmann::json& value, std::string_view field,
                                     std::string& out);

/// time.ParseDuration. The error is Go's text.
[[nodiscard]] Result<Duration> parse_go_duration(std::string_view text);

/// strconv.ParseUint in base 10. The error is Go's text.
[[nodiscard]] Result<std::uint64_t> parse_go_uint(std::string_view text);

}  // namespace lictor::dev
