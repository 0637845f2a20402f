#include "schedule/zone.h"

#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "temporary_folder.h"
#include "texts.h"

using namespace lictor;
using namespace lictor::schedule;
using namespace std::chrono_literals;
using namespace std::string_literals;
using std::chrono::seconds;

namespace {

std::string number(std::uint64_t value, unsigned bytes) {
  std::string text;
  while (bytes-- > 0) text += static_cast<char>(value >> (8 * bytes) & 0xffU);
  return text;
}

struct FileChange {
  Tick at;
  unsigned type;
};

// A TZif file, as `zic -b slim` writes it: the part in 32 bits is empty.
std::string tzif(const std::vector<FileChange>& changes, const std::vector<int>& offsets,
                 const std::string& footer, unsigned leaps = 0) {
  const auto header = [&](bool full) {
    std::string text = "TZif2" + std::string(15, '\0');
    for (const std::size_t count : {std::size_t{0}, std::size_t{0}, std::size_t{leaps},
                                    changes.size(), offsets.size(), std::size_t{4}}) {
      text += number(full ? count : 0, 4);
    }
    return text;
  };
  std::string text = header(false) + header(true);
  for (const FileChange& change : changes) {
    text += number(static_cast<std::uint64_t>(change.at.time_since_epoch().count()), 8);
  }
  for (const FileChange& change : changes) text += static_cast<char>(change.type);
  for (const int offset : offsets) text += number(static_cast<std::uint64_t>(offset), 4) + "\0\0"s;
  text += "LMT\0"s + std::string(12 * leaps, '\0');
  return text + '\n' + footer + '\n';
}

std::string zone_error(const std::string& file) {
  const auto read = Zone::parse(file);
  return read ? "none" : read.error().message;
}

Zone parsed(const std::string& file) {
  auto read = Zone::parse(file);
  REQUIRE_MESSAGE(read, read.error().message);
  return *std::move(read);
}

seconds offset(const Zone& zone, const std::string& at) { return zone.period_at(tick(at)).offset; }

}  // namespace

TEST_SUITE_BEGIN("schedule");

TEST_CASE("zones change their clocks when the tz database says so") {
  struct Row {
    const char* name;
    const char* at;
    seconds before, after;
  };
  const Row table[] = {
      {"Europe/Rome", "2026-03-29T01:00:00Z", 1h, 2h},
      {"Europe/Rome", "2026-10-25T01:00:00Z", 2h, 1h},
      {"Europe/Rome", "2050-03-27T01:00:00Z", 1h, 2h},  // by the rule at the end of the file
      {"Europe/Rome", "2050-10-30T01:00:00Z", 2h, 1h},
      {"America/New_York", "2026-03-08T07:00:00Z", -5h, -4h},
      {"America/New_York", "2026-11-01T06:00:00Z", -4h, -5h},
      {"America/New_York", "2199-03-10T07:00:00Z", -5h, -4h},
      {"Australia/Lord_Howe", "2026-04-04T15:00:00Z", 11h, 10h + 30min},
      {"Australia/Lord_Howe", "2026-10-03T15:30:00Z", 10h + 30min, 11h},
      {"America/Sao_Paulo", "2018-11-04T03:00:00Z", -3h, -2h},
      {"America/Sao_Paulo", "2019-02-17T02:00:00Z", -2h, -3h},
      {"Asia/Kolkata", "1945-10-14T17:30:00Z", 6h + 30min, 5h + 30min},
      {"Africa/Casablanca", "2026-02-15T02:00:00Z", 1h, 0h},
      {"Africa/Casablanca", "2026-03-22T02:00:00Z", 0h, 1h},
      {"Pacific/Apia", "2011-12-30T10:00:00Z", -10h, 14h},
      {"America/St_Johns", "2026-03-08T05:30:00Z", -(3h + 30min), -(2h + 30min)},
      {"America/St_Johns", "1988-04-03T03:31:00Z", -(3h + 30min), -(1h + 30min)},
      {"Europe/London", "2026-03-29T01:00:00Z", 0h, 1h},
      {"Europe/London", "1971-10-31T02:00:00Z", 1h, 0h},
      {"Asia/Tehran", "2022-03-21T20:30:00Z", 3h + 30min, 4h + 30min},
      {"Asia/Tehran", "2022-09-21T19:30:00Z", 4h + 30min, 3h + 30min},
      {"Pacific/Chatham", "2026-09-26T14:00:00Z", 12h + 45min, 13h + 45min},
      {"Europe/Dublin", "2040-03-25T01:00:00Z", 0h, 1h},
      {"Africa/Cairo", "2045-04-27T22:00:00Z", 2h, 3h},
  };
  for (const Row& row : table) {
    CAPTURE(row.name);
    CAPTURE(row.at);
    const Tick at = tick(row.at);
    const Zone::Period before = zone(row.name)->period_at(at - 1s);
    const Zone::Period after = zone(row.name)->period_at(at);
    CHECK(before.offset == row.before);
    CHECK(after.offset == row.after);
    CHECK(before.end == at);
    CHECK(after.begin == at);
  }
  for (const char* at : {"1970-01-01T00:00:00Z", "2026-07-01T00:00:00Z", "2300-07-01T00:00:00Z"}) {
    CHECK(offset(*zone("Asia/Kolkata"), at) == 5h + 30min);
    CHECK(offset(*zone("UTC"), at) == 0h);
    CHECK(offset(*zone(""), at) == 0h);
  }
}

