#include "base/printable.h"

#include <string>

#include <doctest/doctest.h>

namespace lictor {
namespace {

using namespace std::chrono_literals;

TEST_CASE("what a terminal would act on is shown as an escape") {
  CHECK(printable("a\x1b[31mb") == "a\\x1b[31mb");
  CHECK(printable("\u009b31m") == "\\x9b31m");
  CHECK(printable("a\u202eb") == "a\\u202eb");
  CHECK(printable("\x7f\r") == "\\x7f\\x0d");
  CHECK(printable(std::string("\0", 1)) == "\\x00");
  CHECK(printable("\xff\xc3") == "\\xff\\xc3");
  CHECK(printable("\u00fc\u20ac\U0001f600") == "\u00fc\u20ac\U0001f600");
}

TEST_CASE("marks that turn or hide text are shown as escapes, whichever they are") {
  for (const char* mark : {"\u061c", "\u200b", "\u200e", "\u200f", "\u2028", "\u202a", "\u202e",
                           "\u2066", "\u2069", "\ufeff"}) {
    CHECK(printable(mark, true).starts_with("\\u"));
    CHECK(printable_json(mark) == printable(mark));
  }
  CHECK(printable_json("\"\x7f\u009b\U000e0041\u00fc\"\n") ==
        "\"\\u007f\\u009b\\udb40\\udc41\u00fc\"\n");
}

TEST_CASE("lines stay lines where they are wanted") {
  CHECK(printable("a\n\tb\r\n", true) == "a\n\tb\\x0d\n");
  CHECK(printable("a\nb") == "a\\nb");
}

TEST_CASE("a text is cut at characters, not at bytes") {
  CHECK(fitted("\u00fc\u00fc\u00fc\u00fc\u00fc", 5) == "\u00fc\u00fc\u00fc\u00fc\u00fc");
  CHECK(fitted("\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc", 5) == "\u00fc\u00fc...");
  CHECK(fitted("abcdef", 2) == "..");
  CHECK(fitted("abcdef", 0) == "abcdef");
}

TEST_CASE("a text is cut in its middle so that both ends are seen") {
  CHECK(fitted_in_middle("0123456789", 10) == "0123456789");
  CHECK(fitted_in_middle("0123456789a", 10) == "0123...89a");
  CHECK(fitted_in_middle("\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc", 6) ==
        "\u00fc\u00fc...\u00fc");
  CHECK(fitted_in_middle("0123456789", 3) == "...");
  CHECK(fitted_in_middle("0123456789", 0) == "0123456789");
}

TEST_CASE("a time is told by its distance, in one unit") {
  const WallTime now{1'795'228'350'949ms};
  CHECK(relative_time(now, now) == "now");
  CHECK(relative_time(now - 5s, now) == "5s ago");
  CHECK(relative_time(now + 599s, now) == "in 10m");
  CHECK(relative_time(now + 24h * 365 * 500, now) == "in 500y");  // beyond what nanoseconds hold
  CHECK(relative_time(now - 26h, now) == "26h ago");
  CHECK(relative_time(now + 24h * 30, now) == "in 30d");
  CHECK(relative_time(WallTime{}, now) == "57y ago");
}

TEST_CASE("text is wrapped at spaces, and a word that is too long is cut between characters") {
  using Lines = std::vector<std::string>;
  CHECK(wrapped("one two three", 7) == Lines{"one two", "three"});
  CHECK(wrapped("", 7) == Lines{""});
  CHECK(wrapped("  a   b ", 7) == Lines{"a b"});
  CHECK(wrapped("a \u00e4\u00f6\u00fc\u00df", 3) == Lines{"a", "\u00e4\u00f6\u00fc", "\u00df"});
}

TEST_CASE("sizes and counts are for people") {
  CHECK(byte_text(999) == "999 B");
  CHECK(byte_text(4'321) == "4.3 kB");
  CHECK(byte_text(450'000) == "450 kB");
  CHECK(byte_text(22'000'000) == "22 MB");
  CHECK(counted(1, "task") == "1 task");
  CHECK(counted(0, "task") == "0 tasks");
}

}  // namespace
}  // namespace lictor
