#include <signal.h>

#include <fstream>

#include "base/clock.h"
#include "base/time_text.h"
#include "cli/new_task.h"
#include "cli/process.h"
#include "harness.h"
#include "model_consul.h"
#include "temporary_folder.h"

namespace lictor::cli::test {
namespace {

using namespace std::chrono_literals;

// The result of "submit --ndjson" with these lines.
Result<int> submit_lines(Scene& scene, const std::string& lines) {
  const unit::TemporaryFolder folder;
  const std::string path = folder.path() + "/tasks.ndjson";
  std::ofstream{path} << lines;
  return scene.run_words({"submit", "--ndjson", path});
}

TEST_CASE("the id is printed, and nothing else; an existing task is left as it is, a failure") {
  Scene scene{{reply(200, result("lictor/q/tasks/42", "{}"))}};
  CHECK(*scene.run("submit T --id 42") == kDone);
  CHECK(scene.out() == "42\n");
  CHECK(scene.err().empty());
  Scene taken{{failed("failed to set key, index is stale")}};
  CHECK(exit_code(refusal_of(taken.run("submit T --id 42")).code) == kFailed);
  CHECK(taken.out().empty());
}

TEST_CASE("a dead task is reported with its reason and the end of its output") {
  Scene scene{{reply(404, "", 5), reply(200, result("lictor/q/tasks/42", "{}", 9)),
               reply(404, "", 10),  // one partition, which nobody leads
               reply(404, "", 10), reply(404, "", 10), reply(404, "", 10),  // nor is a daemon up
               reply(404, "", 20),
               reply(200, entry("lictor/q/dead/42",
                                R"({"reason":"failed","error":"exit 3","attempts":3,)"
                                R"("output_tail":"no\u001b[1m space\n"})",
                                15)),
               no_names()}};
  CHECK(*scene.run("submit T --id 42 --wait") == kFailed);
  CHECK(scene.out() == "42\n");
  CHECK(scene.err() ==
        "nobody leads queue \"q\" (lictor/q/leader does not exist): no daemon has ever led it; "
        "if its name is right, start one with \"lictor run\"\n"
        "lictor: task 42 is dead after 3 attempts: failed: exit 3\n"
        "the end of its output:\nno\\x1b[1m space\n");
}

TEST_CASE("a token that cannot see the end is refused before anything is written") {
  Scene scene{{reply(403, "Permission denied")}};
  const auto refused = scene.run("submit T --id 42 --wait");
  CHECK(contains(refusal_of(refused, ErrorCode::kPermissionDenied), "not written"));
}

TEST_CASE("a field that is nearly one of lictor's is named with its line, once") {
  Scene scene{{reply(200, R"({"Results":[],"Errors":null})")}};
  const std::string line = R"({"taskId":"%","taskType":"T","taskTime":1,"expiresAt":2})";
  std::string lines;
  for (const char* id : {"a", "b"}) {
    lines += std::string{line}.replace(line.find('%'), 1, id) + '\n';
  }
  CHECK(*submit_lines(scene, lines) == kDone);
  CHECK(contains(scene.err(), "line 1: expiresAt: did you mean expireAt?"));
  CHECK_FALSE(contains(scene.err(), "line 2"));
}

TEST_CASE("refused lines are reported in their order") {
  Scene scene{{reply(409, R"({"Results":null,"Errors":[)"
                          R"({"OpIndex":0,"What":"failed to set key \"a\", index is stale"},)"
                          R"({"OpIndex":2,"What":"failed to set key \"c\", index is stale"}]})"),
               reply(200, result("lictor/q/tasks/b", "{}"))}};
  CHECK(*submit_lines(scene, R"({"taskId":"a","taskType":"T"}
no task
{"taskId":"b","taskType":"T"}
{"taskId":"c","taskType":"T"}
{
)") == kFailed);
  CHECK(scene.out() == "b\n");
  std::vector<std::string> told;
  std::istringstream lines{scene.err()};
  for (std::string line; std::getline(lines, line);)
    told.push_back(line.substr(0, line.find(": ", 9)));
  CHECK(told == std::vector<std::string>{"lictor: line 1", "lictor: line 2", "lictor: line 4",
                                         "lictor: line 5", "1 task written, 4 refused"});
}

TEST_CASE("an error that ends the submission names the lines that were not written, also in JSON") {
  Scene scene{{failed("Permission denied")}, true};
  const auto refused = submit_lines(scene, R"({"taskId":"t0","taskType":"T"}
{"taskId":"t1","taskType":"T"}
{"taskId":"t2","taskType":"T"}
)");
  const std::string message = refusal_of(refused, ErrorCode::kPermissionDenied);
  CHECK(message.starts_with("lines 1 to 3: not written; cannot write lictor/q/tasks/t0"));
  CHECK(message.ends_with("; none after line 3 was sent"));
  const auto said = nlohmann::json::parse(scene.out());
  check_members(said, nlohmann::json::parse(R"({"written": 0, "in_doubt": [], "not_sent_after": 3,
      "not_written": [{"first": 1, "last": 3, "ids": ["t0", "t1", "t2"]}]})"));
  CHECK(said["error"] == message);
}

TEST_CASE("a submission whose lines are all settled ends without an error") {
  Scene scene{{reply(200, result("lictor/q/tasks/a", "{}"))}, true};
  CHECK(*submit_lines(scene, R"({"taskId":"a","taskType":"T"})") == kDone);
  const auto said = nlohmann::json::parse(scene.out());
  check_members(said, {{"written", 1}, {"not_sent_after", nullptr}, {"error", nullptr}});
}

TEST_CASE("a signal that is caught does not end a write that waits for its reader") {
  catch_signals(SecondSignal::kEndsAtOnce);
  struct sigaction now {};
  sigaction(SIGTERM, nullptr, &now);
  CHECK((now.sa_flags & SA_RESTART) != 0);
}

TEST_CASE("a file that cannot be read is a wrong argument") {
  Scene scene{{}};
  for (const char* path : {".", "no/such.ndjson"}) {
    CHECK(exit_code(refusal_of(scene.run_words({"submit", "--ndjson", path})).code) == kUsage);
  }
}

// --- The record of a new task

constexpr WallTime kNow{1'795'228'350'949ms};

std::string record_of(const TaskText& text) {
  client::TaskIds ids{1};
  const auto task = new_task(text, kNow, ids);
  REQUIRE_MESSAGE(task, (task ? "" : task.error().message));
  return task->record;
}

std::string error_of(const TaskText& text, ErrorCode code = ErrorCode::kInvalid) {
  client::TaskIds ids{1};
  return refusal_of(new_task(text, kNow, ids), code);
}

TaskText text_of(const std::string& type) { return {.type = type, .id = "42"}; }

TEST_CASE("a task without flags is due now, in the order of milliseconds") {
  CHECK(record_of(text_of("Notify")) ==
        R"({"taskId":"42","taskTime":1795228350949,"taskTaken":false,"taskType":"Notify",)"
        R"("taskPara":{}})");
}

TEST_CASE("the values of flags are written into the record, parameters to the digit") {
  const auto check = [](void (*change)(TaskText&), const std::string& end) {
    TaskText text = text_of("N");
    change(text);
    const std::string record = record_of(text);
    CHECK_MESSAGE(record.ends_with(end), record);
  };
  // Each --para is a string, also if it looks like a number; NAME:=JSON is that JSON.
  check(
      [](TaskText& text) {
        text.paras = {"size=8000", "empty=", "eq=a=b", "quote=\"\n"};
      },
      R"("taskPara":{"size":"8000","empty":"","eq":"a=b","quote":"\"\n"}})");
  check(
      [](TaskText& text) {
        text.paras = {"size:=8000", "long:=12345678901234567890123", "list:=[1,\"a\"]", "text=:=1",
                      ":=1"};
      },
      R"({"size":8000,"long":12345678901234567890123,"list":[1,"a"],"text":":=1",":":"1"}})");
  check(
      [](TaskText& text) {
        text.para_json = R"({"n":123456789012345678901234567890})";
        text.paras = {"a=b"};
      },
      R"("taskPara":{"n":123456789012345678901234567890,"a":"b"}})");
  check([](TaskText& text) { text.para_json = "[1,2]"; }, R"("taskPara":[1,2]})");
  // Times of every form are written as RFC 3339.
  check([](TaskText& text) { text.in = std::chrono::seconds{90}; },
        R"("executeAt":"2026-11-21T02:34:00.949Z"})");
  check([](TaskText& text) { text.at = "2026-11-22T09:30:00+01:00"; },
        R"("executeAt":"2026-11-22T08:30:00.000Z"})");
  check([](TaskText& text) { text.at = "1445599887"; },
        R"("executeAt":"2015-10-23T11:31:27.000Z"})");
  check(
      [](TaskText& text) {
        text.task_time = "1445599887";
        text.serial_key = "db7";
        text.max_attempts = 5;
        text.timeout = std::chrono::seconds{90};
      },
      R"("taskTime":1445599887000,"taskTaken":false,"taskType":"N","taskPara":{},)"
      R"("serialKey":"db7","maxAttempts":5,"timeout":"90s"})");
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
  refused("--task-time", [](TaskText& text) { text.task_time = "x"; });
  refused("--id", [](TaskText& text) { text.id = "a//b"; });
  TaskText text = text_of("N");
  text.at = "2026-11-31T09:30:00Z";
  CHECK(error_of(text).ends_with("\"2026-11-31T09:30:00Z\": there is no such day"));
  text = text_of("N");
  text.paras = {"size:=8k"};
  CHECK(error_of(text).starts_with(R"(--para: expected JSON after "size:=", got "8k")"));
}

