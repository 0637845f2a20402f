#include "dev/go_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <utility>

namespace lictor::dev {
namespace {

constexpr std::string_view kHex = "0123456789abcdef";
constexpr char32_t kReplacement = 0xfffd;

std::string escape(std::string_view text, bool query) {
  constexpr std::string_view kPlainInPaths = "$&+,/:;=@";
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || c == '.' || c == '~' ||
                       (!query && kPlainInPaths.find(c) != std::string_view::npos);
    if (plain) {
      out += c;
    } else if (query && c == ' ') {
      out += '+';
    } else {
      const unsigned byte = static_cast<unsigned char>(c);
      out += '%';
      for (const unsigned digit : {byte >> 4U, byte & 15U}) {
        out += static_cast<char>(digit < 10 ? '0' + digit : 'A' + digit - 10);
      }
    }
  }
  return out;
}

// The character at the begin of `text` and how many bytes it takes; what is not UTF-8 is U+FFFD of
// one byte, as in Go.
std::pair<char32_t, std::size_t> first_rune(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const char32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < size) return {kReplacement, 1};
  char32_t rune = lead & (0xffU >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0U) != 0x80) return {kReplacement, 1};
    rune = rune << 6U | (byte(i) & 0x3fU);
  }
  constexpr std::array<char32_t, 5> kLeast{0, 0, 0x80, 0x800, 0x10000};
  if (rune < kLeast[size] || rune > 0x10ffff || (rune >= 0xd800 && rune < 0xe000)) {
    return {kReplacement, 1};
  }
  return {rune, size};
}

bool is_print(char32_t rune) {
  if (rune < 0x20 || (rune >= 0x7f && rune <= 0xa0) || rune == 0xad) return false;
  if (rune >= 0x2000 && rune <= 0x200f) return false;
  if (rune >= 0x2028 && rune <= 0x202f) return false;
  if (rune >= 0x205f && rune <= 0x206f) return false;
  if (rune == 0x3000 || rune == 0xfeff) return false;
  return !(rune >= 0xe000 && rune <= 0xf8ff);
}

void append_hex(std::string& out, std::uint32_t value, int digits) {
  for (int i = digits - 1; i >= 0; --i) out += kHex[value >> static_cast<unsigned>(4 * i) & 15U];
}

std::string quoted_rune(char32_t rune) {
  constexpr std::string_view kControls = "abtnvfr";  // 0x07 ...
  if (rune >= 7 && rune <= 13) return {'\\', kControls[rune - 7]};
  std::string out = rune < 0x80 ? "\\x" : rune < 0x10000 ? "\\u" : "\\U";
  append_hex(out, rune, rune < 0x80 ? 2 : rune < 0x10000 ? 4 : 8);
  return out;
}

}  // namespace

std::string encoded_query(const Url& url) {
  std::string out;
  for (const auto& [name, values] : url.query) {
    for (const std::string& value : values) {
      if (!out.empty()) out += '&';
      out += escape(name, true) + '=' + escape(value, true);
    }
  }
  return out;
}

std::string clean_path(std::string_view path) {
  std::vector<std::string_view> parts;
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string_view part = path.substr(at, end - at);
    if (part == "..") {
      if (!parts.empty()) parts.pop_back();
    } else if (!part.empty() && part != ".") {
      parts.push_back(part);
    }
    at = end + 1;
  }
  std::string out;
  for (const std::string_view part : parts) (out += '/') += part;
  if (out.empty() || path.ends_with('/')) out += '/';
  return out;
}

std::string escape_path(std::string_view path) { return escape(path, false); }

bool is_printable_path(std::string_view path) {
  while (!path.empty()) {
    const auto [rune, size] = first_rune(path);
    if (!is_print(rune)) return false;
    path.remove_prefix(size);
  }
  return true;
}

std::string go_quoted(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const auto [rune, size] = first_rune(text);
    if (rune == kReplacement && size == 1) {
      out += "\\x";
      append_hex(out, static_cast<unsigned char>(text.front()), 2);
    } else if (rune == '"' || rune == '\\') {
      (out += '\\') += text.front();
    } else if (is_print(rune)) {
      out += text.substr(0, size);
    } else {
      out += quoted_rune(rune);
    }
    text.remove_prefix(size);
  }
  return out + '"';
}

