#include <string>

#include <nlohmann/json.hpp>

#include "client/new_record.h"
#include "unit/contains.h"
#include "unit/refusal.h"

namespace lictor::client {
namespace {

using namespace std::chrono_literals;

constexpr WallTime kCompletedNow{1'795'228'350'949ms};

struct Lines {
  std::string type = "Notify";
  TaskIds ids{1};

  NewRecord take(const std::string& line) {
    auto task = complete_record(line, type, kCompletedNow, ids);
    REQUIRE_MESSAGE(task, (task ? "" : task.error().message));
    return *task;
  }
  std::string refuse(const std::string& line) {
    return refusal_of(complete_record(line, type, kCompletedNow, ids)).message;
  }
};

TEST_CASE("the members of a line are kept as written, except those that only lictor may set") {
  const std::string line =
      R"({"taskId":"42","taskTime":"1445599887","taskType":"Other","x":1.50,"x":[2, 3]})";
  CHECK(Lines{}.take(line).record == line);
  const NewRecord task = Lines{}.take(
      R"({"taskId":"a","taskTime":1,"taskType":"T","taskTaken":"true","taskAttempt":3,)"
      R"("taskClaim":{"node":"n"},"taskError":"e","taskLost":1,"taskRetryAt":"soon"})");
  CHECK(task.record == R"({"taskId":"a","taskTime":1,"taskType":"T","taskTaken":"false"})");
}

TEST_CASE("added and removed members leave valid JSON, with any white space") {
  Lines lines;
  const auto completed = [&](const std::string& line) {
    NewRecord task = lines.take(line);
    const auto record = nlohmann::ordered_json::parse(task.record);
    REQUIRE(record.at("taskId") == task.id);
    REQUIRE(record.at("taskType") == "Notify");
    CHECK(record.at("taskTime") == kCompletedNow.time_since_epoch().count());
    NewRecord later = task;
    later.restamp(kCompletedNow + 1ms);
    CHECK(nlohmann::ordered_json::parse(later.record).at("taskTime") ==
          (kCompletedNow + 1ms).time_since_epoch().count());
    return task.record.substr(task.record.find(R"("Notify")") + 8);
  };
  CHECK(completed(R"({ "x" : 1, "y":[ 1, 2 ] })") == R"(,"x":1,"y":[ 1, 2 ]})");
  CHECK(completed("{}") == "}");
  CHECK(completed("{ \t}") == "}");
  CHECK(completed(R"( {"x": 1} )") == R"(,"x":1})");
  CHECK(completed("\xef\xbb\xbf{\"x\": 1}") == R"(,"x":1})");
  CHECK(completed(R"({"x": 1, "taskLost": 2, "y": 3})") == R"(,"x":1,"y":3})");
  CHECK(completed(R"({"x": 1, "taskTaken": true})") == R"(,"x":1,"taskTaken":false})");
  CHECK(completed(R"({"taskTime": null, "x": "}"})") == R"(,"x":"}"})");
}

TEST_CASE("id, time and type are added where they are missing or null") {
  Lines lines;
  const NewRecord task = lines.take(R"({"taskPara":{}})");
  CHECK(task.record == R"({"taskId":")" + task.id +
                           R"(","taskTime":1795228350949,"taskType":"Notify","taskPara":{}})");
  const NewRecord other = lines.take(R"({"taskId":null,"taskTime":null,"taskType":null})");
  CHECK(other.record ==
        R"({"taskId":")" + other.id + R"(","taskTime":1795228350949,"taskType":"Notify"})");
  CHECK(other.id > task.id);
}

TEST_CASE("a generated time is replaced in place") {
  Lines lines;
  NewRecord task = lines.take(R"({"executeAt":5,"taskId":"1795228350949","taskType":"T"})");
  task.restamp(kCompletedNow + 1ms);
  CHECK(task.record ==
        R"({"taskTime":1795228350950,"executeAt":5,"taskId":"1795228350949","taskType":"T"})");
  NewTask made{.type = "T", .id = "a"};
  auto record = make_record(made, kCompletedNow, lines.ids).value();
  record.restamp(kCompletedNow + 2ms);
  CHECK(record.record.starts_with(R"({"taskId":"a","taskTime":1795228350951,"taskTaken")"));
}

TEST_CASE("the error for a bad line names the expected and the found value") {
  Lines lines;
  CHECK(lines.refuse("not json").starts_with("expected a JSON object, got a parse error"));
  CHECK(lines.refuse("[1]") == "expected a JSON object, got [1]");
  CHECK(contains(lines.refuse("{\"a\":\"\xff\"}"), "ill-formed UTF-8"));
  CHECK(lines.refuse(R"({"taskId":7})") == "taskId: expected a string, got 7");
  CHECK(lines.refuse(R"({"taskId":"x/../y"})") == R"(taskId: "x/../y" has the segment "..")");
  CHECK(
      lines.refuse(R"({"taskTime":"soon"})") ==
      R"(taskTime: expected seconds since the epoch or a time such as "2026-11-21T09:30:00Z", got "soon")");
  CHECK(lines.refuse(R"({"maxAttempts":0})").starts_with("maxAttempts: "));
  CHECK(Lines{""}.refuse("{}").starts_with("taskType: "));
}

}  // namespace
}  // namespace lictor::client
