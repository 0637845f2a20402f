#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "client/task_info.h"

namespace lictor::cli {

/// `value`, indented and printable, with a line feed at its end. What is not UTF-8 in it becomes
/// U+FFFD.
[[nodiscard]] std::string json_document(const nlohmann::ordered_json& value);

/// `text`, which must be JSON, indented and otherwise unchanged: numbers keep their digits, repeated
/// names stay.
[[nodiscard]] std::string indented_json(std::string_view text);

/// The text of the member `name` of an object; of another value than a string its JSON. Empty: it is
/// not there, or null.
[[nodiscard]] std::string text_of(const nlohmann::json& object, const char* name);

/// Null for an empty text.
[[nodiscard]] nlohmann::ordered_json text_or_null(const std::string& text);

/// A task as `--json` prints it. Every field is always present, null without a value; times are
/// RFC 3339.
[[nodiscard]] nlohmann::ordered_json task_json(const TaskInfo& view);

}  // namespace lictor::cli
