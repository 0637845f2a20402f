#include "cli/new_task.h"

#include <string>

#include <doctest/doctest.h>

#include "unit/refusal.h"

namespace lictor::cli {
namespace {

using namespace std::chrono_literals;

constexpr WallTime kNow{1'795'228'350'949ms};

std::string record_of(const TaskText& text) {
  client::TaskIds ids{1};
  const auto task = new_task(text, kNow, ids);
  REQUIRE_MESSAGE(task, (task ? "" : task.error().message));
  return task->record;
}

std::string error_of(const TaskText& text) {
  client::TaskIds ids{1};
  const Error error = refusal_of(new_task(text, kNow, ids));
  CHECK(error.code == ErrorCode::kInvalid);
  return error.message;
}

TaskText text_of(const std::string& type) {
  TaskText text;
  text.type = type;
  text.id = "42";
  return text;
}

TEST_CASE("a task without flags is due now, in the order of milliseconds") {
  CHECK(record_of(text_of("Notify")) ==
        R"({"taskId":"42","taskTime":1795228350949,"taskTaken":false,"taskType":"Notify",)"
        R"("taskPara":{}})");
}

TEST_CASE("each --para is a string, also if it looks like a number") {
  TaskText text = text_of("N");
  text.paras = {"size=8000", "empty=", "eq=a=b", "quote=\"\n"};
  CHECK(record_of(text).ends_with(
      R"("taskPara":{"size":"8000","empty":"","eq":"a=b","quote":"\"\n"}})"));
}

TEST_CASE("--para NAME:=JSON is that JSON, to the digit") {
  TaskText text = text_of("N");
  text.paras = {"size:=8000", "long:=12345678901234567890123", "list:=[1,\"a\"]", "text=:=1",
                ":=1"};
  CHECK(record_of(text).ends_with(R"({"size":8000,"long":12345678901234567890123,"list":[1,"a"],)"
                                  R"("text":":=1",":":"1"}})"));
  text.paras = {"size:=8k"};
  CHECK(error_of(text).starts_with(R"(--para: expected JSON after "size:=", got "8k")"));
}

TEST_CASE("--para-json is kept to the digit, and --para adds to it") {
  TaskText text = text_of("N");
  text.para_json = R"({"n":123456789012345678901234567890})";
  text.paras = {"a=b"};
  CHECK(record_of(text).ends_with(R"("taskPara":{"n":123456789012345678901234567890,"a":"b"}})"));
  text.paras.clear();
  text.para_json = "[1,2]";
  CHECK(record_of(text).ends_with(R"("taskPara":[1,2]})"));
}

TEST_CASE("times of every form are written as RFC 3339") {
  TaskText text = text_of("N");
  text.in = "90s";
  CHECK(record_of(text).ends_with(R"("executeAt":"2026-11-21T02:34:00.949Z"})"));
  text.in.reset();
  text.at = "2026-11-22T09:30:00+01:00";
  CHECK(record_of(text).ends_with(R"("executeAt":"2026-11-22T08:30:00.000Z"})"));
  text.at = "1445599887";
  CHECK(record_of(text).ends_with(R"("executeAt":"2015-10-23T11:31:27.000Z"})"));
}

TEST_CASE("the other flags are written into the record") {
  TaskText text = text_of("N");
  text.task_time = "1445599887";
  text.serial_key = "db7";
  text.max_attempts = 5;
  text.timeout = "90s";
  const std::string record = record_of(text);
  CHECK(record.find(R"("taskTime":1445599887000,)") != std::string::npos);
  CHECK(record.ends_with(R"("serialKey":"db7","maxAttempts":5,"timeout":"90s"})"));
}

TEST_CASE("a bad value is refused with the name of its flag") {
  const auto refused = [](const char* flag, void (*change)(TaskText&)) {
    TaskText text = text_of("N");
    change(text);
    const std::string error = error_of(text);
    CHECK_MESSAGE(error.starts_with(std::string{flag} + ": "), error);
  };
  refused("TYPE", [](TaskText& text) { text.type.clear(); });
  refused("TYPE", [](TaskText& text) { text.type = "\xff"; });
  refused("--para", [](TaskText& text) { text.paras = {"novalue"}; });
  refused("--para", [](TaskText& text) { text.paras = {"=v"}; });
  refused("--para", [](TaskText& text) { text.paras = {"a=1", "a=2"}; });
  refused("--para-json", [](TaskText& text) { text.para_json = "{"; });
  refused("--para-json", [](TaskText& text) {
    text.paras = {"a=1"};
    text.para_json = "[1]";
  });
  refused("--para", [](TaskText& text) {
    text.paras = {"a=1"};
    text.para_json = R"({"a":2})";
  });
  refused("--at", [](TaskText& text) { text.at = "tomorrow"; });
  refused("--at", [](TaskText& text) { text.at = "2026-11-22T09:30:00"; });  // in which zone?
  refused("--in", [](TaskText& text) { text.in = "soon"; });
  refused("--task-time", [](TaskText& text) { text.task_time = "x"; });
  refused("--timeout", [](TaskText& text) { text.timeout = "90"; });
  refused("--id", [](TaskText& text) { text.id = "a//b"; });
  TaskText text = text_of("N");
  text.at = "2026-11-31T09:30:00Z";
  CHECK(error_of(text).ends_with("\"2026-11-31T09:30:00Z\": there is no such day"));
}

TEST_CASE("a record that could not be claimed is not written") {
  TaskText text = text_of("N");
  text.paras = {"x=" + std::string(523'500, 'x')};
  client::TaskIds ids{1};
  CHECK(refusal_of(new_task(text, kNow, ids)).code == ErrorCode::kTooLarge);
}

}  // namespace
}  // namespace lictor::cli