void append_json(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const auto [rune, size] = first_rune(text);
    if (rune == '"' || rune == '\\') {
      (out += '\\') += text.front();
    } else if (rune == '\n' || rune == '\r' || rune == '\t') {
      out += rune == '\n' ? "\\n" : rune == '\r' ? "\\r" : "\\t";
    } else if (rune == kReplacement && size == 1) {
      out += "\\ufffd";
    } else if (rune < 0x20 || rune == '<' || rune == '>' || rune == '&' || rune == 0x2028 ||
               rune == 0x2029) {
      out += "\\u";
      append_hex(out, rune, 4);
    } else {
      out += text.substr(0, size);
    }
    text.remove_prefix(size);
  }
  out += '"';
}

std::string go_indented(std::string_view text) {
  std::string out;
  std::size_t depth = 0;
  const auto new_line = [&] { out += '\n' + std::string(4 * depth, ' '); };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') {
      std::size_t end = i + 1;
      while (end < text.size() && text[end] != '"') end += text[end] == '\\' ? 2 : 1;
      out += text.substr(i, end + 1 - i);
      i = end;
      continue;
    }
    const bool opens = c == '{' || c == '[';
    if (c == '}' || c == ']') {
      --depth;
      new_line();
    }
    out += c;
    if (opens && i + 1 < text.size() && text[i + 1] == c + 2) {  // empty: "{}", "[]"
      out += text[++i];
    } else if (opens || c == ',') {
      if (opens) ++depth;
      new_line();
    } else if (c == ':') {
      out += ' ';
    }
  }
  return out + '\n';
}

std::string go_json_fault(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return "EOF";
  constexpr std::string_view kBegins = "{[\"-0123456789tfn";
  if (kBegins.find(text[first]) != std::string_view::npos) return "unexpected EOF";
  return "invalid character '" + std::string{text[first]} + "' looking for beginning of value";
}

Result<Duration> parse_go_duration(std::string_view text) {
  const auto invalid = [&](std::string what) {
    return fail(ErrorCode::kInvalid, "time: " + what + " " + go_quoted(text));
  };
  std::string_view rest = text;
  const bool negative = rest.starts_with('-');
  if (negative || rest.starts_with('+')) rest.remove_prefix(1);
  if (rest == "0") return Duration{};
  if (rest.empty()) return invalid("invalid duration");
  double total = 0;
  while (!rest.empty()) {
    const std::size_t digits = std::min(rest.find_first_not_of("0123456789."), rest.size());
    double value = 0;
    const auto [end, error] =
        std::from_chars(rest.data(), rest.data() + digits, value, std::chars_format::fixed);
    if (error != std::errc{} || end != rest.data() + digits) return invalid("invalid duration");
    rest.remove_prefix(digits);
    const std::string_view unit = rest.substr(0, rest.find_first_of("0123456789."));
    if (unit.empty()) return invalid("missing unit in duration");
    constexpr std::array<std::pair<std::string_view, double>, 8> kUnits{{{"ns", 1},
                                                                         {"us", 1e3},
                                                                         {"\u00b5s", 1e3},
                                                                         {"\u03bcs", 1e3},
                                                                         {"ms", 1e6},
                                                                         {"s", 1e9},
                                                                         {"m", 60e9},
                                                                         {"h", 3600e9}}};
    double scale = 0;
    for (const auto& [name, nanoseconds] : kUnits) {
      if (unit == name) scale = nanoseconds;
    }
    if (scale == 0) return invalid("unknown unit " + go_quoted(unit) + " in duration");
    total += value * scale;
    rest.remove_prefix(unit.size());
  }
  if (total >= 9.2e18) return invalid("invalid duration");
  const auto nanoseconds = static_cast<std::int64_t>(std::llround(total));
  return Duration{negative ? -nanoseconds : nanoseconds};
}

Result<std::uint64_t> parse_go_uint(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool digits = text.find_first_not_of("0123456789") == std::string_view::npos;
  if (!text.empty() && digits && error == std::errc{}) return value;
  const bool range = !text.empty() && digits && error == std::errc::result_out_of_range;
  return fail(ErrorCode::kInvalid, "strconv.ParseUint: parsing " + go_quoted(text) +
                                       (range ? ": value out of range" : ": invalid syntax"));
}

}  // namespace lictor::dev
