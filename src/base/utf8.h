#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lictor {

/// How many bytes the character at the start of `text`, which is not empty, takes in UTF-8; 0: it
/// is not UTF-8.
[[nodiscard]] std::size_t utf8_length(std::string_view text);

/// Whether `text` is UTF-8 as RFC 3629 has it: no overlong forms, surrogates or values over
/// U+10FFFF.
[[nodiscard]] bool is_utf8(std::string_view text);

/// Whether all of `text` is from ' ' to '~', which a terminal shows unchanged.
[[nodiscard]] bool is_printable_ascii(std::string_view text);
/// The same, and needs no escape in a JSON string.
[[nodiscard]] bool is_plain_in_json(std::string_view text);

/// `text` with every byte that is not part of valid UTF-8 replaced by U+FFFD.
[[nodiscard]] std::string to_utf8(std::string_view text);

}  // namespace lictor
