#include "wire/record.h"

#include <utility>

#include <doctest/doctest.h>

#include "unit/contains.h"

using namespace lictor;
using namespace lictor::core;
using namespace lictor::wire;
using namespace std::chrono_literals;

namespace {

const Layout kRecordLayout = Layout::under("l/", "q");

StoredRecord read(std::string value) {
  return read_record(kRecordLayout, {"l/q/tasks/7", std::move(value), "", 5, 10, 11});
}
Task task(std::string value) {
  const StoredRecord record = read(std::move(value));
  if (const auto* bad = std::get_if<BadRecord>(&record)) FAIL(bad->error);
  return std::get<Task>(record);
}
std::string error(std::string value) {
  const StoredRecord record = read(std::move(value));
  const auto* bad = std::get_if<BadRecord>(&record);
  return bad == nullptr ? "" : bad->error;
}
// A record with one more member.
std::string with(const std::string& member) { return R"({"taskType":"T",)" + member + "}"; }

WallTime seconds(std::int64_t s) { return WallTime{std::chrono::seconds{s}}; }

Stamp claimed() {
  return {.taken = true,
          .attempt = 2,
          .lost = 1,
          .claim = Claim{"host \"a\"", "5e55-10", "a1-7", seconds(1'800'000'000)}};
}
Stamp retrying() {
  return {.attempt = 2,
          .retry_at = seconds(1'800'000'060) + 250ms,
          .error = "exit status 1: \"no\nluck\""};
}

}  // namespace

TEST_CASE("a queue's JSON pointer gives the serialKey of a task that has none of its own") {
  Layout layout = kRecordLayout;
  layout.serialize_by = "/taskPara/instance~1id";
  const auto serial_key = [&](const std::string& member) {
    const StoredRecord record = read_record(layout, {"l/q/tasks/7", with(member), "", 0, 10, 11});
    REQUIRE(std::holds_alternative<Task>(record));
    return std::get<Task>(record).serial_key;
  };
  CHECK(serial_key(R"("taskPara":{"instance/id":"db7"})") == "db7");
  CHECK(serial_key(R"("taskPara":{"instance/id":7})") == "7");
  CHECK(serial_key(R"("taskPara":{"instance/id":"db7"},"serialKey":"own")") == "own");
  for (const char* nothing :
       {R"("taskPara":{"instance/id":{}})", R"("taskPara":{"instance/id":null})",
        R"("taskPara":{})", R"("taskPara":[1])", R"("taskPara":"db7")"}) {
    CHECK(serial_key(nothing).empty());
  }
}

TEST_CASE("a whole record is read") {
  const Task t = task(R"({
  "taskId": "42", "taskTime": "1445599887", "taskTaken": "false",
  "taskType": "CreateTableSpace",
  "taskPara": {"instanceId": "db7", "initSize": "8000", "maxSize": "100000", "stepSize": "2000"}})");
  CHECK(t.key == "l/q/tasks/7");
  CHECK(t.id == "42");
  CHECK(t.type == "CreateTableSpace");
  CHECK(t.task_time == seconds(1445599887));
  CHECK_FALSE(t.stamp.taken);
  CHECK(t.create_index == 10);
  CHECK(t.modify_index == 11);
  CHECK(t.flags == 5);
  CHECK_FALSE(t.execute_at.has_value());
  CHECK(t.stamp == Stamp{});
}

TEST_CASE("a missing field has a default") {
  const Task t = task(R"({"taskType":"T"})");
  CHECK(t.id == "7");  // the key's part after the prefix
  CHECK_FALSE(t.task_time.has_value());
  CHECK(t.serial_key.empty());
  CHECK(task(with(R"("taskId":"")")).id == "7");
}

TEST_CASE("a field whose name is nearly one of lictor's is reported") {
  CHECK(misspelt_fields(R"({"taskType":"T","executeat":1,"serial_key":"a","mine":2})") ==
        "executeat: did you mean executeAt?, serial_key: did you mean serialKey?");
  CHECK(misspelt_fields(R"({"taskType":"T","expiresAt":1,"taskParam":2})") ==
        "expiresAt: did you mean expireAt?, taskParam: did you mean taskPara?");
  CHECK(misspelt_fields(R"({"taskType":"T","executeAt":1,"type":"x","time":2})").empty());
  const auto bad = read(R"({"tasktype":"T"})");
  REQUIRE(std::holds_alternative<core::BadRecord>(bad));
  CHECK(std::get<core::BadRecord>(bad).error.ends_with(
      "got nothing; tasktype: did you mean taskType?"));
}

TEST_CASE("taskTaken may be spelt in four ways") {
  for (const std::string text : {"true", "false", "\"true\"", "\"false\"", "null"}) {
    CHECK(task(with("\"taskTaken\":" + text)).stamp.taken == contains(text, "true"));
  }
  for (const char* text : {"1", "0", "\"yes\"", "\"True\"", "\"\"", "[]", "{}", "\" true\""}) {
    CHECK(error(with("\"taskTaken\":" + std::string{text})) ==
          R"(taskTaken: expected true, false, "true" or "false", got )" + std::string{text});
  }
}

TEST_CASE("times are seconds or milliseconds, whole or not, as numbers or strings, or RFC 3339") {
  const std::pair<const char*, WallTime> times[] = {
      {"0", seconds(0)},
      {"1445599887", seconds(1445599887)},
      {"\"1445599887\"", seconds(1445599887)},
      {"1795508611.5432101", WallTime{1795508611543ms}},  // as Python's time.time() gives it
      {"\"1795508611.54\"", WallTime{1795508611540ms}},
      {"1795508611.9996", seconds(1795508612)},
      {"1.7955086115e9", WallTime{1795508611500ms}},
      {"1.5", WallTime{1500ms}},
      {"-0.0", seconds(0)},
      {"99999999999", seconds(99999999999)},
      {"99999999999.5", WallTime{99999999999500ms}},
      {"100000000000", WallTime{100000000000ms}},
      {"100000000000.4", WallTime{100000000000ms}},
      {"\"1445599887123\"", WallTime{1445599887123ms}},
      {"253402300799999", WallTime{253402300799999ms}},
      {R"("2026-11-21T09:30:00+01:00")", seconds(1795249800)},
      {R"("2026-11-21T08:30:00.250Z")", WallTime{1795249800250ms}}};
  for (const auto& [text, time] : times) {
    CAPTURE(text);
    CHECK(task(with("\"taskTime\":" + std::string{text})).task_time == time);
    CHECK(task(with("\"executeAt\":" + std::string{text})).execute_at == time);
    CHECK(task(with("\"expireAt\":" + std::string{text})).expire_at == time);
  }
  for (const char* text :
       {"-1", "-0.5", "1e99", "\"\"", "\"soon\"", "\"inf\"", "\"nan\"", "\"0x10\"", "true", "[1]",
        "\"1 \"", "\"1.5.\"", "253402300800000", "99999999999999999999", "\"+5\""}) {
    CAPTURE(text);
    for (const std::string name : {"taskTime", "executeAt"}) {
      CHECK(
          error(with('"' + name + "\":" + text)) ==
          name +
              R"(: expected seconds since the epoch or a time such as "2026-11-21T09:30:00Z", got )" +
              text);
    }
  }
}

TEST_CASE("fields that override the configuration are read") {
  const Task t = task(with(R"("maxAttempts":5,"timeout":"10m","serialKey":"db7",)"
                           R"("backoff":{"initial":"2s","max":"1m","factor":1.5,"jitter":0})"));
  CHECK(t.max_attempts == 5U);
  CHECK(t.timeout == Duration{10min});
  CHECK(t.serial_key == "db7");
  CHECK(t.backoff == Backoff{2s, 1min, 1.5, 0});
  CHECK(task(with(R"("backoff":{})")).backoff == Backoff{});
}

TEST_CASE("null means not set, for every field but the parameters") {
  const Task t = task(
      R"({"taskType":"T","taskId":null,"taskTime":null,"executeAt":null,"expireAt":null,)"
      R"("serialKey":null,"maxAttempts":null,"timeout":null,"backoff":null,"taskTaken":null,)"
      R"("taskAttempt":null,"taskLost":null,"taskRetryAt":null,"taskClaim":null,"taskError":null,)"
      R"("taskPara":null})");
  CHECK(t.id == "7");
  CHECK(t.stamp == Stamp{});
}

TEST_CASE("an unreadable record's error says which field, what was expected and what came") {
  const std::string type = "taskType: expected a string that names the kind of task, got nothing";
  const std::pair<std::string, std::string> table[] = {
      {"",
       "expected a JSON object, got a parse error at line 1, column 1: syntax error while parsing "
       "value - unexpected end of input; expected '[', '{', or a literal"},
      {"soon",
       "expected a JSON object, got a parse error at line 1, column 1: syntax error while parsing "
       "value - invalid literal; last read: 's'"},
      {"{\"a\":1",
       "expected a JSON object, got a parse error at line 1, column 7: syntax error while parsing "
       "object - unexpected end of input; expected '}'"},
      {"{} x",
       "expected a JSON object, got a parse error at line 1, column 4: syntax error while parsing "
       "value - invalid literal; last read: '{} x'; expected end of input"},
      {"[1]", "expected a JSON object, got [1]"},
      {"\"text\"", "expected a JSON object, got \"text\""},
      {"null", "expected a JSON object, got null"},
      {"{\"taskType\":\"\xff\"}",
       "expected a JSON object, got a parse error at line 1, column 14: syntax error while parsing "
       "value - invalid string: ill-formed UTF-8 byte; last read: '\"\\xff'"},
      {std::string("{\"taskType\":\"T\"}\0x", 18), "expected a JSON object, got a NUL byte"},
      {"\xef\xbb\xbf\xef\xbb\xbf{\"taskType\":\"T\"}",
       "expected a JSON object, got two byte order marks"},
      {with(R"("x": 1e400)"), "expected a JSON object, got a number overflow parsing '1e400'"},
      {"{}", type},
      {R"({"taskType":""})", R"(taskType: expected a string that names the kind of task, got "")"},
      {R"({"taskType":null})", type},
      {R"({"taskType":5})", "taskType: expected a string, got 5"},
      {with(R"("taskId":7)"), "taskId: expected a string, got 7"},
      {with(R"("serialKey":["a"])"), R"(serialKey: expected a string, got ["a"])"},
      {with(R"("executeAt":"2026-11-31T09:30:00Z")"),
       "executeAt: expected seconds since the epoch or a time such as \"2026-11-21T09:30:00Z\", "
       "got "
       "\"2026-11-31T09:30:00Z\": there is no such day"},
      {with(R"("maxAttempts":0)"),
       "maxAttempts: expected a whole number from 1 to 4294967295, got 0"},
      {with(R"("maxAttempts":"3")"),
       R"(maxAttempts: expected a whole number from 1 to 4294967295, got "3")"},
      {with(R"("maxAttempts":4294967296)"),
       "maxAttempts: expected a whole number from 1 to 4294967295, got 4294967296"},
      {with(R"("taskAttempt":-1)"),
       "taskAttempt: expected a whole number from 0 to 4294967295, got -1"},
      {with(R"("timeout":10)"),
       R"(timeout: expected a duration such as "90s", "10m" or "2h", at most 10 years, got 10)"},
      {with(R"("timeout":"10")"),
       R"(timeout: expected a duration such as "90s", "10m" or "2h", at most 10 years, got "10")"},
      {with(R"("backoff":"1s")"),
       R"(backoff: expected an object such as {"initial": "1s", "max": "5m"}, got "1s")"},
      {with(R"("backoff":{"factor":0.5})"),
       "backoff: expected factor to be a number from 1 to 100, got 0.5"},
      {with(R"("backoff":{"jitter":"a"})"),
       R"(backoff: expected jitter to be a number from 0 to 1, got "a")"},
      {with(R"("backoff":{"intial":"1s"})"),
       R"(backoff: expected initial, max, factor or jitter, got "intial")"},
  };
  for (const auto& [record, text] : table) {
    CAPTURE(record);
    CHECK(error(record) == text);
  }
}

TEST_CASE("a record with a byte order mark is read and rewritten") {
  const std::string record = "\xef\xbb\xbf{\"taskType\":\"T\",\"x\":1}";
  CHECK(task(record).type == "T");
  CHECK(restamp_record(record, {}) == R"({"taskType":"T","x":1,"taskTaken":false})");
}

TEST_CASE("fields that lictor wrote are read back") {
  for (const Stamp& stamp : {claimed(), retrying(), Stamp{}}) {
    Stamp back = task(restamp_record(R"({"taskType":"T"})", stamp)).stamp;
    if (!stamp.error.empty()) {
      CHECK(back.error == "exit status 1: \"no\\nluck\"");  // on one line
      back.error = stamp.error;
    }
    CHECK(back == stamp);
  }
}

TEST_CASE("a counter that a stranger wrote has room to go on") {
  const Task t = task(R"({"taskType":"T","taskAttempt":4294967295,"taskLost":4294967295})");
  CHECK(t.stamp.attempt == 1'000'000'000);
  CHECK(t.stamp.lost == 1'000'000'000);
}

TEST_CASE("a rewrite keeps what the producer wrote, to the byte") {
  const std::string unknown =
      R"("big":123456789012345678901234567890,"e":1.0e+5,"neg":-0.0,"dup":1,"dup":2,)"
      R"("nested":{ "a" : [ 1,{"b":"}],\"{"} , [] ] },"esc":"\u00e4\/\n","taskPara":{"taskTaken":"x"})";
  const std::string record = "{\"taskType\":\"T\"," + unknown + "}";
  CHECK(restamp_record(record, Stamp{}) ==
        R"({"taskType":"T",)" + unknown + R"(,"taskTaken":false})");
  CHECK(unstamped_record(record) == record);
}