TEST_CASE("a record that could not be claimed is not written") {
  TaskText text = text_of("N");
  text.paras = {"x=" + std::string(523'500, 'x')};
  CHECK_FALSE(error_of(text, ErrorCode::kTooLarge).empty());
}

// --- Arguments reach their targets (refusals: command_line_test.cpp)

}  // namespace

TEST_CASE("submit takes its parameters unchanged, also those that look like options") {
  ModelConsul consul;
  CHECK(printed(consul, "submit T --para a=1 --para b=-2 --id -x --max-attempts 4 --max-attempts 5")
            .out == "-x\n");
  CHECK(contains(consul.value("lictor/q/tasks/-x"),
                 R"("taskType":"T","taskPara":{"a":"1","b":"-2"},"maxAttempts":5})"));
}

TEST_CASE("submit reads parameters from a file, and many tasks in any order") {
  const unit::TemporaryFolder folder;
  const std::string file = folder.path() + "/para";
  std::ofstream{file} << R"({"n":1})";
  ModelConsul consul;
  Stage stage{consul};
  REQUIRE(stage.run("submit T --id 1 --para-json @" + file) == 0);
  CHECK(contains(consul.value("lictor/q/tasks/1"), R"("taskPara":{"n":1})"));
  std::ofstream{file} << R"({"taskId":"2"})";
  REQUIRE(stage.run("submit T --any-order --ndjson " + file) == 0);
  CHECK(contains(consul.value("lictor/q/tasks/2"), R"("taskType":"T")"));
}

TEST_CASE("a command on many tasks takes ids, or --all with filters") {
  ModelConsul consul;
  const auto letter = [&](const std::string& id, const std::string& reason, WallTime at) {
    consul.put("lictor/q/dead/" + id, R"({"record":{"taskType":"T"},"reason":")" + reason +
                                          R"(","at":")" + format_rfc3339(at) + R"("})");
  };
  letter("old", "failed", wall_now() - std::chrono::hours{25});
  letter("new", "failed", wall_now());
  letter("late", "expired", wall_now());
  Stage stage{consul};
  REQUIRE(stage.run("dead purge --all --older-than 24h --yes") == 0);
  CHECK(consul.value("lictor/q/dead/old").empty());
  REQUIRE(stage.run("retry --all --type T --reason expired") == 0);
  CHECK_FALSE(consul.value("lictor/q/tasks/late").empty());
  CHECK_FALSE(consul.value("lictor/q/dead/new").empty());
  REQUIRE(stage.run("retry new") == 0);
  REQUIRE(stage.run("cancel late new") == 0);
  CHECK(consul.value("lictor/q/tasks/late").empty());
  CHECK(consul.value("lictor/q/tasks/new").empty());
}

