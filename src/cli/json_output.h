#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace lictor::cli {

/// `value`, indented, with a line feed at its end. What is not UTF-8 in it becomes U+FFFD; control
/// characters that JSON leaves as they are (DEL, U+0080 to U+009F) are escaped, since the text may
/// be shown on a terminal.
[[nodiscard]] std::string json_document(const nlohmann::ordered_json& value);

/// The JSON in `text`, indented and otherwise as it was written: numbers keep their digits,
/// repeated names stay. `text` must be JSON.
[[nodiscard]] std::string indented_json(std::string_view text);

}  // namespace lictor::cli
