#include "base/text.h"

#include <strings.h>

#include <algorithm>
#include <numeric>

#include "base/printable.h"

namespace lictor {
std::size_t edits(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

std::string nearest(std::string_view word, const std::vector<std::string_view>& candidates) {
  std::string_view best;
  std::size_t best_edits = word.size() / 3 + 2;  // beyond a third of the letters it is another word
  for (const std::string_view candidate : candidates) {
    const std::size_t n = edits(word, candidate);
    if (n < best_edits) {
      best_edits = n;
      best = candidate;
    }
  }
  return std::string{best};
}

bool is_word(std::string_view text, std::string_view more) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [more](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           more.find(c) != std::string_view::npos;
  });
}

std::string percent_encoded(std::string_view text, std::string_view kept) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string encoded;
  encoded.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (is_word({&c, 1}, kept)) {
      encoded += c;
    } else {
      encoded.append({'%', kHex[byte >> 4U], kHex[byte & 15U]});
    }
  }
  return encoded;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
  return text.substr(0, text.find_last_not_of(kSpace) + 1);
}

std::string lowered(std::string_view text) {
  std::string result{text};
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

bool equal_but_for_case(std::string_view a, std::string_view b) {
  return a.size() == b.size() && strncasecmp(a.data(), b.data(), a.size()) == 0;
}

std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto tail = [&](std::size_t i) { return i < text.size() && (byte(i) & 0xc0U) == 0x80U; };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return tail(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    if (!tail(1) || !tail(2)) return 0;
    if (first == 0xe0 && byte(1) < 0xa0) return 0;  // overlong
    if (first == 0xed && byte(1) > 0x9f) return 0;  // surrogate
    return 3;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    if (!tail(1) || !tail(2) || !tail(3)) return 0;
    if (first == 0xf0 && byte(1) < 0x90) return 0;  // overlong
    if (first == 0xf4 && byte(1) > 0x8f) return 0;  // over U+10FFFF
    return 4;
  }
  return 0;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t n = utf8_length(text);
    if (n == 0) return false;
    text.remove_prefix(n);
  }
  return true;
}

bool is_printable_ascii(std::string_view text) {
  return std::ranges::none_of(text, [](char c) { return c < ' ' || c > '~'; });
}

bool is_plain_in_json(std::string_view text) {
  return is_printable_ascii(text) && text.find_first_of("\"\\") == std::string_view::npos;
}

std::string to_utf8(std::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  while (!text.empty()) {
    const std::size_t n = utf8_length(text);
    if (n == 0) {
      valid += "\xef\xbf\xbd";
      text.remove_prefix(1);
    } else {
      valid += text.substr(0, n);
      text.remove_prefix(n);
    }
  }
  return valid;
}

std::string excerpt(std::string_view text, std::size_t limit) {
  if (text.size() <= limit && is_printable_ascii(text)) return std::string{text};
  std::string line;
  while (!text.empty()) {
    const std::size_t bytes = std::max<std::size_t>(1, utf8_length(text));
    const std::string shown = printable(text.substr(0, bytes));
    if (line.size() + shown.size() > limit) return line + "...";
    line += shown;
    text.remove_prefix(bytes);
  }
  return line;
}

}  // namespace lictor
