#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "lictor/result.h"

namespace lictor::app {

/// The line of a JSON value (of its key if it is a member, else of its first character), and the
/// lines of the values in it.
struct JsonLines {
  int line = 1;
  std::map<std::string, JsonLines, std::less<>> members;
  std::vector<JsonLines> items;
};

/// A JSON value with its lines, so that an error can name the line.
struct JsonTree {
  nlohmann::json value;
  JsonLines lines;
};

/// Deeper than any configuration needs, and far from what would exhaust the stack.
inline constexpr std::size_t kMaxConfigDepth = 32;

/// Parses JSON with comments (`//` and `/* */`). Errors name it `file`. Errors: kInvalid, as
/// "file:line:column: ..." for text that is no JSON (also for a trailing comma), as "file:line:
/// path: ..." for a key written twice and for more than kMaxConfigDepth levels.
[[nodiscard]] Result<JsonTree> parse_json_tree(std::string_view text, std::string_view file);

/// `path` with a member's name appended: "queues[0]" and "name" give "queues[0].name"; a name that
/// is not a plain word is quoted: `executors["*"]`.
[[nodiscard]] std::string member_path(std::string_view path, std::string_view name);

/// "queues" and 0 give "queues[0]".
[[nodiscard]] std::string item_path(std::string_view path, std::size_t index);

}  // namespace lictor::app
