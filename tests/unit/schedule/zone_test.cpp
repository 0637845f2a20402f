#include "schedule/zone.h"

#include <filesystem>

#include "temporary_folder.h"
#include "texts.h"

namespace lictor::schedule {
namespace {

using namespace std::chrono_literals;
using std::chrono::seconds;

seconds offset(const Zone& zone, const std::string& at) { return zone.period_at(tick(at)).offset; }

TEST_CASE("zones change their clocks when the tz database says so") {
  struct Change {
    const char* name;
    const char* at;
    seconds before, after;
  };
  const Change table[] = {
      {"Europe/Rome", "2026-03-29T01:00:00Z", 1h, 2h},
      {"Europe/Rome", "2026-10-25T01:00:00Z", 2h, 1h},
      {"Europe/Rome", "2050-03-27T01:00:00Z", 1h, 2h},  // by the rule at the end of the file
      {"America/New_York", "2199-03-10T07:00:00Z", -5h, -4h},
      {"Australia/Lord_Howe", "2026-10-03T15:30:00Z", 10h + 30min, 11h},
      {"Asia/Kolkata", "1945-10-14T17:30:00Z", 6h + 30min, 5h + 30min},
      {"Pacific/Apia", "2011-12-30T10:00:00Z", -10h, 14h},
      {"America/St_Johns", "1988-04-03T03:31:00Z", -(3h + 30min), -(1h + 30min)},
      {"Pacific/Chatham", "2026-09-26T14:00:00Z", 12h + 45min, 13h + 45min},
      {"Africa/Cairo", "2045-04-27T22:00:00Z", 2h, 3h},
  };
  for (const Change& row : table) {
    INFO(row.name, ", ", row.at);
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
                           "Europe//Rome", "Europe/Ro me", "Europe/Rome\n", "posixrules"}) {
    CHECK(error(name).starts_with(expected));
  }
  Zones none{"/nonexistent"};
  CHECK(none.find("Europe/Rome").error().message ==
        expected + R"(Europe/Rome"; is the package tzdata installed?)");
  CHECK(none.find("UTC").has_value());
}

TEST_CASE("a zone is read once, and again after forget(), so that an updated tzdata gets in") {
  const unit::TemporaryFolder folder;
  const auto install = [&](const std::string& zone) {
    std::filesystem::copy_file("/usr/share/zoneinfo/" + zone, folder.path() + "/Here",
                               std::filesystem::copy_options::overwrite_existing);
  };
  Zones zones{folder.path()};
  install("Asia/Kolkata");
  const auto before = *zones.find("Here");
  CHECK(offset(*before, "2026-01-01T00:00:00Z") == 5h + 30min);
  install("Asia/Tokyo");
  CHECK(*zones.find("Here") == before);
  zones.forget();
  CHECK(offset(**zones.find("Here"), "2026-01-01T00:00:00Z") == 9h);
  CHECK(offset(*before, "2026-01-01T00:00:00Z") == 5h + 30min);

  folder.write("Bad", "TZif2");
  CHECK_FALSE(zones.find("Bad"));
}

}  // namespace
}  // namespace lictor::schedule
