#include "wire/schedule_record.h"

#include <string>
#include <utility>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

using namespace lictor;
using namespace lictor::wire;
using namespace std::chrono_literals;
using schedule::Missed;
using schedule::tick_text;

namespace schedule_record_test {
namespace {

Result<schedule::Definition> try_read(const std::string& text) {
  static schedule::Zones zones;
  return read_schedule("backup", text, zones);
}

schedule::Definition read(const std::string& text) {
  auto record = try_read(text);
  REQUIRE_MESSAGE(record, record.error().message);
  return *std::move(record);
}

std::string error(const std::string& text) {
  const auto record = try_read(text);
  return record ? "none" : record.error().message;
}

// A record with these members besides its task.
std::string with(const std::string& members) {
  return "{" + members + R"(,"task":{"taskType":"Backup"}})";
}

schedule::Tick tick(const std::string& text) { return *schedule::parse_tick(text); }

std::string next(const schedule::Definition& record, const std::string& after) {
  const auto found = record.schedule.next_after(tick(after));
  return found ? tick_text(*found) : "none";
}

const schedule::Tick kTick = tick("2026-11-24T09:30:00Z");

}  // namespace

TEST_CASE("an expression of other dialects may hold the zone, or every") {
  const auto first = [](const std::string& members) {
    return next(read(with(members)), "2026-11-24T09:31:00Z");
  };
  for (const char* name : {"CRON_TZ", "TZ"}) {
    CAPTURE(name);
    const std::string cron = "\"cron\":\"" + std::string{name} + "=Europe/Rome  30 2 * * *\"";
    CHECK(first(cron) == "2026-11-25T01:30:00Z");
    CHECK(first(R"("timezone":"Europe/Rome",)" + cron) == "2026-11-25T01:30:00Z");
    CHECK(error(with(cron + R"(,"timezone":"Europe/Paris")")) ==
          "timezone: expected the zone that cron names, Europe/Rome, got Europe/Paris");
  }
  CHECK(error(with(R"("cron":"CRON_TZ=Mars 30 2 * * *")")).starts_with("timezone: "));
  CHECK(error(with(R"("cron":"CRON_TZ=UTC")")).starts_with("cron: expected five fields"));
  CHECK(first(R"("cron":"@every 5m")") == "2026-11-24T09:35:00Z");
  CHECK(first(R"("cron":"@every 5m")") == first(R"("every":"5m")"));
  CHECK(error(with(R"("cron":"@every 5m","every":"5m")")) ==
        "expected one of cron, every and at, got cron and every");
  CHECK(error(with(R"("cron":"@every soon")")).starts_with("cron: expected a duration"));
}

TEST_CASE("a schedule with a cron expression is read, and makes a task a tick") {
  const schedule::Definition record = read(R"({"cron": "*/5 * * * *", "timezone": "Europe/Rome",
 "task": {"taskType": "Backup", "taskPara": {"host": "db7", "at": "{tick}"}},
 "missed": "once", "overlap": "skip"})");
  CHECK(next(record, "2026-11-24T09:31:00Z") == "2026-11-24T09:35:00Z");
  CHECK(record.missed.policy == Missed::Policy::kOnce);
  CHECK(record.overlap == schedule::Overlap::kSkip);
  CHECK(record.jitter == 0ms);
  CHECK_FALSE(record.paused);
  CHECK_FALSE(record.last_tick.has_value());
  CHECK(tick_task("backup", record, kTick) ==
        R"({"taskType": "Backup", "taskPara": {"host": "db7", "at": "2026-11-24T09:30:00Z"},)"
        R"("executeAt":"2026-11-24T09:30:00Z"})");
}