TEST_CASE("taskTaken keeps its place and its form") {
  const Stamp taken{.taken = true};
  const std::pair<const char*, const char*> table[] = {
      {R"({"taskTaken":"false","taskType":"T"})", R"({"taskTaken":"true","taskType":"T"})"},
      {R"({"taskTaken":false,"taskType":"T"})", R"({"taskTaken":true,"taskType":"T"})"},
      {R"({"taskTaken":null,"taskType":"T"})", R"({"taskTaken":true,"taskType":"T"})"},
      {R"({"task\u0054aken":"false","taskType":"T"})",
       R"({"task\u0054aken":"true","taskType":"T"})"},
      {R"({"taskTaken":"false","taskType":"T","taskTaken":true})",
       R"({"taskTaken":"true","taskType":"T"})"},
      {"\t{ \"taskTaken\" : \"false\" ,\n\"taskType\" :\"T\",\n \"x\" : 1 } ",
       "{\"taskTaken\" : \"true\" ,\n\"taskType\" :\"T\",\n \"x\" : 1}"},
      {"{\"a\": 1, \"taskTaken\": false , \"taskLost\": 1, \"taskType\": \"T\" }",
       "{\"a\": 1, \"taskTaken\": true,\"taskType\": \"T\"}"},
      {"{\"taskType\": \"T\", \"taskTaken\": false }",
       "{\"taskType\": \"T\", \"taskTaken\": true}"},
      {R"({"a": 1, "taskError": "e", "b": 2, "taskType": "T", "taskLost": 1})",
       R"({"a": 1,"b": 2, "taskType": "T","taskTaken":true})"},
      {"{}", R"({"taskTaken":true})"},
  };
  for (const auto& [record, rewritten] : table) {
    CAPTURE(record);
    CHECK(restamp_record(record, taken) == rewritten);
  }
}

