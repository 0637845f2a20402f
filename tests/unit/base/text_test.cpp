#include "base/text.h"

#include <string>
#include <utility>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "base/json_text.h"
#include "base/kv_name.h"
#include "base/printable.h"
#include "base/random.h"
#include "base/time_text.h"
#include "unit/consul_replies.h"
#include "unit/contains.h"

namespace lictor {

using namespace std::chrono_literals;

TEST_CASE("the nearest word is found, and none when none is near") {
  const std::vector<std::string_view> words{"concurrency", "prefetch", "lock_delay", "ttl"};
  CHECK(nearest("concurency", words) == "concurrency");
  CHECK(nearest("lockdelay", words) == "lock_delay");
  CHECK(nearest("tll", words) == "ttl");
  CHECK(nearest("timeout", words).empty());
  CHECK(nearest("", {}).empty());
}

TEST_CASE("the characters that are kept stand as they are, the rest is percent-encoded") {
  CHECK(is_word("aZ09-_", "-_"));
  CHECK_FALSE(is_word("a/b", "-_"));
  CHECK_FALSE(is_word("", "-_"));
  CHECK(percent_encoded("aZ0/-~\xff %", "/-") == "aZ0/-%7E%FF%20%25");
}

TEST_CASE("UTF-8 is as RFC 3629 has it") {
  for (const char* text : {"", "abc", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80",
                           "\xef\xbf\xbf", "\xf4\x8f\xbf\xbf", "\xed\x9f\xbf", "\xee\x80\x80"}) {
    CAPTURE(text);
    CHECK(is_utf8(text));
    CHECK(to_utf8(text) == text);
  }
  for (const char* text : {"\x80", "\xc3", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80",
                           "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff",
                           "\xe2\x82", "a\xe2\x28\xa1", "\xf0\x9f\x98"}) {
    CAPTURE(text);
    CHECK_FALSE(is_utf8(text));
    CHECK(is_utf8(to_utf8(text)));
  }
  CHECK(to_utf8("a\xff"
                "b") ==
        "a\xef\xbf\xbd"
        "b");
}

TEST_CASE("printable ASCII is from the space to the tilde") {
  CHECK(is_printable_ascii(" ~"));
  CHECK(is_plain_in_json(" ~"));
  for (const char other : {'\x1f', '\x7f', '\x80', '\xff', '\0', '\n', '"', '\\'}) {
    const std::string text{' ', other, '~'};
    CHECK(is_printable_ascii(text) == (other == '"' || other == '\\'));
    CHECK_FALSE(is_plain_in_json(text));
  }
}

TEST_CASE("an excerpt is one line, valid, and no longer than asked for") {
  CHECK(excerpt("short") == "short");
  CHECK(excerpt("two\nlines\tand\x01") == "two\\nlines\\x09and\\x01");
  CHECK(excerpt("0123456789", 10) == "0123456789");
  CHECK(excerpt("0123456789a", 10) == "0123456789...");
  CHECK(excerpt("01234567\xe2\x82\xac", 10) == "01234567...");
  CHECK(excerpt("012345678\n", 10) == "012345678...");
  CHECK(excerpt("", 10).empty());
  CHECK(excerpt("abc", 0) == "...");
  CHECK(excerpt("a\u202eb\u009bc\xff") == "a\\u202eb\\x9bc\\xff");

  Random random{3};
  for (int i = 0; i < 2'000; ++i) {
    std::string bytes;
    for (std::uint64_t n = random.next() % 40; n > 0; --n) {
      bytes +=
          static_cast<char>(random.next() % 3 == 0 ? random.next() : 0x80 + random.next() % 96);
    }
    const std::string line = excerpt(bytes, 20);
    REQUIRE(is_utf8(line));
    REQUIRE(line.size() <= 20 + 3);
    REQUIRE_FALSE(contains(line, "\n"));
  }
}

namespace {

TEST_CASE("terminal controls are shown as escapes, line feeds only where none is wanted") {
  CHECK(printable("a\x1b[31mb") == "a\\x1b[31mb");
  CHECK(printable("\u009b31m") == "\\x9b31m");
  CHECK(printable("a\u202eb") == "a\\u202eb");
  CHECK(printable("\x7f\r") == "\\x7f\\x0d");
  CHECK(printable(std::string("\0", 1)) == "\\x00");
  CHECK(printable("\xff\xc3") == "\\xff\\xc3");
  CHECK(printable("\u00fc\u20ac\U0001f600") == "\u00fc\u20ac\U0001f600");
  CHECK(printable("a\n\tb\r\n", true) == "a\n\tb\\x0d\n");
  CHECK(printable("a\nb") == "a\\nb");
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

TEST_CASE("a text is cut at characters, at its end or so that both ends are seen") {
  CHECK(fitted("\u00fc\u00fc\u00fc\u00fc\u00fc", 5) == "\u00fc\u00fc\u00fc\u00fc\u00fc");
  CHECK(fitted("\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc", 5) == "\u00fc\u00fc...");
  CHECK(fitted("abcdef", 2) == "..");
  CHECK(fitted("abcdef", 0) == "abcdef");
  CHECK(fitted_in_middle("0123456789", 10) == "0123456789");
  CHECK(fitted_in_middle("0123456789a", 10) == "0123...89a");
  CHECK(fitted_in_middle("\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc", 6) ==
        "\u00fc\u00fc...\u00fc");
  CHECK(fitted_in_middle("0123456789", 3) == "...");
  CHECK(fitted_in_middle("0123456789", 0) == "0123456789");
}

TEST_CASE("a time is shown by its distance, in one unit") {
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

TEST_CASE("base64 is that of RFC 4648") {
  using Row = std::pair<const char*, const char*>;
  for (const auto& [bytes, text] :
       {Row{"", ""}, Row{"f", "Zg=="}, Row{"fo", "Zm8="}, Row{"foo", "Zm9v"},
        Row{"foob", "Zm9vYg=="}, Row{"fooba", "Zm9vYmE="}, Row{"foobar", "Zm9vYmFy"},
        Row{"\xff\xfe\xfd", "//79"}}) {
    CHECK(base64_encode(bytes) == text);
    CHECK(base64_decode(text) == bytes);
  }
}

TEST_CASE("any bytes come back from base64") {
  Random random{1};
  for (std::size_t size = 0; size < 200; ++size) {
    std::string bytes;
    for (std::size_t i = 0; i < size; ++i) bytes += static_cast<char>(random.next());
    CHECK(base64_decode(base64_encode(bytes)) == bytes);
  }
}

TEST_CASE("text that is not padded base64 of the standard alphabet is refused") {
  for (const char* text : {"Z", "Zg", "Zg=", "Zg===", "====", "=g==", "Z===", "Zm9v\n", "Zm 9v===",
                           "Zm9_", "Zm9-", "Zg==Zg==", "Zm9vZ", "Z=g=", "\x80\x80\x80\x80"}) {
    CAPTURE(text);
    CHECK_FALSE(base64_decode(text).has_value());
  }
}

// Two parsers read a record: a fast one, and one that finds the fault.
TEST_CASE("an object is taken exactly when nlohmann parses it") {
  const std::string deep(2'000, '[');
  const std::string long_text(20'000, 'x');
  std::vector<std::string> values{
      "1",      "-0",        "01",        "-",        "1.",           ".5",
      "1e5",    "1e",        "+1",        "0x1",      "1e308",        "1e309",
      "-1e999", "NaN",       "nul",       "null",     "true",         "True",
      "tru",    "Infinity",  R"("a")",    R"("\n")",  R"("\x")",      R"("\u00")",
      R"("\")", "\"\n\"",    "\"\t\"",    "\"\x7f\"", "\"\xc3\xa9\"", "\"\xc3\"",
      "\xff",   "[]",        "[1,]",      "[,1]",     "[1 2]",        "{}",
      "{1:2}",  "",          "1 2",       "// a",     "/* a */ 1",    "1}",
      "\v1",    R"({"a":})", R"({"a" 1})"};
  for (const char* longer :
       {"18446744073709551615", "18446744073709551616", "-9223372036854775809",
        "123456789012345678901234567890", "0.1234567890123456789012345", R"("\u0041")",
        R"("\ud800")", R"("\udc00")", R"("\ud800\udc00")", R"("\udc00\ud800")", R"("\ud800x")",
        "\"\xed\xa0\x80\"", "\xc2\xa0-1", "\"\xf4\x90\x80\x80\"", "\"\xc0\x80\"", R"({"a":1,})",
        R"({"a":1,"a":2})"}) {
    values.emplace_back(longer);
  }
  values.push_back(deep + std::string(2'000, ']'));
  values.push_back('"' + long_text + '"');
  values.push_back('"' + long_text);
  for (const std::string& value : values) {
    for (const char* shape : {"{\"v\":?}", " {\"v\" : ? , \"w\":[?]}\n", "{\"v\":?}x", "?"}) {
      std::string text;
      for (const char c : std::string{shape}) c == '?' ? void(text += value) : void(text += c);
      CAPTURE(text.substr(0, 100));
      const auto parsed = nlohmann::json::parse(text, nullptr, false);
      CHECK(split_object(text).has_value() == parsed.is_object());
    }
  }
}

TEST_CASE("members are found whatever stands in their strings") {
  const std::string object =
      R"({"a\\":"\\","b\"":"\\\"","":"","c":"}]\"{[","d":{"e":["\\",{"f":"]}\\"}]},"g":[],)"
      R"("\u0068":1 ,"i": -0.5e3})";
  const auto parsed = nlohmann::ordered_json::parse(object);
  const auto members = split_object(object).value();
  REQUIRE(members.size() == parsed.size());
  std::size_t i = 0;
  for (const auto& [name, value] : parsed.items()) {
    CAPTURE(name);
    CHECK(members[i].name == name);
    CHECK(nlohmann::ordered_json::parse(members[i].value_text) == value);
    ++i;
  }
}

namespace {

TEST_CASE("a name fits a path if every Consul takes it there") {
  for (const char* good : {"", "a", "l/q/tasks/", "l/q/tasks/42", "a,7", "A_b-c.d",
                           "nightly/20261124T093000Z", "a/.b", "a/b.", ".a"}) {
    CAPTURE(good);
    CHECK(fits_path(good));
    CHECK(part_that_fits_path(good) == good);
  }
  for (const char* bad : {"a b",   " a",   "a ", "a~2",    "n@2026", "db7:8", "\u00fc", "a+b",
                          "a%20b", "a..b", "..", "a/../b", "a/..",   "a//b",  "/a",     "a/./b",
                          "./a",   "a/.",  ".",  "a?b",    "a=b",    "a&b",   "a\nb"}) {
    CAPTURE(bad);
    CHECK_FALSE(fits_path(bad));
    CHECK(fits_path(part_that_fits_path(bad)));
  }
}

TEST_CASE("the part of a name that fits a path is the longest beginning of it") {
  CHECK(part_that_fits_path("l/q/tasks/nightly@2026-11-24T09:30:00Z") == "l/q/tasks/nightly");
  CHECK(part_that_fits_path("l/q/dead/ a") == "l/q/dead/");
  CHECK(part_that_fits_path("l/q/dead/a..b") == "l/q/dead/a.");
  CHECK(part_that_fits_path("l/q/dead/a/../b") == "l/q/dead/a/");
  CHECK(part_that_fits_path("/a").empty());
}

TEST_CASE("a refusal of a name differs from a failure that may pass") {
  using unit::reply;
  CHECK(refuses_name(reply(301)));
  CHECK(refuses_name(reply(400)));
  CHECK(refuses_name(reply(500, "invalid key name, use only ...")));
  CHECK(refuses_name(reply(400, "Invalid key in transaction: /a")));
  CHECK(refuses_name(reply(500, "Invalid key in transaction: /a")));
  CHECK_FALSE(refuses_name(reply(500, "No cluster leader")));
  CHECK_FALSE(refuses_name(reply(403, "Permission denied")));
  CHECK_FALSE(refuses_name(reply(404)));
  CHECK_FALSE(refuses_name(reply(200, R"(["l/q/tasks/invalid key name"])")));
  http::Response lost = reply(301);
  lost.delivery = http::Delivery::kLost;
  CHECK_FALSE(refuses_name(lost));
}

}  // namespace

TEST_CASE("durations are read as Go writes them") {
  using Row = std::pair<const char*, Duration>;
  for (const auto& [text, duration] :
       {Row{"0s", 0s}, Row{"150ms", 150ms}, Row{"10s", 10s}, Row{"5m", 5min}, Row{"2h", 2h},
        Row{"1.5s", 1500ms}, Row{"1h30m", 90min}, Row{".5s", 500ms}, Row{"1m5s", 65s},
        Row{"250us", 250us}, Row{"7ns", 7ns}, Row{"0.001ms", 1us}, Row{"1h0m0.25s", 3600250ms},
        Row{"2160h", 2160h}, Row{"1d", 24h}, Row{"2w", 336h}, Row{"1d12h", 36h}, Row{"1.s", 1s}}) {
    CAPTURE(text);
    CHECK(parse_duration(text) == duration);
  }
  for (const char* text : {"", "5", "s", "5x", "-5s", "+5s", "5 s", " 5s", "5s ", "1e3s", ".s",
                           "1.2.3s", "1h30", "10S", "99999999h", "5\xc2\xb5s", "\x00"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_duration(text).has_value());
  }
  CHECK_FALSE(parse_duration(std::string(1'000, '9') + "s").has_value());
}

TEST_CASE("durations are written as shortly as they can be read back") {
  using Row = std::pair<Duration, const char*>;
  for (const auto& [duration, text] :
       {Row{0s, "0s"}, Row{10s, "10s"}, Row{90s, "90s"}, Row{2h, "2h"}, Row{5min, "5m"},
        Row{90min, "90m"}, Row{1500ms, "1.5s"}, Row{150ms, "150ms"}, Row{1001ms, "1.001s"},
        Row{1us, "0.001ms"}, Row{1000001us, "1.000001s"}, Row{86399999999us, "86399.999999s"},
        Row{1250us, "1.25ms"}, Row{7ns, "0s"}, Row{-90s, "-90s"},
        Row{Duration::min(), "-9223372036.854775s"}})
    CHECK(format_duration(duration) == text);
  Random random{1};
  for (int i = 0; i < 2'000; ++i) {
    const Duration duration = std::chrono::microseconds{random.next() % 300'000'000'000'000ULL};
    CHECK(parse_duration(format_duration(duration)) == duration);
  }
}

TEST_CASE("RFC 3339 is read with its zone, to the millisecond") {
  const auto at = [](std::int64_t ms) { return WallTime{std::chrono::milliseconds{ms}}; };
  CHECK(parse_rfc3339("1970-01-01T00:00:00Z") == at(0));
  CHECK(parse_rfc3339("2026-11-21T09:30:00Z") == at(1795253400000));
  CHECK(parse_rfc3339("2026-11-21T09:30:00.250+01:00") == at(1795249800250));
  CHECK(parse_rfc3339("2026-11-21t09:30:00.2509999z") == at(1795253400250));
  CHECK(parse_rfc3339("2026-11-21 09:30:00-00:30") == at(1795255200000));
  CHECK(parse_rfc3339("2024-02-29T00:00:00Z").has_value());
  CHECK(parse_rfc3339("2016-12-31T23:59:60Z") == at(1483228800000));
  CHECK(parse_rfc3339("1969-12-31T23:59:59.999Z") == at(-1));
  for (const char* text :
       {"", "2026-11-21", "2026-11-21T09:30Z", "2026-11-21T09:30:00", "2026-11-21T09:30:00.Z",
        "2023-02-29T00:00:00Z", "2026-13-01T00:00:00Z", "2026-00-01T00:00:00Z",
        "2026-11-31T00:00:00Z", "2026-11-21T24:00:00Z", "2026-11-21T09:60:00Z",
        "2026-11-21T09:30:61Z", "2026-11-21T09:30:00+24:00", "2026-11-21T09:30:00+0100",
        "2026-11-21T09:30:00Zx", "26-11-21T09:30:00Z", "2026-1-21T09:30:00Z",
        "2026-11-21T09:30:00 Z", "soon"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_rfc3339(text).has_value());
  }
}

TEST_CASE("the error for a well-formed time that does not exist says what does not exist") {
  const std::pair<const char*, const char*> table[] = {
      {"2026-11-30T10:00:00", "it has no zone: end it with Z for UTC, or with one such as +02:00"},
      {"2026-11-31T09:30:00Z", "there is no such day"},
      {"2026-13-31T09:30:00Z", "there is no such day"},
      {"2026-11-30T23:60:00+01:00", "there is no such time of day"},
      {"2026-11-30T23:59:60Z", ""},
      {"2026-11-31", ""},
      {"soon", ""}};
  for (const auto& [text, fault] : table) {
    CAPTURE(text);
    CHECK(rfc3339_fault(text) == fault);
  }
}

TEST_CASE("a time that was written is read back the same") {
  Random random{1};
  for (int i = 0; i < 2'000; ++i) {
    const WallTime time{std::chrono::milliseconds{random.next() % 253'402'300'800'000ULL}};
    CHECK(parse_rfc3339(format_rfc3339(time)) == time);
  }
  CHECK(format_rfc3339(WallTime{1795253400250ms}) == "2026-11-21T09:30:00.250Z");
  CHECK(format_rfc3339(WallTime{-1ms}) == "1969-12-31T23:59:59.999Z");
  using std::chrono::sys_days, std::chrono::year, std::chrono::January;
  CHECK(format_rfc3339(sys_days{year{12'345} / January / 6} + 7h) == "12345-01-06T07:00:00.000Z");
  CHECK(format_rfc3339(sys_days{year{-5} / January / 6}) == "-0005-01-06T00:00:00.000Z");
}

}  // namespace lictor
