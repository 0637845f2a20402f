#include "schedule/cron.h"

#include "texts.h"

namespace lictor::schedule {
namespace {

std::string error_of(const std::string& text) {
  const auto read = Cron::parse(text);
  return read ? "none" : read.error().message;
}

// The first `count` matches from `from` on.
std::vector<std::string> matches(const std::string& text, const std::string& from,
                                 std::size_t count) {
  const Cron read = cron(text);
  std::vector<std::string> found;
  LocalTime at = local(times_in(from).front());
  while (found.size() < count) {
    const auto next = read.next(at, at + std::chrono::years{50});
    if (!next) break;
    found.push_back(local_text(*next));
    at = *next + std::chrono::seconds{1};
  }
  return found;
}

TEST_CASE("an expression matches the times that its fields name") {
  struct Row {
    const char* text;
    const char* from;
    const char* times;
  };
  const Row table[] = {
      {"30 9 * * *", "2026-11-24T09:30:01", "2026-11-25T09:30"},
      {"*/10 30 9 * * *", "2026-11-24T09:30:45",
       "2026-11-24T09:30:50 2026-11-25T09:30 2026-11-25T09:30:10"},
      {"0 0 1 JAN,jul *", "2026-02-01T00:00", "2026-07-01T00:00 2027-01-01T00:00"},
      {"0 0 * * mon-Fri", "2026-11-27T00:00:01", "2026-11-30T00:00 2026-12-01T00:00"},
      {"0 0 * * 0", "2026-11-24T00:00", "2026-11-29T00:00 2026-12-06T00:00"},
      {"0 0 * * fri-sun", "2026-11-24T00:00",
       "2026-11-27T00:00 2026-11-28T00:00 2026-11-29T00:00 2026-12-04T00:00"},
      {"0 0 * * 7-1", "2026-11-24T00:00", "2026-11-29T00:00 2026-11-30T00:00"},
      {"0 0 L * *", "2024-01-31T00:00:01", "2024-02-29T00:00 2024-03-31T00:00 2024-04-30T00:00"},
      {"0 0 1,L * *", "2026-02-02T00:00", "2026-02-28T00:00 2026-03-01T00:00"},
      {"0 0 L-3 * *", "2024-02-01T00:00", "2024-02-26T00:00 2024-03-28T00:00 2024-04-27T00:00"},
      {"0 0 l-30,15 2-3 *", "2026-02-01T00:00",
       "2026-02-15T00:00 2026-03-01T00:00 2026-03-15T00:00"},
      {"0 30 9 ? * MON-FRI", "2026-11-28T00:00", "2026-11-30T09:30"},
      {"0 30 9 1 * ?", "2026-11-28T00:00", "2026-12-01T09:30"},
      {"0 0 0 ? * sun#2", "2026-11-01T00:00", "2026-11-08T00:00"},
      {"0 0 30-L 4,5 *", "2026-04-01T00:00", "2026-04-30T00:00 2026-05-30T00:00 2026-05-31T00:00"},
      {"0 0 * * 5L", "2026-11-01T00:00", "2026-11-27T00:00 2026-12-25T00:00"},
      {"0 0 * * L5", "2026-11-01T00:00", "2026-11-27T00:00"},
      {"0 0 * * friL", "2026-11-01T00:00", "2026-11-27T00:00"},
      {"0 0 * * sunl", "2026-02-01T00:00", "2026-02-22T00:00 2026-03-29T00:00"},
      {"0 0 * * 5#2", "2026-11-01T00:00", "2026-11-13T00:00 2026-12-11T00:00"},
      {"0 0 * * 0#1,7#3", "2026-11-01T00:00", "2026-11-01T00:00 2026-11-15T00:00"},
      {"0 0 * * mon#5", "2026-01-01T00:00", "2026-03-30T00:00 2026-06-29T00:00"},
      {"0 0 29 2 *", "2026-01-01T00:00", "2028-02-29T00:00 2032-02-29T00:00"},
      {"0 0 29 2 *", "2096-03-01T00:00", "2104-02-29T00:00"},
      {"0 0 * 2 1#5", "2026-01-01T00:00", "2044-02-29T00:00 2072-02-29T00:00"},
      {"0 0 ? * ?", "2026-11-24T00:00", "2026-11-24T00:00 2026-11-25T00:00"},
      {"  0\t0  * * *  ", "2026-11-24T00:00:01", "2026-11-25T00:00"},
      {"@hourly", "2026-11-24T09:30", "2026-11-24T10:00 2026-11-24T11:00"},
      {"@daily", "2026-11-24T09:30", "2026-11-25T00:00"},
      {"@Midnight", "2026-11-24T09:30", "2026-11-25T00:00"},
      {"@weekly", "2026-11-24T09:30", "2026-11-29T00:00"},
      {"@monthly", "2026-11-24T09:30", "2026-12-01T00:00"},
      {"@yearly", "2026-11-24T09:30", "2027-01-01T00:00"},
      {"@annually", "2026-11-24T09:30", "2027-01-01T00:00"},
  };
  for (const Row& row : table) {
    CAPTURE(row.text);
    const Times times = times_in(row.times);
    CHECK(matches(row.text, row.from, times.size()) == times);
  }
}

TEST_CASE("two restricted day fields match either day, as in Vixie's cron") {
  CHECK(matches("0 0 13 * fri", "2026-11-01T00:00", 4) ==
        times_in("2026-11-06T00:00 2026-11-13T00:00 2026-11-20T00:00 2026-11-27T00:00"));
  CHECK(matches("0 0 30 2 mon", "2026-02-24T00:00", 2) ==
        times_in("2027-02-01T00:00 2027-02-08T00:00"));
  CHECK(matches("0 0 L * 5#1", "2026-11-01T00:00", 3) ==
        times_in("2026-11-06T00:00 2026-11-30T00:00 2026-12-04T00:00"));
  // A field that begins with "*" is not restricted: both must match.
  CHECK(matches("0 0 */2 * mon", "2026-11-01T00:00", 3) ==
        times_in("2026-11-09T00:00 2026-11-23T00:00 2026-12-07T00:00"));
  CHECK(matches("0 0 13 * */5", "2026-01-01T00:00", 3) ==
        times_in("2026-02-13T00:00 2026-03-13T00:00 2026-09-13T00:00"));
  // "1-31" is restricted, and matches each day.
  CHECK(matches("0 0 1-31 * mon", "2026-11-24T00:00", 2) ==
        times_in("2026-11-24T00:00 2026-11-25T00:00"));
}

TEST_CASE("an expression repeats through the day if its hour field has a star or a step") {
  for (const char* text : {"* * * * *", "*/5 * * * *", "0 */2 * * *", "0 0-23 * * *",
                           "0 8-18/2 * * *", "0 3/4 * * *", "0 1,*/6 * * *", "@hourly"}) {
    CAPTURE(text);
    CHECK(cron(text).repeats());
  }
  for (const char* text : {"0 0 * * *", "*/5 2 * * *", "* 1-3 * * *", "0 1,13 * * *", "@daily"}) {
    CAPTURE(text);
    CHECK_FALSE(cron(text).repeats());
  }
}

TEST_CASE("an error names the field, what was expected and what was found") {
  const std::pair<const char*, const char*> table[] = {
      {"0 24 * * *", R"(hour: expected 0 to 23, got "24")"},
      {"60 0 * * *", R"(minute: expected 0 to 59, got "60")"},
      {"61 0 0 * * *", R"(second: expected 0 to 59, got "61")"},
      {"0 0 0 * *", R"(day of month: expected 1 to 31 or L, got "0")"},
      {"0 0 32 * *", R"(day of month: expected 1 to 31 or L, got "32")"},
      {"0 0 * 0 *", R"(month: expected 1 to 12 or jan to dec, got "0")"},
      {"0 0 * 13 *", R"(month: expected 1 to 12 or jan to dec, got "13")"},
      {"0 0 * june *", R"(month: expected 1 to 12 or jan to dec, got "june")"},
      {"0 0 * * 8", R"(day of week: expected 0 to 7 or sun to sat, got "8")"},
      {"0 0 * * fry", R"(day of week: expected 0 to 7 or sun to sat, got "fry")"},
      {"-1 0 * * *", R"(minute: expected 0 to 59, got "")"},
      {"+1 0 * * *", R"(minute: expected 0 to 59, got "+1")"},
      {"1.5 0 * * *", R"(minute: expected 0 to 59, got "1.5")"},
      {"99999999999999999999 0 * * *", R"(minute: expected 0 to 59, got "99999999999999999999")"},
      {"? 0 * * *", R"(minute: expected 0 to 59, got "?")"},
      {"L 0 * * *", R"(minute: expected 0 to 59, got "L")"},
      {"*-5 0 * * *", R"(minute: expected 0 to 59, got "*")"},
      {"1-2-3 0 * * *", R"(minute: expected 0 to 59, got "2-3")"},
      {"0 22-4 * * *", R"(hour: expected a range from low to high, got "22-4"; write "22-23,0-4")"},
      {"0 0 * * fri-mon",
       R"(day of week: expected a range from low to high, got "fri-mon"; write "5-6,0-1")"},
      {"0 0 31-1 * *",
       R"(day of month: expected a range from low to high, got "31-1"; write "31,1")"},
      {"*/0 * * * *", R"(minute: expected a step of 1 to 60, got "0")"},
      {"*/90 * * * *", R"(minute: expected a step of 1 to 60, got "90")"},
      {"0 0 * * */8", R"(day of week: expected a step of 1 to 7, got "8")"},
      {"*/ * * * *", R"(minute: expected a step of 1 to 60, got "")"},
      {"*/2/3 * * * *", R"(minute: expected a step of 1 to 60, got "2/3")"},
      {"1,,2 * * * *", R"(minute: expected values with one comma between them, got "1,,2")"},
      {", * * * *", R"(minute: expected values with one comma between them, got ",")"},
      {"0 0 * * L", R"(day of week: expected a day with L, such as 5L, got "L")"},
      {"0 0 * * 5#6", R"(day of week: expected 1 to 5 after #, got "6")"},
      {"0 0 * * 5#", R"(day of week: expected 1 to 5 after #, got "")"},
      {"0 0 * * #2", R"(day of week: expected 0 to 7 or sun to sat, got "")"},
      {"0 0 * * 1-5#2", R"(day of week: expected 0 to 7 or sun to sat, got "1-5")"},
      {"0 0 15W * *",
       "day of month: expected 1 to 31 or L, got \"15W\"; there is no working day nearest to a "
       "date: name days of the week instead"},
      {"0 0 LW * *",
       "day of month: expected 1 to 31 or L, got \"LW\"; there is no working day nearest to a "
       "date: name days of the week instead"},
      {"0 0 L-31 * *", R"(day of month: expected L, or L-1 to L-30, got "L-31")"},
      {"0 0 L3 * *", R"(day of month: expected L, or L-1 to L-30, got "L3")"},
      {"0 0 0 * * ? *",
       R"(expected five fields, or six with seconds first, got 7: "0 0 0 * * ? *")"},
      {"* * * *", R"(expected five fields, or six with seconds first, got 4: "* * * *")"},
      {"* * * * * * * *",
       R"(expected five fields, or six with seconds first, got 8: "* * * * * * * *")"},
      {"", R"(expected five fields, or six with seconds first, got 0: "")"},
      {"@reboot",
       "expected @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly or @every with "
       "a duration, got \"@reboot\""},
  };
  for (const auto& [text, message] : table) {
    CAPTURE(text);
    CHECK(error_of(text) == message);
  }
}

TEST_CASE("an expression that never fires is refused") {
  for (const char* text : {"0 0 30 2 *", "0 0 31 2,4,6,9,11 *", "0 0 30-31 feb ?"}) {
    CAPTURE(text);
    CHECK(error_of(text) == "never fires: expected a day that one of the months has, got \"" +
                                std::string{text} + '"');
  }
  CHECK(error_of("0 0 31 2,3 *") == "none");
  CHECK(error_of("0 0 */30 2 mon") == "none");  // a Monday, 1 February
}

TEST_CASE("matches are looked for in [from, before)") {
  const Cron daily = cron("0 12 * * *");
  const LocalTime noon = local("2026-11-24T12:00:00");
  CHECK(daily.next(noon, noon + std::chrono::seconds{1}) == noon);
  CHECK_FALSE(daily.next(noon, noon).has_value());
  CHECK_FALSE(daily.next(noon + std::chrono::seconds{1}, noon + std::chrono::days{1}).has_value());
}

}  // namespace
}  // namespace lictor::schedule