TEST_CASE("a job gets the producer's record, whoever has tried it before") {
  for (const char* record :
       {R"({"taskType":"T","x": 1})", R"({"taskTaken" : "false", "taskType":"T"})",
        R"({"taskType":"T","taskTaken":false,"a":{"taskLost":1}})"}) {
    CAPTURE(record);
    CHECK(unstamped_record(record) == record);
    const core::Task fresh = task(record);
    CHECK(unstamped_record(fresh) == fresh.record);  // no copy
    const std::string taken = unstamped_record(restamp_record(record, claimed()));
    CHECK(*unstamped_record(task(restamp_record(record, claimed()))) == taken);
    CHECK(unstamped_record(restamp_record(record, retrying())) == taken);
    CHECK(
        taken.starts_with(std::string_view{record}.substr(0, std::string_view{record}.size() - 1)));
    CHECK(task(taken).stamp == Stamp{});
  }
  CHECK(unstamped_record(R"({"taskTaken":"true","taskType":"T"})") ==
        R"({"taskTaken":"false","taskType":"T"})");
  CHECK(*unstamped_record(task("\xef\xbb\xbf {\"taskType\":\"T\"}\n")) == R"({"taskType":"T"})");
}

TEST_CASE("a claim and a retry look like this") {
  CHECK(restamp_record(R"({"taskType":"T","taskTaken":"false"})", claimed()) ==
        R"({"taskType":"T","taskTaken":"true","taskAttempt":2,"taskLost":1,)"
        R"("taskClaim":{"node":"host \"a\"","session":"5e55-10","nonce":"a1-7",)"
        R"("since":"2027-01-15T08:00:00.000Z"}})");
  CHECK(restamp_record(R"({"taskType":"T"})", retrying()) ==
        R"({"taskType":"T","taskTaken":false,"taskAttempt":2,)"
        R"("taskRetryAt":"2027-01-15T08:01:00.250Z","taskError":"exit status 1: \"no\\nluck\""})");
}

