// That what stands on the command line comes to where it belongs. command_line_test.cpp has what is
// refused.

#include <fstream>
#include <string>

#include <doctest/doctest.h>

#include "base/clock.h"
#include "base/time_text.h"
#include "harness.h"
#include "model_consul.h"
#include "temporary_folder.h"
#include "unit/refusal.h"

namespace lictor::cli::test {
namespace {

std::string value_at(ModelConsul& consul, const std::string& key) {
  const auto entry = Store(consul).get(key).value();
  return entry ? entry->value : "";
}

}  // namespace

TEST_CASE("submit takes its parameters unchanged, also those that look like options") {
  ModelConsul consul;
  Stage stage{consul};
  REQUIRE(stage.run("submit T --para a=1 --para b=-2 --id -x --max-attempts 4 --max-attempts 5") ==
          0);
  CHECK(stage.out() == "-x\n");
  CHECK(contains(value_at(consul, "lictor/q/tasks/-x"),
                 R"("taskType":"T","taskPara":{"a":"1","b":"-2"},"maxAttempts":5})"));
}

TEST_CASE("submit reads parameters from a file, and many tasks in any order") {
  const unit::TemporaryFolder folder;
  const std::string file = folder.path() + "/para";
  std::ofstream{file} << R"({"n":1})";
  ModelConsul consul;
  Stage stage{consul};
  REQUIRE(stage.run("submit T --id 1 --para-json @" + file) == 0);
  CHECK(contains(value_at(consul, "lictor/q/tasks/1"), R"("taskPara":{"n":1})"));
  std::ofstream{file} << R"({"taskId":"2"})";
  REQUIRE(stage.run("submit T --any-order --ndjson " + file) == 0);
  CHECK(contains(value_at(consul, "lictor/q/tasks/2"), R"("taskType":"T")"));
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
  CHECK(value_at(consul, "lictor/q/dead/old").empty());
  REQUIRE(stage.run("retry --all --type T --reason expired") == 0);
  CHECK_FALSE(value_at(consul, "lictor/q/tasks/late").empty());
  CHECK_FALSE(value_at(consul, "lictor/q/dead/new").empty());
  REQUIRE(stage.run("retry new") == 0);
  REQUIRE(stage.run("cancel late new") == 0);
  CHECK(value_at(consul, "lictor/q/tasks/late").empty());
  CHECK(value_at(consul, "lictor/q/tasks/new").empty());
}

TEST_CASE("logs takes an attempt and a member") {
  ModelConsul consul;
  Stage stage{consul};
  const Error error = refusal_of(stage.run("logs a/b -f --attempt 2 --node n"));
  CHECK(contains(error.message, "no output of attempt 2 of task a/b in queue \"q\""));
  CHECK(contains(error.message, "n: no member now"));
}

TEST_CASE("schedule takes a rule and a task, or a whole record") {
  ModelConsul consul;
  Stage stage{consul};
  REQUIRE(stage.run("schedule add n --at 2999-12-24T18:00:00Z --at 33000000000 --type T --para a=b "
                    "--missed all --missed-limit 0 --replace") == 0);
  CHECK(value_at(consul, "lictor/q/schedules/n") ==
        R"({"at":["2999-12-24T18:00:00Z","33000000000"],"missed":"all","missedLimit":0,)"
        R"("task":{"taskType":"T","taskPara":{"a":"b"}}})");
  const unit::TemporaryFolder folder;
  const std::string record = R"({"every":"1h","task":{"taskType":"U"}})";
  std::ofstream{folder.path() + "/whole"} << record;
  REQUIRE(stage.run("schedule add n --replace -f " + folder.path() + "/whole") == 0);
  CHECK(value_at(consul, "lictor/q/schedules/n") == record);
}

}  // namespace lictor::cli::test
