#include <doctest/doctest.h>

#include "client/queue.h"

namespace lictor::client {
namespace {

using namespace std::chrono_literals;

constexpr WallTime kNow{1'795'228'350'949ms};

TEST_CASE("retry writes the record as its producer wrote it") {
  const auto record = retried_record(
      R"({"record":{"taskType":"T","taskTaken":"false","n":1.50,"taskAttempt":3},"reason":"failed"})",
      kNow, false);
  REQUIRE(record);
  CHECK(*record == R"({"taskType":"T","taskTaken":"false","n":1.50})");
}

TEST_CASE("an unreadable record cannot be retried") {
  for (const char* letter : {R"({"raw":"not json"})", R"({"raw_base64":"AP8="})", "nonsense", "{}",
                             R"({"record":"text"})"}) {
    CAPTURE(letter);
    const auto record = retried_record(letter, kNow, false);
    REQUIRE_FALSE(record);
    CHECK(record.error().code == ErrorCode::kInvalid);
  }
}

TEST_CASE("a past expireAt is refused, or removed on request") {
  const auto letter = [](const std::string& expiry) {
    return R"({"record":{"taskType":"T","expireAt":)" + expiry + "}}";
  };
  const std::string past = letter("\"2026-11-21T02:00:00Z\"");
  CHECK(retried_record(past, kNow, false).error().code == ErrorCode::kInvalid);
  CHECK(*retried_record(past, kNow, true) == R"({"taskType":"T"})");
  const std::string future = letter("\"2026-11-22T02:00:00Z\"");
  CHECK(*retried_record(future, kNow, false) ==
        R"({"taskType":"T","expireAt":"2026-11-22T02:00:00Z"})");
}

TEST_CASE(
    "the number of a dead letter's copy is no part of the task's id, unless the record says so") {
  const auto task_of = [](const std::string& id, const std::string& record) {
    TaskInfo letter;
    letter.id = id;
    letter.record = "{\"record\":" + record + "}";
    return task_of_letter(letter);
  };
  CHECK(task_of("x", "{}") == "x");
  CHECK(task_of("x~2", "{}") == "x");
  CHECK(task_of("x~12", R"({"taskId":"x"})") == "x");
  CHECK(task_of("x~2", R"({"taskId":"x~2"})") == "x~2");
  CHECK(task_of("x~1", "{}") == "x~1");
  CHECK(task_of("x~02", "{}") == "x~02");
  CHECK(task_of("x~y", "{}") == "x~y");
  CHECK(task_of("x~", "{}") == "x~");
  CHECK(task_of("x~2", "[]") == "x");
}

}  // namespace
}  // namespace lictor::client
