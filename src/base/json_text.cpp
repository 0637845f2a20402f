#include "base/json_text.h"

#include <simdjson.h>

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "base/text.h"

namespace lictor {
namespace {

using nlohmann::json;

// Keeps no values; records where the text stops being JSON.
struct Checker : nlohmann::json_sax<json> {
  std::size_t error_byte = 0;
  std::string found;
  bool out_of_range = false;

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return true; }
  bool key(string_t&) override { return true; }
  bool end_object() override { return true; }
  bool start_array(std::size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(std::size_t position, const std::string& last_token,
                   const json::exception& error) override {
    constexpr int kNumberOutOfRange = 406;  // nlohmann's: it is JSON all the same
    out_of_range = error.id == kNumberOutOfRange;
    error_byte = position;
    found = last_token;
    return false;
  }
};

// A fast check by simdjson (0.13 us for 300 bytes, nlohmann 2.2 us). Everything it accepts nlohmann
// accepts too, except that they disagree on half a surrogate pair, so texts with \u are left to
// nlohmann. nlohmann decides about the rest and says what is wrong.
bool is_plainly_an_object(std::string_view text) {
  constexpr std::size_t kMost = 16 * 1024;  // the parser keeps its memory
  if (text.size() > kMost || text.find("\\u") != std::string_view::npos) return false;
  thread_local simdjson::dom::parser parser{kMost};
  simdjson::dom::element root;
  return parser.parse(text.data(), text.size()).get(root) == simdjson::SUCCESS && root.is_object();
}

constexpr std::size_t kUsualMembers = 8;  // or fewer

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

// For text that is JSON; the answer for other text is arbitrary.
bool is_deeper(std::string_view text, std::size_t max_depth) {
  std::size_t depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') {
      for (++i; i < text.size() && text[i] != '"'; ++i) {
        if (text[i] == '\\') ++i;
      }
    } else if (text[i] == '[' || text[i] == '{') {
      if (++depth > max_depth) return true;
    } else if ((text[i] == ']' || text[i] == '}') && depth > 0) {
      --depth;
    }
  }
  return false;
}

bool is_deeper(const json& value, std::size_t max_depth) {
  if (!value.is_structured()) return false;
  return max_depth == 0 || std::any_of(value.begin(), value.end(), [&](const json& inner) {
           return is_deeper(inner, max_depth - 1);
         });
}

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// The characters that value() must not skip in an object or an array.
constexpr std::array<bool, 256> make_structural() {
  std::array<bool, 256> structural{};
  for (const char c : {'"', '{', '}', '[', ']'}) structural[static_cast<unsigned char>(c)] = true;
  return structural;
}
constexpr std::array<bool, 256> kStructural = make_structural();

}  // namespace

Result<void> check_object(std::string_view text) {
  // Some editors write a byte order mark first; nlohmann skips it, and so must we.
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  const auto refuse = [](const std::string& found) {
    return fail(ErrorCode::kInvalid, "expected a JSON object, " + found);
  };
  if (text.starts_with(kByteOrderMark)) return refuse("got two byte order marks");
  if (is_plainly_an_object(text)) return {};
  // nlohmann takes a NUL for the end of the text.
  if (const auto nul = text.find('\0'); nul != std::string_view::npos) {
    return refuse("got a NUL at byte " + std::to_string(nul + 1));
  }
  Checker checker;
  if (json::sax_parse(text, &checker)) {
    if (text[text.find_first_not_of(" \t\n\r")] == '{') return {};
    return refuse("got " + excerpt(text, 40));
  }
  if (text.empty()) return refuse("got no bytes");
  const std::string found = excerpt(checker.found, 40);
  const std::string at_byte = " at byte " + std::to_string(checker.error_byte);
  if (checker.out_of_range) {
    return fail(ErrorCode::kInvalid, "expected numbers below 1.8e308, got " + found + at_byte);
  }
  if (checker.error_byte > text.size()) {
    return refuse("but the text ends too early, at byte " + std::to_string(text.size()) +
                  ", after " + found);
  }
  return refuse("got what is not JSON" + at_byte + ": \"" + found + '"');
}

