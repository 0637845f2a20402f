#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace lictor::cli {

/// `value`, indented and printable, with a line feed at its end. What is not UTF-8 in it becomes
/// U+FFFD.
[[nodiscard]] std::string json_document(const nlohmann::ordered_json& value);

/// The JSON in `text`, indented and otherwise as it was written: numbers keep their digits,
/// repeated names stay. `text` must be JSON.
[[nodiscard]] std::string indented_json(std::string_view text);

}  // namespace lictor::cli
