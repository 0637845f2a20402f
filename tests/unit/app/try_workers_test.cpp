#include <doctest/doctest.h>

#include "app/program.h"
#include "config_text.h"
#include "contains.h"
#include "temporary_folder.h"

namespace lictor::app {

TEST_SUITE_BEGIN("app");

TEST_CASE("a worker is started once, and what is wrong with it is told") {
  const unit::TemporaryFolder folder;
  const std::string text = R"({"state_dir": ")" + folder.path() + R"(", "queues": [{"executors": {
    "Bad": {"worker": ["/bin/sh", "-c", "echo no database; exit 3"]},
    "Good": {"worker": ["/bin/sh", "-c", "echo '{\"ready\":{\"protocol\":1}}' >&3; cat"],
             "processes": 4},
    "None": {"noop": {}},
    "Silent": {"worker": ["/bin/sleep", "1000"], "start_timeout": "100ms"}}}]})";
  const auto tried = try_workers(parsed(text));
  REQUIRE(tried.size() == 3);
  CHECK(tried[0].queue == "default");
  CHECK(tried[0].type == "Bad");
  CHECK(unit::contains(tried[0].error, "exit status 3: no database"));
  CHECK(tried[1].type == "Good");
  CHECK(tried[1].error == "");
  CHECK(tried[2].type == "Silent");
  CHECK(unit::contains(tried[2].error, "within start_timeout (100ms)"));
}

TEST_SUITE_END();

}  // namespace lictor::app
