#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "lictor/time.h"

namespace lictor {

// The one place that makes untrusted text fit for a terminal, a log and an error.

/// `text` with escapes for characters that would move the cursor, hide text or turn its direction
/// (`\x1b`, `\u202e`) and for bytes that are not UTF-8 (`\xff`). Line feeds and tabs stay if
/// `lines`.
[[nodiscard]] std::string printable(std::string_view text, bool lines = false);

/// `json` made printable; it remains the same JSON; line feeds and tabs stay.
[[nodiscard]] std::string printable_json(std::string_view json);

/// A word that a shell reads as `text`.
[[nodiscard]] std::string shell_word(std::string_view text);

/// `text` as an argument of a suggested command, safe to paste whoever chose the text:
/// shell_word(), after "-- " if it would be read as an option.
[[nodiscard]] std::string shell_argument(std::string_view text);

/// How many columns printable text takes: its code points. (Wide and combining characters are not
/// looked up; a table may then be ragged, never wrong.)
[[nodiscard]] std::size_t columns(std::string_view text);

/// `text` cut to `width` columns, with "..." where it was cut. 0: no limit.
[[nodiscard]] std::string fitted(std::string_view text, std::size_t width);

/// `text` cut in the middle to `width` columns, so that both ends are seen.
[[nodiscard]] std::string fitted_in_middle(std::string_view text, std::size_t width);

/// The words of `text` in lines of at most `width` columns, at least one line. A longer word is
/// cut.
[[nodiscard]] std::vector<std::string> wrapped(std::string_view text, std::size_t width);

/// A duration in one unit: "12s", "3h".
[[nodiscard]] std::string rounded_duration(Duration duration);

/// `time` relative to `now`, in one unit: "12s ago", "in 3h".
[[nodiscard]] std::string relative_time(WallTime time, WallTime now);

/// "1 task", "2 tasks"
[[nodiscard]] std::string counted(std::size_t count, std::string_view noun);

/// "712 B", "4.3 kB", "12 MB"
[[nodiscard]] std::string byte_text(std::size_t bytes);

}  // namespace lictor
