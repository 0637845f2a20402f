#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "harness.h"
#include "temporary_folder.h"

namespace lictor::cli {
namespace {

using test::contains;
using test::entry;
using test::no_names;
using test::reply;
using test::result;
using test::Scene;
using test::txn_error;

// What "submit --ndjson" makes of these lines.
Result<int> submit_lines(Scene& scene, const std::string& lines) {
  const unit::TemporaryFolder folder;
  const std::string path = folder.path() + "/tasks.ndjson";
  std::ofstream{path} << lines;
  return scene.run_words({"submit", "--ndjson", path});
}

TEST_CASE("the id is printed, and nothing else") {
  Scene scene{{reply(200, result("lictor/q/tasks/42", "{}"))}};
  CHECK(*scene.run("submit T --id 42") == kDone);
  CHECK(scene.out() == "42\n");
  CHECK(scene.err().empty());
}

TEST_CASE("an existing task is a failure, and is left unchanged") {
  Scene scene{{reply(409, txn_error(0, "failed to set key, index is stale"))}};
  const auto code = scene.run("submit T --id 42");
  REQUIRE_FALSE(code);
  CHECK(exit_code(code.error().code) == kFailed);
  CHECK(scene.out().empty());
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
  const auto code = scene.run("submit T --id 42 --wait");
  REQUIRE_FALSE(code);
  CHECK(exit_code(code.error().code) == kDenied);
  CHECK(contains(code.error().message, "not written"));
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
  Scene scene{{reply(409, txn_error(0, "Permission denied"))}, true};
  const auto code = submit_lines(scene, R"({"taskId":"t0","taskType":"T"}
{"taskId":"t1","taskType":"T"}
{"taskId":"t2","taskType":"T"}
)");
  REQUIRE_FALSE(code);
  CHECK(exit_code(code.error().code) == kDenied);
  const std::string& message = code.error().message;
  CHECK(message.starts_with("lines 1 to 3: not written; cannot write lictor/q/tasks/t0"));
  CHECK(message.ends_with("; none after line 3 was sent"));
  const auto said = nlohmann::json::parse(scene.out());
  CHECK(said["written"] == 0);
  CHECK(said["in_doubt"].empty());
  CHECK(said["not_written"] ==
        nlohmann::json::parse(R"([{"first":1,"last":3,"ids":["t0","t1","t2"]}])"));
  CHECK(said["not_sent_after"] == 3);
  CHECK(said["error"] == message);
}

TEST_CASE("a submission whose lines are all settled ends without an error") {
  Scene scene{{reply(200, result("lictor/q/tasks/a", "{}"))}, true};
  CHECK(*submit_lines(scene, R"({"taskId":"a","taskType":"T"})") == kDone);
  const auto said = nlohmann::json::parse(scene.out());
  CHECK(said["written"] == 1);
  CHECK(said["not_sent_after"].is_null());
  CHECK(said["error"].is_null());
}

TEST_CASE("a file that cannot be read is a wrong argument") {
  Scene scene{{}};
  for (const char* path : {".", "no/such.ndjson"}) {
    const auto code = scene.run_words({"submit", "--ndjson", path});
    REQUIRE_FALSE(code);
    CHECK(exit_code(code.error().code) == kUsage);
  }
}

}  // namespace
}  // namespace lictor::cli
