#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lictor/result.h"

namespace lictor::app {

enum class JsonKind { kNull, kBoolean, kWhole, kFraction, kString, kArray, kObject };

/// A JSON value that knows where it was written, so that an error about it can name the line.
struct JsonValue {
  JsonKind kind = JsonKind::kNull;
  int line = 0;                  ///< of its key if it is a member, else of its first character
  std::string key;               ///< its name, if it is a member
  bool boolean = false;          ///< kBoolean
  std::int64_t whole = 0;        ///< kWhole
  double number = 0;             ///< kWhole, kFraction
  std::string text;              ///< kString; a number as written
  std::vector<JsonValue> items;  ///< of an array or, in the order of the file, of an object

  /// The member called `name`, or nullptr.
  [[nodiscard]] const JsonValue* find(std::string_view name) const;
};

/// Deeper than any configuration needs, and far from what would exhaust the stack.
inline constexpr std::size_t kMaxConfigDepth = 32;

/// Parses JSON with comments (`//` and `/* */`). Errors name it `file`.
/// Errors: kInvalid, as "file:line:column: ..." for what is not JSON (a trailing comma among it),
/// as "file:line: path: ..." for a key written twice and for more than kMaxConfigDepth levels.
[[nodiscard]] Result<JsonValue> parse_json_tree(std::string_view text, std::string_view file);

/// The value as JSON, without spaces and comments, with numbers as written.
[[nodiscard]] std::string json_text(const JsonValue& value);

/// `path` with a member's name appended: "queues[0]" and "name" give "queues[0].name"; a name that
/// is not a plain word is quoted: `executors["*"]`.
[[nodiscard]] std::string member_path(std::string_view path, std::string_view name);

/// "queues" and 0 give "queues[0]".
[[nodiscard]] std::string item_path(std::string_view path, std::size_t index);

}  // namespace lictor::app
