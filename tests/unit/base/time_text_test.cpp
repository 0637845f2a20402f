#include "base/time_text.h"

#include <utility>

#include <doctest/doctest.h>

#include "base/random.h"

using namespace lictor;
using namespace std::chrono_literals;

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
        Row{1250us, "1.25ms"}, Row{7ns, "0s"}})
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

TEST_CASE("of a time in the right form that does not exist it is told what there is not") {
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