Result<std::vector<JsonMember>> split_object(std::string_view text) {
  if (auto checked = check_object(text); !checked) return tl::unexpected(checked.error());
  std::vector<JsonMember> members;
  members.reserve(kUsualMembers);
  for (MemberWalk member{text}; member.next();) {
    members.push_back({std::string{member.name()}, member.name_text(), member.value_text()});
  }
  return members;
}

MemberWalk::MemberWalk(std::string_view object)
    : at_(object.data()), end_(object.data() + object.size()) {
  if (object.starts_with(kByteOrderMark)) at_ += kByteOrderMark.size();
  skip_space();
  ++at_;  // {
}

bool MemberWalk::next() {
  skip_space();
  if (*at_ == '}') return false;
  if (*at_ == ',') {
    ++at_;
    skip_space();
  }
  name_text_ = string();
  name_ = name_text_.substr(1, name_text_.size() - 2);
  if (name_.find('\\') != std::string_view::npos) {
    decoded_ = json::parse(name_text_, nullptr, false).get<std::string>();
    name_ = decoded_;
  }
  skip_space();
  ++at_;  // :
  skip_space();
  value_text_ = value();
  return true;
}

void MemberWalk::skip_space() {
  while (is_space(*at_)) ++at_;
}

std::string_view MemberWalk::string() {
  const char* const begin = at_;
  const char* at = begin + 1 + std::string_view{begin + 1, end_}.find('"');
  if (at[-1] == '\\') {  // it may be one that is escaped
    for (at = begin + 1; *at != '"';) at += *at == '\\' ? 2 : 1;
  }
  at_ = at + 1;
  return {begin, at_};
}

std::string_view MemberWalk::value() {
  const char* const begin = at_;
  if (*begin == '"') return string();
  if (*begin != '{' && *begin != '[') {
    const char* at = begin;
    while (*at != ',' && *at != '}' && !is_space(*at)) ++at;
    at_ = at;
    return {begin, at_};
  }
  std::size_t depth = 0;
  do {
    const char* at = at_;
    while (!kStructural[static_cast<unsigned char>(*at)]) ++at;
    at_ = at;
    if (*at == '"') {
      string();
      continue;
    }
    if (*at == '{' || *at == '[') {
      ++depth;
    } else {
      --depth;
    }
    ++at_;
  } while (depth != 0);
  return {begin, at_};
}

std::optional<json> parse_json(std::string_view text, std::size_t max_depth) {
  // nlohmann takes a NUL for the end of the text.
  if (text.find('\0') != std::string_view::npos) return std::nullopt;
  if (max_depth != kAnyDepth && is_deeper(text, max_depth)) return std::nullopt;
  json value = json::parse(text, nullptr, false);
  if (value.is_discarded()) return std::nullopt;
  return value;
}

std::string text_member(const json& value, const char* name) {
  if (!value.is_object()) return {};
  const auto it = value.find(name);
  return it != value.end() && it->is_string() ? it->get<std::string>() : std::string{};
}

Result<void> check_depth(const json& value) {
  if (!is_deeper(value, kMaxJsonDepth)) return {};
  return fail(ErrorCode::kInvalid, "expected at most " + std::to_string(kMaxJsonDepth) +
                                       " levels of arrays and objects, got more");
}

void append_quoted(std::string& to, std::string_view text) {
  if (is_plain_in_json(text)) {
    to += '"';
    to += text;
    to += '"';
  } else {
    to += json(text).dump(-1, ' ', false, json::error_handler_t::replace);
  }
}

std::string json_quoted(std::string_view text) {
  std::string quoted;
  quoted.reserve(text.size() + 2);
  append_quoted(quoted, text);
  return quoted;
}

std::size_t quoted_size(std::string_view text) {
  std::size_t size = text.size() + 2;
  if (is_plain_in_json(text)) return size;
  constexpr std::string_view kShortEscapes = "\"\\\b\f\n\r\t";
  std::size_t beyond_ascii = 0;
  for (const char c : text) {
    if (kShortEscapes.find(c) != std::string_view::npos) {
      ++size;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      size += 5;  // \u00XX
    } else if (static_cast<unsigned char>(c) >= 0x80) {
      ++beyond_ascii;
    }
  }
  return beyond_ascii == 0 || is_utf8(text) ? size : size + 2 * beyond_ascii;  // U+FFFD
}

}  // namespace lictor
