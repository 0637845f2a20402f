#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "client/task_json.h"

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

using client::pause_json;
using client::task_json;
using client::text_or_null;
using client::whole_task_json;

}  // namespace lictor::cli