TEST_CASE("each field of a schedule is read") {
  const schedule::Definition record = read(
      with(R"("every":"90s","start":"2026-11-24T09:30:07Z","end":1800000000,"jitter":"1.5s",)"
           R"("missed":"all","missedLimit":3,"missedMaxAge":"2h","overlap":"queue","paused":true,)"
           R"("lastTick":"2026-11-24T09:31:37Z","note":"kept","timezone":null)"));
  CHECK(next(record, "2026-11-24T00:00:00Z") == "2026-11-24T09:30:07Z");
  CHECK(next(record, "2026-11-24T09:30:07Z") == "2026-11-24T09:31:37Z");
  CHECK(next(record, "2027-01-15T08:00:00Z") == "none");
  CHECK(record.jitter == 1500ms);
  CHECK(record.missed.policy == Missed::Policy::kAll);
  CHECK(record.missed.limit == 3);
  CHECK(record.missed.max_age == 2h);
  CHECK(record.overlap == schedule::Overlap::kQueue);
  CHECK(record.paused);
  CHECK(record.last_tick == tick("2026-11-24T09:31:37Z"));
  const schedule::Definition listed =
      read(with(R"("at":["2026-11-24T10:30:00+01:00",1800000000])"));
  CHECK(next(listed, "2026-01-01T00:00:00Z") == "2026-11-24T09:30:00Z");
  CHECK(next(listed, "2026-11-24T09:30:00Z") == "2027-01-15T08:00:00Z");
  const schedule::Definition in_utc = read(with(R"("cron":"30 9 * * *")"));
  CHECK(next(in_utc, "2026-07-01T00:00:00Z") == "2026-07-01T09:30:00Z");
}

TEST_CASE("a schedule that cannot be read says where, what was expected and what was found") {
  const std::pair<std::string, std::string> table[] = {
      {"", "expected a JSON object, got"},
      {"[]", "expected a JSON object, got"},
      {"\xff", "expected a JSON object, got a parse error"},
      {with(R"("cron":"0 24 * * *")"), R"(cron: hour: expected 0 to 23, got "24")"},
      {with(R"("cron":"0 0 30 2 *")"),
       "cron: never fires: expected a day that one of the months "
       "has, got \"0 0 30 2 *\""},
      {with(R"("cron":5)"), "cron: expected a string, got 5"},
      {with(R"("timezone":"UTC")"), "expected one of cron, every and at, got none of them"},
      {with(R"("cron":"@daily","every":"1h")"),
       "expected one of cron, every and at, got cron and every"},
      {with(R"("cron":"@daily","timezone":"Europe/Roma")"),
       R"(timezone: expected a time zone such as "Europe/Rome", got "Europe/Roma"; did you mean )"
       R"("Europe/Rome"?)"},
      {with(R"("every":"0s")"), R"(every: expected 1s or more, got "0s")"},
      {with(R"("every":"500ms")"),
       R"(every: expected a duration in whole seconds such as "90s", got "500ms")"},
      {with(R"("every":60)"),
       R"(every: expected a duration such as "90s", "10m" or "2h", at most 10 years, got 60)"},
      {with(R"("at":"2026-11-24T09:30:00Z")"),
       R"(at: expected a list of times such as ["2026-11-24T09:30:00Z"], got )"
       R"("2026-11-24T09:30:00Z")"},
      {with(R"("at":[])"), "at: expected at least one time, got none"},
      {with(R"("at":["soon"])"),
       R"(at: expected seconds since the epoch or a time such as "2026-11-21T09:30:00Z", got )"
       R"("soon")"},
      {with(R"("at":[1.5])"), "at: expected a time in whole seconds, got 1.5"},
      {with(R"("every":"1h","end":"2026-02-30T00:00:00Z")"),
       R"(end: expected seconds since the epoch or a time such as "2026-11-21T09:30:00Z", got )"
       R"("2026-02-30T00:00:00Z": there is no such day)"},
      {with(R"("every":"1h","start":1800000000,"end":1700000000)"),
       R"(end: expected a time from start (2027-01-15T08:00:00Z) on, got "2023-11-14T22:13:20Z")"},
      {with(R"("every":"1h","missed":"twice")"),
       R"(missed: expected "skip", "once" or "all", got "twice")"},
      {with(R"("every":"1h","missedLimit":1001)"),
       "missedLimit: expected a whole number from 0 to 1000, got 1001"},
      {with(R"("every":"1h","overlap":true)"),
       R"(overlap: expected "skip", "queue" or "allow", got true)"},
      {with(R"("every":"1h","paused":"yes")"), R"(paused: expected true or false, got "yes")"},
      {with(R"("every":"1h","lastTick":"2026-11-24T09:30:00.5Z")"),
       R"(lastTick: expected a time in whole seconds, got "2026-11-24T09:30:00.5Z")"},
      {R"({"every":"1h"})", "task: expected a task's record, got nothing"},
      {R"({"every":"1h","task":[]})", "task: expected a task's record, a JSON object, got []"},
      {R"({"every":"1h","task":{}})",
       "task: taskType: expected a string that names the kind of task, got nothing"},
      {R"({"every":"1h","task":{"taskType":"T","timeout":5}})",
       R"(task: timeout: expected a duration such as "90s", "10m" or "2h", at most 10 years, got 5)"},
      {R"({"every":"1h","task":{"taskType":"T","executeAt":1800000000}})",
       "task: executeAt: expected none, since each tick sets it, got 1800000000"},
  };
  for (const auto& [text, message] : table) {
    CAPTURE(text);
    const std::string said = error(text);
    CHECK_MESSAGE(said.substr(0, message.size()) == message, said);
  }
}

