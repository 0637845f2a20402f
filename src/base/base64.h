#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace lictor {

/// RFC 4648 section 4, padded: the form in which Consul's API carries values.
[[nodiscard]] std::string base64_encode(std::string_view bytes);
/// Appends the base64 form of `bytes` to `text`.
void append_base64(std::string& text, std::string_view bytes);

/// The length of `bytes` bytes in base64.
[[nodiscard]] constexpr std::size_t base64_size(std::size_t bytes) { return (bytes + 2) / 3 * 4; }

/// std::nullopt if `text` is not padded base64 of the standard alphabet.
[[nodiscard]] std::optional<std::string> base64_decode(std::string_view text);

}  // namespace lictor
