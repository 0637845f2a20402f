#pragma once

// A task as JSON, for commands and for the admin face: the same members in both.

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "lictor/client.h"

namespace lictor::client {

/// Empty text is null.
[[nodiscard]] nlohmann::ordered_json text_or_null(const std::string& text);

/// {"by", "at", "reason"}; null: not paused.
[[nodiscard]] nlohmann::ordered_json pause_json(const PauseState& state);

/// What a list shows of a task. "bytes" is the size of its record.
[[nodiscard]] nlohmann::ordered_json task_json(const TaskInfo& task);

/// The same with session, output tail, result and record. The record is "value" if it is JSON, "raw"
/// if it is other UTF-8 text, else "raw_base64".
[[nodiscard]] nlohmann::ordered_json whole_task_json(const TaskInfo& task);

/// Adds a key's value in one of these three forms.
void add_value_json(const std::string& value, nlohmann::ordered_json& told);

}  // namespace lictor::client
