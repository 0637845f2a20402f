#include "base/printable.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"

namespace lictor {
namespace {

struct CodePoint {
  std::uint32_t value = 0;
  std::size_t bytes = 0;  // 0: not UTF-8
};

CodePoint first_of(std::string_view text) {
  const std::size_t bytes = utf8_length(text);
  if (bytes == 0) return {};
  const auto first = static_cast<unsigned char>(text[0]);
  std::uint32_t value = bytes == 1 ? first : first & (0x7fU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    value = value << 6U | (static_cast<unsigned char>(text[i]) & 0x3fU);
  }
  return {value, bytes};
}

// Whether a terminal would do something with the character other than show it.
bool is_hidden(std::uint32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0xad ||  // controls, soft hyphen
         c == 0x61c || c == 0x180e ||                         // Arabic mark, Mongolian separator
         (c >= 0x200b && c <= 0x200f) ||                      // zero width, direction marks
         (c >= 0x2028 && c <= 0x202e) ||                      // separators, embedding, override
         (c >= 0x2060 && c <= 0x206f) || c == 0xfeff ||       // isolates, byte order mark
         (c >= 0xfff9 && c <= 0xfffb) || (c >= 0xe0000 && c <= 0xe0fff);  // annotations, tags
}

std::string json_escape(std::uint32_t c) {
  if (c < 0x10000) return fmt::format("\\u{:04x}", c);
  c -= 0x10000;
  return fmt::format("\\u{:04x}\\u{:04x}", 0xd800 + (c >> 10U), 0xdc00 + (c & 0x3ffU));
}

// `text` with `escape(c)` in place of each hidden code point c.
template <class Escape>
std::string escaped(std::string_view text, bool lines, Escape escape) {
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    const auto plain =
        std::find_if(text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; });
    shown.append(text.begin(), plain);
    text.remove_prefix(static_cast<std::size_t>(plain - text.begin()));
    if (text.empty()) break;
    const CodePoint c = first_of(text);
    if (c.bytes == 0) {
      shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(text.front()));
    } else if (is_hidden(c.value) && !(lines && (c.value == '\n' || c.value == '\t'))) {
      shown += escape(c.value);
    } else {
      shown += text.substr(0, c.bytes);
    }
    text.remove_prefix(std::max<std::size_t>(c.bytes, 1));
  }
  return shown;
}

bool begins_character(char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U; }

// Where the character after the first `count` begins.
std::size_t place_of(std::string_view text, std::size_t count) {
  std::size_t at = 0;
  for (; at < text.size(); ++at) {
    if (begins_character(text[at]) && count-- == 0) break;
  }
  return at;
}

}  // namespace

std::string printable(std::string_view text, bool lines) {
  return escaped(text, lines, [](std::uint32_t c) {
    if (c == '\n') return std::string{"\\n"};
    return c < 0x100 ? fmt::format("\\x{:02x}", c) : fmt::format("\\u{:04x}", c);
  });
}

std::string printable_json(std::string_view json) { return escaped(json, true, json_escape); }

std::size_t columns(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), begins_character));
}

std::string fitted(std::string_view text, std::size_t width) {
  if (width == 0 || columns(text) <= width) return std::string{text};
  const std::size_t keep = width > 3 ? width - 3 : 0;
  return std::string{text.substr(0, place_of(text, keep))} + std::string(width - keep, '.');
}

std::string fitted_in_middle(std::string_view text, std::size_t width) {
  const std::size_t all = columns(text);
  if (width < 5 || all <= width) return fitted(text, width);
  const std::size_t tail = (width - 3) / 2;
  return fitted(text, width - tail) + std::string{text.substr(place_of(text, all - tail))};
}

std::vector<std::string> wrapped(std::string_view text, std::size_t width) {
  std::vector<std::string> lines;
  std::string line;
  while (!text.empty()) {
    const std::size_t space = std::min(text.find(' '), text.size());
    std::string word{text.substr(0, space)};
    text.remove_prefix(std::min(space + 1, text.size()));
    if (!line.empty() && columns(line) + 1 + columns(word) > width) {
      lines.push_back(std::exchange(line, {}));
    }
    while (line.empty() && columns(word) > width) {
      std::size_t cut = 0;
      for (std::size_t taken = 0; taken < width; ++taken) {
        cut += std::max<std::size_t>(1, utf8_length(std::string_view{word}.substr(cut)));
      }
      lines.push_back(word.substr(0, cut));
      word.erase(0, cut);
    }
    if (!word.empty()) line += (line.empty() ? "" : " ") + word;
  }
  if (!line.empty() || lines.empty()) lines.push_back(std::move(line));
  return lines;
}

namespace {

std::string rounded(std::chrono::seconds seconds) {
  using namespace std::chrono_literals;
  struct Unit {
    std::chrono::seconds length, until;
    const char* name;
  };
  static constexpr std::array<Unit, 5> kUnits{{{1s, 120s, "s"},
                                               {60s, 120min, "m"},
                                               {3600s, 48h, "h"},
                                               {24h, 24h * 1000, "d"},
                                               {24h * 365, std::chrono::seconds::max(), "y"}}};
  const auto unit = std::find_if(kUnits.begin(), kUnits.end() - 1,
                                 [&](const Unit& each) { return seconds < each.until; });
  return std::to_string((seconds + unit->length / 2) / unit->length) + unit->name;
}

}  // namespace

std::string rounded_duration(Duration duration) {
  return rounded(std::chrono::round<std::chrono::seconds>(duration));
}

std::string relative_time(WallTime time, WallTime now) {
  const bool ahead = time > now;
  // Don't use a Duration, which holds 292 years.
  const auto gap = ahead ? time - now : now - time;
  if (gap < std::chrono::seconds{1}) return "now";
  const std::string length = rounded(std::chrono::round<std::chrono::seconds>(gap));
  return ahead ? "in " + length : length + " ago";
}

std::string counted(std::size_t count, std::string_view noun) {
  return std::to_string(count) + ' ' + std::string{noun} + (count == 1 ? "" : "s");
}

std::string byte_text(std::size_t bytes) {
  if (bytes < 1000) return std::to_string(bytes) + " B";
  const auto number = static_cast<double>(bytes);
  if (number < 1e6) return fmt::format("{:.{}f} kB", number / 1e3, number < 1e4 ? 1 : 0);
  return fmt::format("{:.{}f} MB", number / 1e6, number < 1e7 ? 1 : 0);
}

std::string shell_word(std::string_view text) {
  constexpr std::string_view kPlain{
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/._-:,@+="};
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string_view::npos) {
    return std::string{text};
  }
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string{"'\\''"} : std::string{c};
  return word + '\'';
}

std::string shell_argument(std::string_view text) {
  return (text.starts_with('-') ? "-- " : "") + shell_word(text);
}

}  // namespace lictor
