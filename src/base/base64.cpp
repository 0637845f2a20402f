#include "base/base64.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace lictor {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// The six bits of each character; negative for characters outside of the alphabet.
constexpr std::array<std::int32_t, 256> make_values() {
  std::array<std::int32_t, 256> values{};
  values.fill(-1);
  for (std::size_t i = 0; i < kAlphabet.size(); ++i) {
    values[static_cast<unsigned char>(kAlphabet[i])] = static_cast<std::int32_t>(i);
  }
  return values;
}
constexpr auto kValues = make_values();

// The 24 bits of four characters; negative if one is not in the alphabet.
std::int32_t value_of(const char* four) {
  const auto bits = [four](int i) { return kValues[static_cast<unsigned char>(four[i])]; };
  return bits(0) << 18 | bits(1) << 12 | bits(2) << 6 | bits(3);
}

}  // namespace

void append_base64(std::string& text, std::string_view bytes) {
  const std::size_t before = text.size();
  text.resize(before + base64_size(bytes.size()));
  char* out = text.data() + before;
  const auto put = [&](std::uint32_t bits) {
    for (const unsigned shift : {18U, 12U, 6U, 0U}) *out++ = kAlphabet[bits >> shift & 63U];
  };
  const auto byte = [&](std::size_t i) {
    return std::uint32_t{static_cast<unsigned char>(bytes[i])};
  };
  for (; bytes.size() >= 3; bytes.remove_prefix(3)) put(byte(0) << 16U | byte(1) << 8U | byte(2));
  if (bytes.empty()) return;
  put(byte(0) << 16U | (bytes.size() == 2 ? byte(1) << 8U : 0U));
  std::fill(out - 3 + bytes.size(), out, '=');
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
  bytes.resize(text.size() / 4 * 3);
  char* out = bytes.data();
  std::int32_t all = 0;  // negative once a group is invalid
  const auto take = [&](const char* four) {
    const std::int32_t value = value_of(four);
    all |= value;
    *out++ = static_cast<char>(value >> 16);
    *out++ = static_cast<char>(value >> 8);
    *out++ = static_cast<char>(value);
  };
  const char* in = text.data();
  for (const char* const last = in + text.size() - 4; in != last; in += 4) take(in);
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  std::array<char, 4> last{};
  last.fill(kAlphabet.front());
  std::copy_n(in, 4 - padding, last.begin());
  take(last.data());
  if (all < 0) return std::nullopt;
  bytes.resize(bytes.size() - padding);
  return bytes;
}

}  // namespace lictor
