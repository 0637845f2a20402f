#include "app/executors.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include <doctest/doctest.h>

#include "app/program.h"
#include "config_text.h"
#include "contains.h"
#include "temporary_folder.h"
#include "unit/refusal.h"

namespace lictor::app {
namespace {

mode_t mode_of(const std::string& path) {
  struct stat status {};
  REQUIRE(stat(path.c_str(), &status) == 0);
  return status.st_mode & 07777U;
}

}  // namespace

TEST_CASE(
    "files of an earlier daemon's jobs are removed, and only jobs of other users open state_dir to "
    "others") {
  const unit::TemporaryFolder folder;
  const std::string& dir = folder.path();
  Config config;
  config.queues.emplace_back();
  config.state_dir = dir;
  std::filesystem::create_directories(dir + "/scratch/0");
  std::ofstream{dir + "/scratch/0/1-1.commit"} << "[]";
  std::ofstream{dir + "/precious"} << "x";
  std::filesystem::create_symlink(dir + "/precious", dir + "/scratch/0/link");

  config.queues.front().executors["A"] = ExecConfig{};
  prepare_scratch(config);
  CHECK_FALSE(std::filesystem::exists(dir + "/scratch/0"));
  CHECK(std::filesystem::exists(dir + "/precious"));
  CHECK(mode_of(dir) == 0700);

  ExecConfig other;
  other.user = exec::User{"daemon", "/", "/bin/sh", {1, 1, {}}};
  config.queues.front().executors["B"] = other;
  prepare_scratch(config);
  CHECK(mode_of(dir) == 0701);
}

TEST_CASE("what is wrong with a plug-in is told before the daemon is restarted") {
  const Error error = refusal_of(
      load_plugins(parsed(R"({"queues": [{"executors": {"A": {"plugin": "/bin/true"}}}]})")));
  CHECK(unit::contains(error.message, R"(executor "A": plug-in "/bin/true": cannot be loaded)"));
}

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

}  // namespace lictor::app
