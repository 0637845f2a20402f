#pragma once

// JSON as text: what must survive a rewrite unchanged is copied, never parsed and printed again,
// since a number beyond 64 bits or a repeated name would not come back as it was.

#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "lictor/result.h"

namespace lictor::wire {

/// One member of an object: its name, decoded, and the text of its name and value.
struct Member {
  std::string name;
  std::string_view name_text;
  std::string_view value_text;
};

/// The members of the JSON object in `text`, in order, repeated names included. They refer to
/// `text`. Errors: kInvalid with what was found at which byte.
[[nodiscard]] Result<std::vector<Member>> split_object(std::string_view text);
/// Whether split_object() takes `text`, and else why not.
[[nodiscard]] Result<void> check_object(std::string_view text);

/// Walks over the members of an object that check_object() has taken, without copying any; to be
/// followed as far as the text and the walk itself exist.
///
///   for (MemberWalk member{text}; member.next();) ... member.name() ...
class MemberWalk {
 public:
  explicit MemberWalk(std::string_view object);

  /// Goes on to the first member, or to the one after this. False: there is none.
  bool next();
  /// Decoded; good until next().
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

/// nlohmann copies, compares and prints a value by recursion: half a megabyte of '[' exhausts the
/// stack.
inline constexpr std::size_t kMaxJsonDepth = 512;
/// For who only looks a value up, which takes no recursion.
inline constexpr std::size_t kAnyDepth = std::numeric_limits<std::size_t>::max();

/// Parses without throwing; nothing when `text` is not JSON, or is nested deeper than `max_depth`.
[[nodiscard]] std::optional<nlohmann::json> parse_json(std::string_view text,
                                                       std::size_t max_depth = kMaxJsonDepth);

/// Of a value that was not parsed with a `max_depth`. Errors: kInvalid, more than kMaxJsonDepth
/// arrays and objects within one another.
[[nodiscard]] Result<void> check_depth(const nlohmann::json& value);

/// `text` as a JSON string with its quotes; what is not UTF-8 becomes U+FFFD.
[[nodiscard]] std::string json_quoted(std::string_view text);
/// The same, added to `to`.
void append_quoted(std::string& to, std::string_view text);
/// How long that is, in bytes; of what is not UTF-8, at most.
[[nodiscard]] std::size_t quoted_size(std::string_view text);

}  // namespace lictor::wire
