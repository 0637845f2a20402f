#pragma once

// JSON as text. A rewrite of a record copies the text of the kept members: parsed and printed
// again, a number beyond 64 bits or a repeated name would change.

#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "lictor/result.h"

namespace lictor {

/// One member of an object: its name, decoded, and the text of its name and value.
struct JsonMember {
  std::string name;
  std::string_view name_text;
  std::string_view value_text;
};

/// The members of the JSON object in `text`, in order, repeated names included. They refer to
/// `text`. Errors: kInvalid with what was found at which byte.
[[nodiscard]] Result<std::vector<JsonMember>> split_object(std::string_view text);
/// Errors: kInvalid, why split_object() refuses `text`.
[[nodiscard]] Result<void> check_object(std::string_view text);

/// Iterates over the members of an object that check_object() has accepted. Copies nothing: the
/// views are valid as long as the text and the walk exist.
///
///   for (MemberWalk member{text}; member.next();) ... member.name() ...
class MemberWalk {
 public:
  explicit MemberWalk(std::string_view object);

  /// Moves to the first or the next member. False: there is none.
  bool next();
  /// The decoded name; valid until next().
  [[nodiscard]] std::string_view name() const { return name_; }
  [[nodiscard]] std::string_view name_text() const { return name_text_; }
  [[nodiscard]] std::string_view value_text() const { return value_text_; }

 private:
  void skip_space();
  std::string_view string();
  std::string_view value();

  const char* at_;
  const char* end_;  // of the text
  std::string_view name_, name_text_, value_text_;
  std::string decoded_;
};

/// nlohmann copies, compares and prints values recursively: half a megabyte of '[' would exhaust
/// the stack.
inline constexpr std::size_t kMaxJsonDepth = 512;
/// For callers that only look up a value, which needs no recursion.
inline constexpr std::size_t kAnyDepth = std::numeric_limits<std::size_t>::max();

/// Parses without throwing; std::nullopt if `text` is not JSON, or nested deeper than `max_depth`.
[[nodiscard]] std::optional<nlohmann::json> parse_json(std::string_view text,
                                                       std::size_t max_depth = kMaxJsonDepth);

/// The member `name`; null: there is none, or `value` is no object.
[[nodiscard]] const nlohmann::json& json_member(const nlohmann::json& value, const char* name);
/// The text of the member `name`; "": it is no string.
[[nodiscard]] std::string text_member(const nlohmann::json& value, const char* name);

/// Errors: kInvalid, `value` nests more than kMaxJsonDepth arrays and objects.
[[nodiscard]] Result<void> check_depth(const nlohmann::json& value);

/// `value` as text. Errors: kInvalid, JSON cannot hold it: a string that is not UTF-8, a number
/// that is not finite; or more than kMaxJsonDepth levels.
[[nodiscard]] Result<std::string> checked_text(const nlohmann::json& value);

/// `text` as a JSON string with its quotes; bytes that are not UTF-8 become U+FFFD.
[[nodiscard]] std::string json_quoted(std::string_view text);
/// Appends `text` as a JSON string to `to`.
void append_quoted(std::string& to, std::string_view text);

}  // namespace lictor
