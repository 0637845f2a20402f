#pragma once

// JSON for programs. print_json() puts the queue's name first. Commands that look something up
// print a document also where nothing was found, beside the exit code: a script need not read
// messages.

#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "client/task_info.h"

namespace lictor::cli {

struct Client;

/// `value`, indented and printable, with a line feed at its end. Bytes that are not UTF-8 become
/// U+FFFD.
[[nodiscard]] std::string json_document(const nlohmann::ordered_json& value);

/// Prints a document: "queue", then `members`.
void print_json(const Client& client, nlohmann::ordered_json members);

/// An array of the results of `to_json` for each.
template <class Range, class ToJson>
[[nodiscard]] nlohmann::ordered_json json_list(const Range& range, const ToJson& to_json) {
  auto list = nlohmann::ordered_json::array();
  for (const auto& each : range) list.emplace_back(to_json(each));
  return list;
}

/// The member of this name as a count; 0 if it is missing or something else.
[[nodiscard]] std::uint64_t count_member(const nlohmann::json& object, const char* name);

/// The member of this name, in milliseconds, as text; empty if there is none.
[[nodiscard]] std::string duration_text(const nlohmann::json& object, const char* name);

/// `text`, which must be JSON, indented and otherwise unchanged: numbers keep their digits,
/// repeated names stay.
[[nodiscard]] std::string indented_json(std::string_view text);

/// A value for a person: JSON is indented, except when it is nested so deeply that its indentation
/// would be gigabytes.
[[nodiscard]] std::string record_text(std::string_view record);

using client::pause_json;
using client::task_json;
using client::text_of;
using client::text_or_null;
using client::whole_task_json;

}  // namespace lictor::cli
