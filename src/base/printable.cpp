#include "base/printable.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>

#include "base/text.h"

namespace lictor {
namespace {

// The code point at the start of valid UTF-8, and its length.
struct CodePoint {
  std::uint32_t value = 0;
  std::size_t bytes = 1;
};

CodePoint first_of(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto tail = [&](std::size_t i) { return static_cast<std::uint32_t>(byte(i) & 0x3fU); };
  const std::uint32_t first = byte(0);
  if (first < 0x80) return {first, 1};
  if (first < 0xe0) return {(first & 0x1fU) << 6U | tail(1), 2};
  if (first < 0xf0) return {(first & 0x0fU) << 12U | tail(1) << 6U | tail(2), 3};
  return {(first & 0x07U) << 18U | tail(1) << 12U | tail(2) << 6U | tail(3), 4};
}

// Whether a terminal would do something other than show it.
bool is_hidden(std::uint32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0xad ||  // controls, soft hyphen
         (c >= 0x200b && c <= 0x200f) ||                      // zero width, direction marks
         (c >= 0x2028 && c <= 0x202e) ||                      // separators, embedding, override
         (c >= 0x2060 && c <= 0x206f) || c == 0xfeff || (c >= 0xfff9 && c <= 0xfffb) ||
         (c >= 0xe0000 && c <= 0xe0fff);  // tags
}

template <class... Args>
std::string text_of(const char* format, Args... args) {
  std::array<char, 64> buffer{};
  std::snprintf(buffer.data(), buffer.size(), format, args...);
  return buffer.data();
}

// The length of the valid UTF-8 sequence at the start, or 0.
std::size_t valid_bytes(std::string_view text) {
  for (std::size_t n = 1; n <= 4 && n <= text.size(); ++n) {
    if (is_utf8(text.substr(0, n))) return n;
  }
  return 0;
}

}  // namespace

std::string printable(std::string_view text, bool lines) {
  if (is_printable_ascii(text)) return std::string{text};

  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    const std::size_t valid = valid_bytes(text);
    if (valid == 0) {
      shown += text_of("\\x%02x", static_cast<unsigned>(static_cast<unsigned char>(text.front())));
      text.remove_prefix(1);
      continue;
    }
    const CodePoint c = first_of(text);
    if (lines && (c.value == '\n' || c.value == '\t')) {
      shown += text.front();
    } else if (c.value == '\n') {
      shown += "\\n";
    } else if (!is_hidden(c.value)) {
      shown += text.substr(0, c.bytes);
    } else {
      shown += text_of(c.value < 0x100 ? "\\x%02x" : "\\u%04x", static_cast<unsigned>(c.value));
    }
    text.remove_prefix(valid);
  }
  return shown;
}

std::size_t columns(std::string_view text) {
  std::size_t count = 0;
  for (const char c : text) {
    if ((static_cast<unsigned char>(c) & 0xc0U) != 0x80U) ++count;
  }
  return count;
}

std::string fitted(std::string_view text, std::size_t width) {
  if (width == 0 || columns(text) <= width) return std::string{text};
  const std::size_t keep = width > 3 ? width - 3 : 0;
  std::size_t end = 0;
  for (std::size_t count = 0; end < text.size(); ++end) {
    if ((static_cast<unsigned char>(text[end]) & 0xc0U) != 0x80U && count++ == keep) break;
  }
  return std::string{text.substr(0, end)} + std::string(width - keep, '.');
}

std::string relative_time(WallTime time, WallTime now) {
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
  const bool ahead = time > now;
  const auto gap =
      std::chrono::duration_cast<std::chrono::seconds>(ahead ? time - now : now - time);
  for (const Unit& unit : kUnits) {
    if (gap >= unit.until) continue;
    if (gap < 1s) return "now";
    const std::string number = std::to_string((gap + unit.length / 2) / unit.length) + unit.name;
    return ahead ? "in " + number : number + " ago";
  }
  return {};
}

std::string counted(std::size_t count, std::string_view noun) {
  return std::to_string(count) + ' ' + std::string{noun} + (count == 1 ? "" : "s");
}

std::string byte_text(std::size_t bytes) {
  if (bytes < 1000) return std::to_string(bytes) + " B";
  const auto number = static_cast<double>(bytes);
  if (number < 1e6) return text_of(number < 1e4 ? "%.1f kB" : "%.0f kB", number / 1e3);
  return text_of(number < 1e7 ? "%.1f MB" : "%.0f MB", number / 1e6);
}

}  // namespace lictor