TEST_CASE("logs takes an attempt and a member") {
  ModelConsul consul;
  CHECK(missing_in(refusal(consul, "logs a/b -f --attempt 2 --node n", ErrorCode::kNotFound),
                   {"no output of attempt 2 of task a/b in queue \"q\"", "n: no member now"}) ==
        "");
}

TEST_CASE("schedule takes a rule and a task, or a whole record") {
  ModelConsul consul;
  Stage stage{consul};
  REQUIRE(stage.run("schedule add n --at 2999-12-24T18:00:00Z --at 33000000000 --type T --para a=b "
                    "--missed all --missed-limit 0 --replace") == 0);
  CHECK(consul.value("lictor/q/schedules/n") ==
        R"({"at":["2999-12-24T18:00:00Z","33000000000"],"missed":"all","missedLimit":0,)"
        R"("task":{"taskType":"T","taskPara":{"a":"b"}}})");
  const unit::TemporaryFolder folder;
  const std::string record = R"({"every":"1h","task":{"taskType":"U"}})";
  std::ofstream{folder.path() + "/whole"} << record;
  REQUIRE(stage.run("schedule add n --replace -f " + folder.path() + "/whole") == 0);
  CHECK(consul.value("lictor/q/schedules/n") == record);
}

}  // namespace lictor::cli::test
