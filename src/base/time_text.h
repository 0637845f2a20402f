#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lictor/time.h"

namespace lictor {

/// "150ms", "10s", "5m", "2h", "1d", "2w", with fractions ("1.5s") and, as in Go, sums ("1h30m").
/// std::nullopt if it is not such a text, is negative, or is over 10 years.
[[nodiscard]] std::optional<Duration> parse_duration(std::string_view text);

/// The shortest text for `duration`, exact to the microsecond: "10s", "1.5s", "2h".
[[nodiscard]] std::string format_duration(Duration duration);

/// RFC 3339 with a zone: "2026-11-21T09:30:00Z", "2026-11-21T09:30:00.250+01:00". std::nullopt if
/// `text` has another form, or names a day or time that does not exist.
[[nodiscard]] std::optional<WallTime> parse_rfc3339(std::string_view text);

/// Why a text in about this form names no time: "there is no such day"; otherwise empty.
[[nodiscard]] std::string rfc3339_fault(std::string_view text);

/// "2026-11-21T09:30:00.250Z"
[[nodiscard]] std::string format_rfc3339(WallTime time);

}  // namespace lictor