TEST_CASE("the periods of a zone follow one another without a gap") {
  for (const char* name : {"Europe/Rome", "Pacific/Apia", "Africa/Casablanca", "Asia/Tehran",
                           "America/Sao_Paulo", "Australia/Lord_Howe", "Europe/Dublin", "UTC"}) {
    CAPTURE(name);
    Zone::Period period = zone(name)->period_at(kFirstTick);
    CHECK(period.begin <= kFirstTick);
    while (period.end <= kLastTick) {
      REQUIRE(period.begin < period.end);
      const Zone::Period next = zone(name)->period_at(period.end);
      REQUIRE(next.begin == period.end);
      const Zone::Period last = zone(name)->period_at(next.end - 1s);
      REQUIRE((last.begin == next.begin && last.end == next.end && last.offset == next.offset));
      period = next;
    }
  }
}

TEST_CASE("the rule at the end of a file counts from its last change on") {
  const Tick since = tick("1996-10-27T01:00:00Z");
  const Zone slim = parsed(tzif({{since, 1}}, {2996, 3600}, "CET-1CEST,M3.5.0,M10.5.0/3"));
  CHECK(offset(slim, "1900-01-01T00:00:00Z") == 2996s);
  CHECK(offset(slim, "1996-10-27T00:59:59Z") == 2996s);
  CHECK(offset(slim, "1996-10-27T01:00:00Z") == 1h);
  CHECK(offset(slim, "2026-03-29T00:59:59Z") == 1h);
  CHECK(offset(slim, "2026-03-29T01:00:00Z") == 2h);
  CHECK(offset(slim, "9999-07-01T00:00:00Z") == 2h);

  const std::pair<const char*, std::pair<seconds, seconds>> rules[] = {
      // in January and July
      {"<+0530>-5:30", {5h + 30min, 5h + 30min}},
      {"<-03>3", {-3h, -3h}},
      {"NZST-12NZDT,M9.5.0,M4.1.0/3", {13h, 12h}},
      {"IST-1GMT0,M10.5.0,M3.5.0/1", {0h, 1h}},
      {"<+1030>-10:30<+11>-11,M10.1.0,M4.1.0", {11h, 10h + 30min}},
      {"EST5EDT,J60/2:30,J300", {-5h, -4h}},
      {"EST5EDT,59,299/-1", {-5h, -4h}},
      {"XXX3EDT4,0/0,J365/23", {-4h, -4h}},  // summer time all year (RFC 8536, 3.3.1)
      {"LLL-1:02:03", {1h + 2min + 3s, 1h + 2min + 3s}},
  };
  for (const auto& [rule, expected] : rules) {
    CAPTURE(rule);
    const Zone zone = parsed(tzif({}, {0}, rule));
    CHECK(offset(zone, "2027-01-15T00:00:00Z") == expected.first);
    CHECK(offset(zone, "2027-07-15T00:00:00Z") == expected.second);
  }
  // 29 February is no day of "J60", and the 60th of a count from 0.
  const Zone julian = parsed(tzif({}, {0}, "EST5EDT,J60/0,J300"));
  CHECK(julian.period_at(tick("2028-07-01T00:00:00Z")).begin == tick("2028-03-01T05:00:00Z"));
  const Zone counted = parsed(tzif({}, {0}, "EST5EDT,59/0,299"));
  CHECK(counted.period_at(tick("2028-07-01T00:00:00Z")).begin == tick("2028-02-29T05:00:00Z"));
  // Without a rule, the last change holds.
  CHECK(offset(parsed(tzif({{since, 1}}, {0, 7200}, "")), "2500-01-01T00:00:00Z") == 2h);
}

