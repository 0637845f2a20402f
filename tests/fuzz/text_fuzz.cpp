// Text of every kind that a producer, an operator or a program may write: durations, times, base64,
// and whatever is shown on a terminal.

#include <string>

#include "base/base64.h"
#include "base/printable.h"
#include "base/text.h"
#include "base/time_text.h"
#include "fuzz.h"
#include "wire/layout.h"
#include "wire/record.h"

namespace lictor::fuzz {
namespace {

void check_times(std::string_view text) {
  using std::chrono::floor;
  if (const auto duration = parse_duration(text)) {
    FUZZ_REQUIRE(*duration >= Duration::zero());
    const auto exact = floor<std::chrono::microseconds>(*duration);
    FUZZ_REQUIRE(parse_duration(format_duration(exact)) == exact);
  }
  if (const auto time = parse_rfc3339(text)) {
    FUZZ_REQUIRE(parse_rfc3339(format_rfc3339(*time)) == *time);
  }
  if (const auto time = wire::read_time(text); !time) {
    FUZZ_REQUIRE(time.error().message.find("expected") != std::string::npos);
  } else {
    FUZZ_REQUIRE(parse_rfc3339(format_rfc3339(*time)) == *time);
    static_cast<void>(relative_time(*time, WallTime{}));
  }
}

void check_shown(std::string_view text) {
  FUZZ_REQUIRE(is_utf8(to_utf8(text)));
  if (is_utf8(text)) FUZZ_REQUIRE(to_utf8(text) == text);
  const std::string cut = excerpt(text, 60);
  FUZZ_REQUIRE(is_utf8(cut));
  FUZZ_REQUIRE(cut.size() <= 60 + 3);  // and "..."
  for (const std::string& shown : {cut, printable(text)}) {
    for (const char c : shown) FUZZ_REQUIRE(static_cast<unsigned char>(c) >= ' ' && c != 0x7f);
  }
  FUZZ_REQUIRE(is_utf8(printable(text)));
  FUZZ_REQUIRE(columns(fitted(printable(text), 20)) <= 20);
}

void check_codes(std::string_view text) {
  FUZZ_REQUIRE(base64_decode(base64_encode(text)) == text);
  if (const auto bytes = base64_decode(text)) {
    FUZZ_REQUIRE(base64_decode(base64_encode(*bytes)) == *bytes);
  }
  for (const char c : wire::kv_path(text)) {
    FUZZ_REQUIRE(static_cast<unsigned char>(c) > ' ' && c != '?' && c != '#' && c != 0x7f);
  }
}

}  // namespace
}  // namespace lictor::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = lictor::fuzz::text_of(data, size);
  lictor::fuzz::check_times(text);
  lictor::fuzz::check_shown(text);
  lictor::fuzz::check_codes(text);
  return 0;
}
