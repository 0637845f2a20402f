#pragma once

#include <charconv>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace lictor {

/// How many letters must be replaced, added or left out to turn `a` into `b` (Levenshtein).
[[nodiscard]] std::size_t edits(std::string_view a, std::string_view b);

/// The candidate nearest to `word` by edits (Levenshtein), or "" when none is near enough to be
/// meant: for "did you mean".
[[nodiscard]] std::string nearest(std::string_view word,
                                  const std::vector<std::string_view>& candidates);

/// `text` without spaces, tabs and line ends around it.
[[nodiscard]] std::string_view trimmed(std::string_view text);

[[nodiscard]] inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// Whether `text` is not empty and has only ASCII letters, digits and characters of `more`.
[[nodiscard]] bool is_word(std::string_view text, std::string_view more);

/// `text` with each byte but ASCII letters, digits and characters of `kept` as "%XX" (RFC 3986).
[[nodiscard]] std::string percent_encoded(std::string_view text, std::string_view kept);

/// `text` as a decimal number; std::nullopt if it is none, or out of range.
template <class Number>
[[nodiscard]] std::optional<Number> to_number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// `text` with its ASCII letters in lower case.
[[nodiscard]] std::string lowered(std::string_view text);

/// Whether the two differ in nothing but the case of ASCII letters: names of HTTP headers.
[[nodiscard]] bool equal_but_for_case(std::string_view a, std::string_view b);

/// How many bytes the character at the start of `text`, which is not empty, takes in UTF-8; 0: it
/// is not UTF-8.
[[nodiscard]] std::size_t utf8_length(std::string_view text);

/// Whether `text` is UTF-8 by RFC 3629: no overlong forms, surrogates or values over U+10FFFF.
[[nodiscard]] bool is_utf8(std::string_view text);

/// Whether all of `text` is from ' ' to '~', which a terminal shows unchanged.
[[nodiscard]] bool is_printable_ascii(std::string_view text);
/// Whether `text` is also free of characters that need an escape in a JSON string.
[[nodiscard]] bool is_plain_in_json(std::string_view text);

/// `text` with every byte that is not part of valid UTF-8 replaced by U+FFFD.
[[nodiscard]] std::string to_utf8(std::string_view text);

/// One line: `text` made printable and cut to `limit` bytes, with "..." where it was cut.
[[nodiscard]] std::string excerpt(std::string_view text, std::size_t limit = 60);

}  // namespace lictor
