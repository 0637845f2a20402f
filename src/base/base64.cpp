#include "base/base64.h"

#include <array>
#include <cstdint>

namespace lictor {
namespace {

constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::uint8_t kNotInAlphabet = 0xff;

constexpr std::array<std::uint8_t, 256> make_values() {
  std::array<std::uint8_t, 256> values{};
  values.fill(kNotInAlphabet);
  for (std::uint8_t i = 0; i < 64; ++i) values[static_cast<unsigned char>(kAlphabet[i])] = i;
  return values;
}
constexpr auto kValues = make_values();

std::uint8_t value_of(char c) { return kValues[static_cast<unsigned char>(c)]; }

}  // namespace

void append_base64(std::string& text, std::string_view bytes) {
  const std::size_t before = text.size();
  text.resize(before + (bytes.size() + 2) / 3 * 4);
  char* out = text.data() + before;
  std::size_t i = 0;
  const auto byte = [&](std::size_t at) -> std::uint32_t {
    return static_cast<unsigned char>(bytes[at]);
  };
  for (; i + 3 <= bytes.size(); i += 3) {
    const std::uint32_t three = byte(i) << 16U | byte(i + 1) << 8U | byte(i + 2);
    *out++ = kAlphabet[three >> 18U];
    *out++ = kAlphabet[three >> 12U & 63U];
    *out++ = kAlphabet[three >> 6U & 63U];
    *out++ = kAlphabet[three & 63U];
  }
  if (i < bytes.size()) {
    const bool two = i + 2 == bytes.size();
    const std::uint32_t rest = byte(i) << 16U | (two ? byte(i + 1) << 8U : 0U);
    *out++ = kAlphabet[rest >> 18U];
    *out++ = kAlphabet[rest >> 12U & 63U];
    *out++ = two ? kAlphabet[rest >> 6U & 63U] : '=';
    *out++ = '=';
  }
}

std::string base64_encode(std::string_view bytes) {
  std::string text;
  append_base64(text, bytes);
  return text;
}

std::optional<std::string> base64_decode(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::string bytes;
  if (text.empty()) return bytes;
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  bytes.resize(text.size() / 4 * 3 - padding);
  std::size_t at = 0;
  for (std::size_t i = 0; i < text.size(); i += 4) {
    const std::size_t digits = i + 4 == text.size() ? 4 - padding : 4;
    std::uint32_t bits = 0;
    for (std::size_t j = 0; j < 4; ++j) {
      const std::uint8_t value = j < digits ? value_of(text[i + j]) : 0;
      if (value == kNotInAlphabet) return std::nullopt;
      bits = bits << 6U | value;
    }
    for (std::size_t j = 0; j + 1 < digits; ++j) {
      bytes[at++] = static_cast<char>(bits >> (16U - 8U * j) & 0xffU);
    }
  }
  return bytes;
}

}  // namespace lictor
