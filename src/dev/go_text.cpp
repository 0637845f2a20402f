#include "dev/go_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/text.h"

namespace lictor::dev {
namespace {

bool is_print(char32_t rune) {
  if (rune < 0x20 || (rune >= 0x7f && rune <= 0xa0) || rune == 0xad) return false;
  if (rune >= 0x2000 && rune <= 0x200f) return false;
  if (rune >= 0x2028 && rune <= 0x202f) return false;
  if (rune >= 0x205f && rune <= 0x206f) return false;
  if (rune == 0x3000 || rune == 0xfeff) return false;
  return !(rune >= 0xe000 && rune <= 0xf8ff);
}

}  // namespace

bool is_printable_path(std::string_view path) {
  char32_t rune = 0;
  int more = 0;
  for (const char c : to_utf8(path)) {
    const auto byte = static_cast<unsigned char>(c);
    if (more == 0) {
      more = byte < 0x80 ? 0 : byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : 3;
      rune = more == 0 ? byte : byte & (0x3fU >> static_cast<unsigned>(more));
    } else {
      rune = rune << 6U | (byte & 0x3fU);
      --more;
    }
    if (more == 0 && !is_print(rune)) return false;
  }
  return true;
}

std::string quote(std::string_view text) { return nlohmann::json(to_utf8(text)).dump(); }

Result<void> read_text(const nlohmann::json& value, std::string_view field, std::string& out) {
  if (value.is_null()) return {};
  if (!value.is_string()) {
    return fail(ErrorCode::kInvalid, std::string{field} + ": expected a string");
  }
  out = value.get<std::string>();
  return {};
}

Result<Duration> parse_go_duration(std::string_view text) {
  const auto invalid = [&](const std::string& what) {
    return fail(ErrorCode::kInvalid, "time: " + what + " " + quote(text));
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
    if (scale == 0) return invalid("unknown unit " + quote(unit) + " in duration");
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
  return fail(ErrorCode::kInvalid, "strconv.ParseUint: parsing " + quote(text) +
                                       (range ? ": value out of range" : ": invalid syntax"));
}

}  // namespace lictor::dev