TEST_CASE("of two rewrites the last one counts") {
  const char* records[] = {
      R"({"taskType":"T"})", R"({"taskTaken":"false","taskType":"T","x":[1, 2]})",
      R"({"taskType":"T","taskAttempt":9,"taskTaken":true,"y":{},"taskClaim":{"node":"z"}})",
      R"({"taskTaken":null,"taskTaken":"true","taskType":"T","taskError":"e","z":1})", "{}"};
  for (const char* record : records) {
    for (const Stamp& first : {claimed(), retrying(), Stamp{}}) {
      for (const Stamp& second : {claimed(), retrying(), Stamp{}}) {
        CHECK(restamp_record(restamp_record(record, first), second) ==
              restamp_record(record, second));
      }
    }
  }
}

TEST_CASE("a foreign taskClaim is somebody else's, whatever its form") {
  CHECK_FALSE(task(with(R"("taskClaim":"me")")).stamp.claim.has_value());
  CHECK(task(with(R"("taskClaim":{"nonce":5})")).stamp.claim == Claim{});
}

TEST_CASE("JSON nested 100,000 deep is read, and rewritten") {
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  for (const char* name : {"taskPara", "taskClaim", "x"}) {
    const std::string record = with('"' + std::string{name} + "\":" + deep);
    CHECK(task(record).type == "T");
    CHECK(restamp_record(record, claimed()).size() > 150);
  }
  CHECK(error(with("\"backoff\":{\"factor\":" + deep + "}")).starts_with("backoff: expected"));
  CHECK_FALSE(error(std::string(100'000, '{')).empty());
}

TEST_CASE("a dead letter holds the record as its producer wrote it") {
  BuryOp op{
      .key = "l/q/tasks/a \"b\"",
      .record = std::make_shared<const std::string>(
          R"({"taskType":"T","taskTaken":"true","x":1.0,"taskAttempt":2,"taskError":"old"})")};
  op.stamp.attempt = 3;
  op.stamp.lost = 1;
  op.reason = "failed";
  op.error = "exit status 1";
  op.output_tail = "line \xff\n";
  op.at = seconds(1'800'000'000);
  CHECK(dead_letter(op, "host-a") ==
        R"({"key":"l/q/tasks/a \"b\"","record":{"taskType":"T","taskTaken":"false","x":1.0},)"
        R"("reason":"failed",)"
        R"("error":"exit status 1","attempts":3,"lost":1,"output_tail":"line )"
        "\xef\xbf\xbd"
        R"(\n","at":"2027-01-15T08:00:00.000Z","node":"host-a"})");
}

TEST_CASE("a dead letter holds an unreadable record as text, or in base64") {
  BuryOp op{.key = "l/q/tasks/a", .readable = false, .reason = "unreadable"};
  const auto start = [&](const std::string& bytes) {
    op.record = std::make_shared<const std::string>(bytes);
    const std::string text = dead_letter(op, "a");
    return text.substr(0, text.find(",\"reason\""));
  };
  CHECK(start("soon \"x\"") == R"({"key":"l/q/tasks/a","raw":"soon \"x\"")");
  CHECK(start("") == R"({"key":"l/q/tasks/a","raw":"")");
  CHECK(start("\xff\xfe") == R"({"key":"l/q/tasks/a","raw_base64":"//4=")");
  CHECK(start(std::string(30, '\x01')) ==
        R"({"key":"l/q/tasks/a","raw_base64":"AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEB")");
}
