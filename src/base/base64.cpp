#include "base/base64.h"

#include <endian.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

namespace lictor {
namespace {

constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr unsigned kDigits = 64;

// Two characters for each twelve bits.
constexpr std::array<std::array<char, 2>, kDigits * kDigits> make_pairs() {
  std::array<std::array<char, 2>, kDigits * kDigits> pairs{};
  for (unsigned i = 0; i < pairs.size(); ++i) {
    pairs[i] = {kAlphabet[i / kDigits], kAlphabet[i % kDigits]};
  }
  return pairs;
}
constexpr auto kPairs = make_pairs();

// The bits that a character adds to its group of 24, by its place in the group; for a character
// outside of the alphabet a higher bit.
constexpr std::uint32_t kNotInAlphabet = 1U << 31U;
using Values = std::array<std::uint32_t, 256>;
constexpr Values make_values(unsigned place) {
  Values values{};
  values.fill(kNotInAlphabet);
  for (std::uint32_t i = 0; i < kDigits; ++i) {
    values[static_cast<unsigned char>(kAlphabet[i])] = i << (18U - 6U * place);
  }
  return values;
}
constexpr std::array<Values, 4> kValues{make_values(0), make_values(1), make_values(2),
                                        make_values(3)};

std::uint32_t value_of(const char* four) {
  const auto* in = reinterpret_cast<const unsigned char*>(four);
  return kValues[0][in[0]] | kValues[1][in[1]] | kValues[2][in[2]] | kValues[3][in[3]];
}

}  // namespace

void append_base64(std::string& text, std::string_view bytes) {
  const std::size_t before = text.size();
  text.resize(before + base64_size(bytes.size()));
  char* out = text.data() + before;
  const auto put = [&out](std::uint64_t twelve_bits) {
    std::copy_n(kPairs[twelve_bits & 0xfffU].data(), 2, out);
    out += 2;
  };
  const auto byte = [&bytes](std::size_t i) {
    return std::uint32_t{static_cast<unsigned char>(bytes[i])};
  };
  // Six bytes at a time, of the eight that are loaded.
  for (; bytes.size() >= sizeof(std::uint64_t); bytes.remove_prefix(6)) {
    std::uint64_t eight = 0;
    std::memcpy(&eight, bytes.data(), sizeof(eight));
    eight = be64toh(eight);
    put(eight >> 52U);
    put(eight >> 40U);
    put(eight >> 28U);
    put(eight >> 16U);
  }
  for (; bytes.size() >= 3; bytes.remove_prefix(3)) {
    const std::uint32_t three = byte(0) << 16U | byte(1) << 8U | byte(2);
    put(three >> 12U);
    put(three);
  }
  if (!bytes.empty()) {
    const std::uint32_t rest = byte(0) << 16U | (bytes.size() == 2 ? byte(1) << 8U : 0U);
    put(rest >> 12U);
    put(rest);
    if (bytes.size() == 1) out[-2] = '=';
    out[-1] = '=';
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
  char* out = bytes.data();
  std::uint32_t all = 0;
  const char* in = text.data();
  for (const char* last = in + text.size() - 4; in != last; in += 4) {
    const std::uint32_t value = value_of(in);
    all |= value;
    *out++ = static_cast<char>(value >> 16U);
    *out++ = static_cast<char>(value >> 8U);
    *out++ = static_cast<char>(value);
  }
  std::array<char, 4> last{};
  last.fill(kAlphabet[0]);
  std::copy_n(in, 4 - padding, last.begin());
  const std::uint32_t value = value_of(last.data());
  *out++ = static_cast<char>(value >> 16U);
  if (padding < 2) *out++ = static_cast<char>(value >> 8U);
  if (padding < 1) *out++ = static_cast<char>(value);
  if (((all | value) & kNotInAlphabet) != 0) return std::nullopt;
  return bytes;
}

}  // namespace lictor