TEST_CASE("a file that is not understood is refused, never half read") {
  const Tick at = tick("2000-01-01T00:00:00Z");
  const std::string good = tzif({{at, 1}}, {0, 3600}, "CET-1");
  REQUIRE(zone_error(good) == "none");
  const std::string expected = "expected a TZif file (RFC 8536), got ";
  CHECK(zone_error("") == expected + "something else");
  CHECK(zone_error(std::string(100, 'x')) == expected + "something else");
  std::string version_1 = good;
  version_1[4] = '\0';
  CHECK(zone_error(version_1) == expected + "version 1, which ends in 2037");
  CHECK(zone_error(tzif({{at, 2}}, {0, 3600}, "CET-1")) ==
        expected + "a change to an offset that is not there");
  CHECK(zone_error(tzif({{at, 1}, {at, 0}}, {0, 3600}, "CET-1")) ==
        expected + "changes that are not in order");
  CHECK(zone_error(tzif({}, {100'000}, "CET-1")) == expected + "an offset of more than 26 hours");
  CHECK(zone_error(tzif({}, {}, "CET-1")) == expected + "one without offsets");
  CHECK(zone_error(tzif({}, {0}, "CET-1", 1)) ==
        expected + "one that counts leap seconds, as below right/");
  for (const char* rule : {"C-1", "CET", "CET-25", "CET-1CEST", "CET-1CEST,M3.5.0", "CET-1 ",
                           "CET-1CEST,M13.5.0,M10.5.0", "CET-1CEST,M3.6.0,M10.5.0",
                           "CET-1CEST,M3.5.7,M10.5.0", "CET-1CEST,J0,J365", "CET-1CEST,0,366",
                           "<CET-1", "CET-1CEST,M3.5.0/168,M10.5.0", "CET-1:60"}) {
    CAPTURE(rule);
    CHECK(zone_error(tzif({}, {0}, rule)) == expected + "the rule \"" + rule + '"');
  }
  for (std::size_t size = 0; size < good.size(); ++size) {
    CAPTURE(size);
    CHECK(zone_error(good.substr(0, size)) != "none");
  }
}

TEST_CASE("an unknown zone is refused with what to do") {
  Zones zones;
  const auto error = [&](const std::string& name) { return zones.find(name).error().message; };
  const std::string expected = R"(expected a time zone such as "Europe/Rome", got ")";
  CHECK(error("Europe/Roma") == expected + R"(Europe/Roma"; did you mean "Europe/Rome"?)");
  CHECK(error("Mars/Olympus_Mons") ==
        expected +
            R"(Mars/Olympus_Mons"; tzdata has no such zone, see timedatectl list-timezones)");
  CHECK(error("Europe").starts_with(expected + R"(Europe";)"));
  CHECK(error("localtime") ==
        expected + R"(localtime"; name the zone, since hosts may differ in theirs)");
  CHECK(error("/localtime") == expected + "/localtime\"");
  CHECK(error("tzdata.zi").starts_with(expected));
  for (const char* name : {"/etc/localtime", "../../../etc/localtime", "Europe/../Europe/Rome",
                           "Europe/Ro me", "Europe/Rome\n"}) {
    CHECK(error(name).starts_with(expected));
  }
  Zones none{"/nonexistent"};
  CHECK(none.find("Europe/Rome").error().message ==
        expected + R"(Europe/Rome"; is the package tzdata installed?)");
  CHECK(none.find("UTC").has_value());
}

TEST_CASE("a zone is read once, and again after forget(), so that an updated tzdata gets in") {
  const unit::TemporaryFolder folder;
  const auto write = [&](const std::string& rule) { folder.write("Here", tzif({}, {0}, rule)); };
  Zones zones{folder.path()};
  write("AAA-1");
  const auto before = *zones.find("Here");
  CHECK(offset(*before, "2026-01-01T00:00:00Z") == 1h);
  write("AAA-2");
  CHECK(*zones.find("Here") == before);
  zones.forget();
  CHECK(offset(**zones.find("Here"), "2026-01-01T00:00:00Z") == 2h);
  CHECK(offset(*before, "2026-01-01T00:00:00Z") == 1h);
}

TEST_SUITE_END();
