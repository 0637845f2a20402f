#include <unistd.h>

#include <filesystem>
#include <string>

#include <doctest/doctest.h>

#include "exec/output_log.h"
#include "support.h"

namespace lictor::exec::test {

TEST_SUITE_BEGIN("exec");

TEST_CASE("a task's logs come oldest first, by token, since attempts begin again") {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "q");
  write_file(output_log_path(folder.path(), "q", "a/b", 2, 20), "two");
  write_file(output_log_path(folder.path(), "q", "a/b", 1, 10), "one");
  write_file(output_log_path(folder.path(), "q", "a/b", 1, 300), "again");
  write_file(folder / "q/a%2Fb.1.x.log", "no token");
  write_file(folder / "q/a%2Fb.1.5.log.gz", "no log");
  const auto logs = stored_logs(folder.path(), "q", "a/b", nullptr);
  REQUIRE(logs);
  REQUIRE(logs->size() == 3);
  CHECK(logs->at(0).token == 10);
  CHECK(logs->at(1).attempt == 2);
  CHECK(logs->at(2).token == 300);
  CHECK(logs->at(2).attempt == 1);
  CHECK(logs->at(2).size == 5);
  CHECK(logs->at(2).modified > WallTime{});
  CHECK(logs->at(2).path == folder / "q/a%2Fb.1.300.log");
  CHECK(stored_logs(folder.path(), "other", "a/b", nullptr)->empty());
}

TEST_CASE("a log is read from any offset, as far as there is any") {
  const TemporaryFolder folder;
  write_file(folder / "log", "0123456789");
  CHECK(read_log(folder / "log", 0, 100) == "0123456789");
  CHECK(read_log(folder / "log", 3, 4) == "3456");
  CHECK(read_log(folder / "log", 10, 4) == "");
  CHECK(read_log(folder / "log", 1ULL << 62U, 4) == "");
  CHECK(read_log(folder / "none", 0, 4) == "");
  CHECK_FALSE(read_log(folder.path(), 0, 4));
}

TEST_CASE("a program's log counts as active while it runs, and what is lost of it is known") {
  std::string prints, lost;
  SUBCASE("before it prints") {}
  SUBCASE("when its output cannot be written") {
    prints = "echo hello; ";
    lost = "Not a directory";
  }
  Rig rig;
  const TemporaryFolder folder;
  if (!lost.empty()) write_file(folder / "logs", "");
  ProcessOptions options;
  options.log_directory = folder / "logs";
  options.active_logs = std::make_shared<ActiveLogs>();
  options.argv = shell(prints + "while [ ! -e $1 ]; do sleep 0.01; done", {folder / "go"});
  const Attempt one = attempt(1);
  rig.start(options, one);
  REQUIRE(eventually([&] { return options.active_logs->newest_error().empty() == lost.empty(); }));
  const auto logs = [&] {
    return stored_logs(options.log_directory, one.queue, one.task_id, options.active_logs.get())
        .value();
  };
  const auto running = logs();
  REQUIRE(running.size() == 1);
  CHECK(running.front().running);
  CHECK(running.front().token == one.fencing_token);
  CHECK(running.front().error.ends_with(lost));
  CHECK(running.front().error.empty() == lost.empty());
  write_file(folder / "go", "");
  CHECK(rig.of(1).ending == Ending::kDone);
  const auto ended = logs();
  CHECK(ended.empty() == lost.empty());
  if (!ended.empty()) CHECK_FALSE(ended.front().running);
}

TEST_SUITE_END();

}  // namespace lictor::exec::test