TEST_CASE("the template's strings have the tick in the place of {tick}") {
  const schedule::Definition record = read(R"({"every":"1h","task":{"taskType":"T",
    "taskId":"nightly-{tick}","taskPara":{"a":["{tick} and {tick}"],"{tick}":1,"b":"{ tick }"}}})");
  const auto task = nlohmann::json::parse(tick_task("backup", record, kTick));
  CHECK(task["taskId"] == "nightly-2026-11-24T09:30:00Z");
  CHECK(task["taskPara"] ==
        nlohmann::json::parse(R"({"a":["2026-11-24T09:30:00Z and 2026-11-24T09:30:00Z"],)"
                              R"("2026-11-24T09:30:00Z":1,"b":"{ tick }"})"));
  // A large template takes no longer than it must.
  std::string many;
  for (int i = 0; i < 50'000; ++i) many += "{tick}";
  const schedule::Definition large =
      read(R"({"every":"1h","task":{"taskType":"T","taskPara":")" + many + R"("}})");
  CHECK(tick_task("backup", large, kTick).size() > 50'000 * tick_text(kTick).size());
  // Numbers and the like stay to the byte.
  const schedule::Definition exact =
      read(R"({"every":"1h","task":{"taskType":"T","n":123456789012345678901234567890,"n":1.0}})");
  CHECK(tick_task("backup", exact, kTick) ==
        R"({"taskType":"T","n":123456789012345678901234567890,"n":1.0,)"
        R"("executeAt":"2026-11-24T09:30:00Z"})");
}

TEST_CASE("a template is no claim: lictor's own fields are removed") {
  const schedule::Definition record = read(
      R"({"every":"1h","task":{"taskTaken":"true","taskType":"T","taskAttempt":3,"taskLost":1}})");
  CHECK(tick_task("backup", record, kTick) ==
        R"({"taskTaken":"false","taskType":"T","executeAt":"2026-11-24T09:30:00Z"})");
}

TEST_CASE("a name with the sign that comes before the tick is refused") {
  schedule::Zones zones;
  CHECK(read_schedule("db/7", with(R"("every":"1h")"), zones).has_value());
  CHECK_FALSE(read_schedule("db@7", with(R"("every":"1h")"), zones).has_value());
}

TEST_CASE("jitter delays executeAt, and the tick keeps its name") {
  const schedule::Definition record =
      read(R"({"every":"1h","jitter":"1h","task":{"taskType":"T","taskPara":"{tick}"}})");
  CHECK(tick_task("backup", record, kTick) ==
        R"({"taskType":"T","taskPara":"2026-11-24T09:30:00Z",)"
        R"("executeAt":"2026-11-24T09:33:32.352Z"})");
}

TEST_CASE("queued ticks share a serialKey, unless the template has one") {
  const auto serial_key = [](const std::string& member) -> std::string {
    const schedule::Definition record =
        read(R"({"every":"1h","overlap":"queue","task":{"taskType":"T")" + member + "}}");
    const auto task = nlohmann::json::parse(tick_task("a \"b\"", record, kTick));
    return task["serialKey"];
  };
  CHECK(serial_key("") == "schedule/a \"b\"");
  CHECK(serial_key(R"(,"serialKey":null)") == "schedule/a \"b\"");
  CHECK(serial_key(R"(,"serialKey":"db7")") == "db7");
}

TEST_CASE("lastTick is rewritten, and everything else stays to the byte") {
  const std::string spaced =
      " {\n  \"cron\": \"@daily\",\n  \"x\": 123456789012345678901234567890, \"x\": \"\\u00e9\",\n "
      " \"task\": "
      "{\"taskType\": \"T\"}\n}\n";
  const std::string first = with_last_tick(spaced, kTick, {});
  CHECK(first ==
        " {\n  \"cron\": \"@daily\",\n  \"x\": 123456789012345678901234567890, \"x\": "
        "\"\\u00e9\",\n  \"task\": "
        "{\"taskType\": \"T\"},\"lastTick\":\"2026-11-24T09:30:00Z\"\n}\n");
  CHECK(read(first).last_tick == kTick);
  CHECK(with_last_tick(first, kTick, {}) == first);
  const std::string second = with_last_tick(first, kTick + 24h, {});
  CHECK(read(second).last_tick == kTick + 24h);
  CHECK(with_last_tick(second, kTick, {}) == first);
  // In its place, however often it is there.
  CHECK(with_last_tick(R"({"lastTick" : null, "every":"1h","lastTick":1})", kTick, {}) ==
        R"({"lastTick" : "2026-11-24T09:30:00Z", "every":"1h","lastTick":"2026-11-24T09:30:00Z"})");
  CHECK(with_last_tick("{}", kTick, "a@b") ==
        R"({"lastTick":"2026-11-24T09:30:00Z","lastTask":"a@b"})");
  CHECK(with_last_tick("{}", kTick, {}) == R"({"lastTick":"2026-11-24T09:30:00Z"})");
  CHECK(with_paused(R"({"every":"1h","paused":false})", true) == R"({"every":"1h","paused":true})");
  CHECK(with_paused(R"({"every":"1h"})", true) == R"({"every":"1h","paused":true})");
}

TEST_CASE("the configuration's fields differ from those that leader and operator add") {
  const std::string ours = as_configured(R"({"every":"1h","task":{"taskType":"T"}})");
  CHECK(ours == R"({"every":"1h","task":{"taskType":"T"},"fromConfig":true})");
  const std::string configured = read(ours).configured;
  CHECK_FALSE(configured.empty());
  CHECK(read(with_paused(with_last_tick(ours, kTick, "a@b"), true)).configured == configured);
  CHECK(read(as_configured(R"({"every":"2h","task":{"taskType":"T"}})")).configured != configured);
  CHECK(read(as_configured(R"({"every":"1h","jitter":"1m","task":{"taskType":"T"}})")).configured !=
        configured);
  CHECK(read(R"({"every":"1h","task":{"taskType":"T"}})").configured.empty());
  CHECK(read(R"({"every":"1h","task":{"taskType":"T"},"fromConfig":false})").configured.empty());
  CHECK(has_member(ours, "every"));
  CHECK_FALSE(has_member(R"({"paused":null})", "paused"));
}

}  // namespace schedule_record_test
