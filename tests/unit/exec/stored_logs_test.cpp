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

TEST_CASE("a program's log counts as active while it runs, also before it prints") {
  Rig rig;
  const TemporaryFolder folder;
  ProcessOptions options;
  options.log_directory = folder.path();
  options.active_logs = std::make_shared<ActiveLogs>();
  options.argv = {"/bin/sh", "-c", "while [ ! -e " + (folder / "go") + " ]; do sleep 0.01; done"};
  auto runner = ProcessRunner::create(*rig.host, options);
  REQUIRE(runner);
  const Attempt one = attempt(1);
  REQUIRE((*runner)->start(one, Instant::max(), rig.exits.callback()));
  const auto running =
      stored_logs(folder.path(), one.queue, one.task_id, options.active_logs.get());
  REQUIRE(running);
  REQUIRE(running->size() == 1);
  CHECK(running->front().running);
  CHECK(running->front().token == one.fencing_token);
  write_file(folder / "go", "");
  CHECK(rig.exits.of(one.id).ending == Ending::kDone);
  CHECK(stored_logs(folder.path(), one.queue, one.task_id, options.active_logs.get())->empty());
}

TEST_CASE("that a program's output is lost is known while it runs") {
  Rig rig;
  const TemporaryFolder folder;
  write_file(folder / "logs", "");
  ProcessOptions options;
  options.log_directory = folder / "logs";
  options.active_logs = std::make_shared<ActiveLogs>();
  options.argv = {"/bin/sh", "-c",
                  "echo hello; while [ ! -e " + (folder / "go") + " ]; do sleep 0.01; done"};
  auto runner = ProcessRunner::create(*rig.host, options);
  REQUIRE(runner);
  const Attempt one = attempt(1);
  REQUIRE((*runner)->start(one, Instant::max(), rig.exits.callback()));
  CHECK(eventually([&] { return !options.active_logs->newest_error().empty(); }));
  const auto running =
      stored_logs(options.log_directory, one.queue, one.task_id, options.active_logs.get());
  REQUIRE(running);
  REQUIRE(running->size() == 1);
  CHECK(running->front().running);
  CHECK(running->front().error.ends_with("Not a directory"));
  write_file(folder / "go", "");
  CHECK(rig.exits.of(one.id).ending == Ending::kDone);
  const auto ended =
      stored_logs(options.log_directory, one.queue, one.task_id, options.active_logs.get());
  REQUIRE(ended);
  REQUIRE(ended->size() == 1);
  CHECK_FALSE(ended->front().running);
}

TEST_SUITE_END();

}  // namespace lictor::exec::test
