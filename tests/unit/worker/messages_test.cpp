#include "worker/messages.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "contains.h"

namespace lictor::worker::test {

using namespace std::chrono_literals;

namespace {

std::string fault_of(const std::string& line) {
  const auto reply = parse_reply(line);
  return reply ? "none" : reply.error().message;
}

exec::Attempt some_attempt(std::string record) {
  exec::Attempt attempt;
  attempt.id = AttemptId{7};
  attempt.queue = "oracle";
  attempt.task_id = "4\"2";
  attempt.task_key = "oracleTask/4\"2";
  attempt.task_type = "Invoice";
  attempt.number = 2;
  attempt.fencing_token = 4711;
  attempt.record = std::make_shared<const std::string>(std::move(record));
  return attempt;
}

}  // namespace

TEST_CASE("a run is one line with everything of the attempt, however the record is laid out") {
  const auto deadline = WallTime{std::chrono::milliseconds{1'795'512'600'250}};
  const std::string line = run_line(
      some_attempt("{\n  \"taskPara\": {\"n\": 12345678901234567890123}\r\n}"), "7", deadline);
  CHECK(line.find('\n') == line.size() - 1);
  CHECK_FALSE(contains(line, "\r"));
  CHECK(nlohmann::json::parse(line).at("run") ==
        nlohmann::json::parse(
            R"({"protocol": 1, "attempt": "7", "id": "4\"2", "key": "oracleTask/4\"2",
                "type": "Invoice", "queue": "oracle", "number": 2, "fencingToken": 4711,
                "deadline": "2026-11-24T09:30:00.250Z",
                "task": {"taskPara": {"n": 12345678901234567890123}}})"));
  CHECK(contains(line, "12345678901234567890123"));  // as it was written
  CHECK_FALSE(
      nlohmann::json::parse(run_line(some_attempt("{}"), "7", {})).at("run").contains("deadline"));
}

TEST_CASE("replies are read, members that are not known or null are ignored") {
  const auto done = parse_reply(
      R"({"later":1,"done":{"attempt":"7","new":[],"result":{"n": 1e5},"commit":[],"output":"a\nb"}})");
  REQUIRE(done.has_value());
  CHECK(std::get<Done>(*done).attempt == "7");
  CHECK(std::get<Done>(*done).result == R"({"n": 1e5})");
  CHECK(std::get<Done>(*done).commit == "[]");
  CHECK(std::get<Done>(*done).output == "a\nb");
  const auto nothing =
      parse_reply(R"({"done":{"attempt":"7","result":null,"commit":null,"output":null}})").value();
  CHECK_FALSE(std::get<Done>(nothing).result);
  CHECK_FALSE(std::get<Done>(nothing).commit);

  const auto failed = parse_reply(
      R"({"failed":{"attempt":"7","error":"no\nspace","permanent":true,"retryIn":"1m30s"}})");
  REQUIRE(failed.has_value());
  CHECK(std::get<Failed>(*failed).error == "no\\nspace");
  CHECK(std::get<Failed>(*failed).permanent);
  CHECK(std::get<Failed>(*failed).retry_in == 90s);
  CHECK_FALSE(std::get<Failed>(*parse_reply(R"({"failed":{"attempt":"7"}})")).error.empty());

  const auto progress =
      parse_reply(R"({"progress":{"attempt":"7","done":40,"total":100,"text":"half"}})");
  REQUIRE(progress.has_value());
  CHECK(std::get<Progress>(*progress).fraction == doctest::Approx(0.4));
  CHECK(std::get<Progress>(*parse_reply(R"({"progress":{"attempt":"7","done":9,"total":0}})"))
            .fraction == 0);
  CHECK(std::get<Progress>(*parse_reply(R"({"progress":{"attempt":"7","done":9,"total":1}})"))
            .fraction == 1);
  CHECK(parse_reply("{\"ready\":{\"protocol\":1}}\r").has_value());
}

TEST_CASE("a line that is no reply is refused, with its fault") {
  struct Row {
    std::string line, fault;
  };
  const std::string deep(100'000, '[');
  const std::vector<Row> rows{
      {"", "expected"},
      {"hello", "expected"},
      {"null", "expected"},
      {"[]", "expected"},
      {"{", "expected"},
      {"{}", "got none of them"},
      {R"({"run":{}})", "got none of them"},
      {R"({"done":{"attempt":"7"}} {"done":{"attempt":"8"}})", "expected"},
      {R"({"done":{"attempt":"7"},"failed":{"attempt":"7"}})", "one message a line"},
      {R"({"done":{"attempt":"7"},"done":{"attempt":"7"}})", "one message a line"},
      {R"({"done":"7"})", "\"done\": expected an object"},
      {R"({"done":null})", "\"done\": expected an object"},
      {R"({"done":{}})", "\"attempt\""},
      {R"({"done":{"attempt":""}})", "\"attempt\""},
      {R"({"done":{"attempt":7}})", "\"attempt\": expected text, got 7"},
      {R"({"done":{"attempt":null}})", "\"attempt\""},
      {R"({"done":{"attempt":"7","output":{}}})", "\"output\": expected text"},
      {R"({"done":{"attempt":"7","result":tru}})", "expected"},
      {"{\"done\":{\"attempt\":\"\xff\"}}", ""},
      {R"({"done":{"attempt":"7","result":)" + deep, "expected"},
      {R"({"failed":{"attempt":"7","error":5}})", "\"error\": expected text"},
      {R"({"failed":{"attempt":"7","permanent":"true"}})", "\"permanent\": expected true or false"},
      {R"({"failed":{"attempt":"7","retryIn":10}})", "\"retryIn\""},
      {R"({"failed":{"attempt":"7","retryIn":"soon"}})", "\"retryIn\": expected a duration"},
      {R"({"progress":{"attempt":"7","done":"all"}})", "\"done\": expected a number"},
      {R"({"ready":{}})", "\"protocol\": expected a number"},
      {R"({"ready":{"protocol":"1"}})", "\"protocol\": expected a number"},
      {R"({"ready":{"protocol":2}})",
       "speaks version 2 of the protocol; this lictor speaks version 1"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.line.substr(0, 100));
    const std::string fault = fault_of(row.line);
    CHECK(fault != "none");
    CHECK(contains(fault, row.fault));
  }
}

TEST_CASE("a stream is cut into lines, wherever it is cut into reads") {
  LineReader lines;
  CHECK_FALSE(lines.next());
  lines.add("{\"a\":1}\n{\"b");
  CHECK(lines.next() == "{\"a\":1}");
  CHECK_FALSE(lines.next());
  lines.add("\":2}");
  CHECK_FALSE(lines.next());
  CHECK(lines.rest() == "{\"b\":2}");
  lines.add("\n\n{}\n");
  CHECK(lines.next() == "{\"b\":2}");
  CHECK(lines.next() == "");
  CHECK(lines.next() == "{}");
  CHECK_FALSE(lines.next());
  for (std::size_t i = 0; i < kMaxReplyBytes / 4096; ++i) {
    CHECK_FALSE(lines.is_too_long());
    lines.add(std::string(4096, 'x'));
    CHECK_FALSE(lines.next());
  }
  CHECK(lines.is_too_long());
}

}  // namespace lictor::worker::test
