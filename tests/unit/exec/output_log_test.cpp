#include "exec/output_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <future>
#include <thread>

#include "base/read_file.h"
#include "base/text.h"
#include "support.h"

namespace lictor::exec::test {

namespace {

namespace fs = std::filesystem;

// A time in 2015, so that by the clock of the pruner's thread all of it is old.
constexpr WallTime kNow{std::chrono::hours{400'000}};

struct StoredLogs {
  // Adds a log written `age` before kNow.
  std::string add(const std::string& name, std::chrono::seconds age, std::size_t bytes = 10) {
    const std::string path = folder / name;
    fs::create_directories(fs::path{path}.parent_path());
    write_file(path, std::string(bytes, 'x'));
    const auto when = std::chrono::floor<std::chrono::seconds>(kNow) - age;
    const timespec time{static_cast<time_t>(when.time_since_epoch().count()), 0};
    const timespec times[2] = {time, time};
    REQUIRE(utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW) == 0);
    return path;
  }
  Pruned prune(Duration max_age, std::uint64_t max_bytes) {
    return prune_logs(folder.path(), {max_age, max_bytes}, kNow, active);
  }
  [[nodiscard]] bool has(const std::string& name) const {
    return fs::exists(fs::symlink_status(folder / name));
  }

  TemporaryFolder folder;
  ActiveLogs active;
};

}  // namespace

TEST_CASE("a log's path stays in its queue's directory, whatever the task is called") {
  const auto path = [](std::string_view id) { return output_log_path("/l", "q", id, 2, 30); };
  CHECK(path("task_7") == "/l/q/task_7.2.30.log");
  CHECK(path("a/b") == "/l/q/a%2Fb.2.30.log");
  CHECK(path("../../etc") == "/l/q/%2E.%2F..%2Fetc.2.30.log");
  CHECK(path("50%~") == "/l/q/50%25%7E.2.30.log");
  CHECK(path("\xc3\xa4\n") == "/l/q/%C3%A4%0A.2.30.log");
  CHECK(output_log_path("/l", "../x", "7", 1, 1) == "/l/%2E.%2Fx/7.1.1.log");
  const std::string one = path(std::string(400, 'a') + "1");
  const std::string two = path(std::string(400, 'a') + "2");
  CHECK(one != two);
  CHECK(one.size() < 255);
}

TEST_CASE("the last line of a program is its error, also above a stack trace") {
  CHECK(last_line("") == "");
  CHECK(last_line(" \n\n") == "");
  CHECK(last_line("one\ntwo\n\n") == "two");
  CHECK(last_line("error:\n  cannot connect\n") == "  cannot connect");
  CHECK(last_line("file:///job.mjs:1\nthrow new Error('x')\n      ^\n\nTypeError: no database\n"
                  "    at f (file:///job.mjs:1:22)\n    at node:internal/timers:581:17\n\n"
                  "Node.js v20.20.2\n") == "TypeError: no database");
  CHECK(last_line("Error: ENOENT: no such file\n    at open (node:fs:1) {\n  errno: -2,\n"
                  "  code: 'ENOENT'\n}\n\nNode.js v20.20.2\n") == "Error: ENOENT: no such file");
  CHECK(last_line("started\npanic: no database\n\ngoroutine 5 [running]:\nmain.g()\n"
                  "\t/job/main.go:3 +0x25\ncreated by main.main in goroutine 1\n"
                  "\t/job/main.go:4 +0x1a\n") == "panic: no database");
  CHECK(last_line("Exception in thread \"main\" java.lang.Error: no database\n"
                  "\tat Job.main(Job.java:3)\n") ==
        "Exception in thread \"main\" java.lang.Error: no database");
  // A trace that begins before the kept output.
  CHECK(last_line("main.g()\n\t/job/main.go:3 +0x25\n") == excerpt("\t/job/main.go:3 +0x25", 200));
  CHECK(last_line("    at a\n    at b\n") == "    at b");
}

TEST_CASE("the tail is the last bytes, as valid UTF-8 that no cut has split") {
  OutputLog log{"", 0};
  CHECK(log.tail().empty());
  (void)log.write("first\n");
  for (int i = 0; i < 3000; ++i) (void)log.write("\xc3\xa4");
  (void)log.write("x");
  const std::string tail = log.tail();
  CHECK(is_utf8(tail));
  CHECK(tail.size() == OutputLog::kTailBytes - 1);
  CHECK(tail.ends_with("\xc3\xa4x"));
  CHECK(tail.starts_with("\xc3\xa4"));

  OutputLog binary{"", 0};
  (void)binary.write(std::string(10'000, '\xff') + "end");
  CHECK(is_utf8(binary.tail()));
  CHECK(binary.tail().size() <= OutputLog::kTailBytes);
  CHECK(binary.tail().ends_with("end"));
}

TEST_CASE("of a long output start and end are kept, with a note of the gap between them") {
  const TemporaryFolder folder;
  constexpr std::size_t kCap = 1 << 20U;
  std::string all;
  for (std::size_t line = 0; all.size() < 2 * kCap; ++line) {
    all += "line " + std::to_string(line) + '\n';
  }
  for (const std::size_t size :
       {kCap - 70'000, kCap - 1, kCap, kCap + 1, kCap + 70'000, 2 * kCap}) {
    for (const std::size_t piece : {std::size_t{100}, std::size_t{65536}, size}) {
      CAPTURE(size);
      CAPTURE(piece);
      const std::string path = folder / (std::to_string(size) + "." + std::to_string(piece));
      const std::string_view output = std::string_view{all}.substr(0, size);
      OutputLog log{path, kCap};
      for (std::size_t at = 0; at < size; at += piece) {
        REQUIRE(log.write(output.substr(at, piece)).empty());
      }
      CHECK(log.finish().empty());
      CHECK(log.tail() == output.substr(size - OutputLog::kTailBytes));
      const std::string written = read_small_file("log", path, 2 * kCap).value();
      if (size <= kCap) {
        CHECK((written == output));
        continue;
      }
      const std::string gap =
          "\n[lictor: " + std::to_string(size - kCap) + " bytes were left out here]\n";
      const std::size_t at = written.find(gap);
      REQUIRE(at != std::string::npos);
      CHECK(written.size() == kCap + gap.size());
      CHECK((output.starts_with(written.substr(0, at))));
      CHECK((output.ends_with(written.substr(at + gap.size()))));
      CHECK(written.size() - at - gap.size() == 65536);
    }
  }
}

TEST_CASE("a full disk is reported once") {
  OutputLog log{"/dev/full", 100};
  CHECK(log.write("hello") ==
        "cannot write /dev/full: No space left on device; the job goes on, but its output is lost");
  CHECK(log.write("hello").empty());
  CHECK(log.finish().empty());
  CHECK(log.tail() == "hellohello");
}

// --- Stored logs

TEST_CASE("a task's logs come oldest first, by token, since attempts begin again") {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "q");
  write_file(output_log_path(folder.path(), "q", "a/b", 2, 20), "two");
  write_file(output_log_path(folder.path(), "q", "a/b", 1, 10), "one");
  write_file(output_log_path(folder.path(), "q", "a/b", 1, 300), "again");
  write_file(folder / "q/a%2Fb.1.x.log", "no token");
  write_file(folder / "q/a%2Fb.1.5.log.gz", "no log");
  const auto logs = stored_logs(folder.path(), "q", "a/b", nullptr).value();
  REQUIRE(logs.size() == 3);
  CHECK(logs.at(0).token == 10);
  CHECK(logs.at(1).attempt == 2);
  CHECK(logs.at(2).token == 300);
  CHECK(logs.at(2).attempt == 1);
  CHECK(logs.at(2).size == 5);
  CHECK(logs.at(2).modified > WallTime{});
  CHECK(logs.at(2).path == folder / "q/a%2Fb.1.300.log");
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

TEST_CASE("a program's log counts as active while it runs, and its lost output is known") {
  std::string prints, lost;
  SUBCASE("before it prints") {}
  SUBCASE("when its output cannot be written") {
    prints = "echo hello; ";
    lost = "Not a directory";
  }
  Rig rig;
  const TemporaryFolder folder;
  if (!lost.empty()) write_file(folder / "logs", "");
  ProcessOptions options{
      .argv = shell(prints + "while [ ! -e $1 ]; do sleep 0.01; done", {folder / "go"}),
      .log_directory = folder / "logs",
      .active_logs = std::make_shared<ActiveLogs>()};
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

// --- The pruner

TEST_CASE("logs that are too old go, of every queue; a folder that is not there is no error") {
  StoredLogs scene;
  scene.add("q/1.1.1.log", 3h);
  scene.add("q/2.1.2.log", 1h);
  scene.add("r/3.1.3.log", 3h);
  const Pruned pruned = scene.prune(2h, 1'000'000);
  CHECK(pruned.removed == 2);
  CHECK(pruned.kept == 1);
  CHECK(pruned.removed_bytes == 2 * pruned.kept_bytes);
  CHECK(pruned.error.empty());
  CHECK(scene.has("q/2.1.2.log"));
  CHECK_FALSE(scene.has("q/1.1.1.log"));
  CHECK_FALSE(scene.has("r/3.1.3.log"));
  const Pruned none = prune_logs(scene.folder / "logs", {1h, 0}, kNow, ActiveLogs{});
  CHECK(none.error.empty());
  CHECK(none.kept == 0);
}

TEST_CASE("over the size, the oldest of all queues go first, until it fits") {
  StoredLogs scene;
  scene.add("q/new.1.3.log", 1min, 100);
  scene.add("r/oldest.1.1.log", 3min, 100);
  scene.add("q/older.1.2.log", 2min, 100);
  const std::uint64_t all = scene.prune(1000h, 1'000'000'000).kept_bytes;
  CHECK(all >= 3 * 4096);  // on the disk, where most of it is room for more
  CHECK(scene.prune(1000h, all).removed == 0);
  CHECK(scene.prune(1000h, all - 1).removed == 1);
  CHECK_FALSE(scene.has("r/oldest.1.1.log"));
  CHECK(scene.prune(1000h, 0).removed == 2);
}

TEST_CASE("the log of a running attempt stays, however old, and others make room for it") {
  StoredLogs scene;
  scene.active.add(scene.add("q/runs.1.1.log", 100h, 100));
  scene.add("q/ended.1.2.log", 1h, 100);
  const Pruned pruned = scene.prune(2h, 100);
  CHECK(pruned.removed == 1);
  CHECK(scene.has("q/runs.1.1.log"));
  CHECK_FALSE(scene.has("q/ended.1.2.log"));
}

TEST_CASE("nothing but logs is touched, and no link is followed") {
  StoredLogs scene;
  const TemporaryFolder elsewhere;
  write_file(elsewhere / "other.1.1.log", "x");
  scene.add("q/notes.txt", 100h);
  scene.add("top.1.1.log", 100h);
  fs::create_directories(scene.folder / "q/folder.1.1.log");
  fs::create_symlink(elsewhere / "other.1.1.log", scene.folder / "q/link.1.1.log");
  fs::create_symlink(elsewhere.path(), scene.folder / "linked");
  const Pruned pruned = scene.prune(1h, 0);
  CHECK(pruned.removed == 0);
  CHECK(pruned.error.empty());
  CHECK(scene.has("q/notes.txt"));
  CHECK(scene.has("top.1.1.log"));
  CHECK(scene.has("q/folder.1.1.log"));
  CHECK(scene.has("q/link.1.1.log"));
  CHECK(fs::exists(elsewhere / "other.1.1.log"));
}

TEST_CASE("the pruner prunes when it begins, and ends at once") {
  StoredLogs scene;
  scene.add("q/1.1.1.log", 3h);
  std::promise<Pruned> first;
  const std::jthread pruner =
      start_log_pruner(scene.folder.path(), {1h, 1000}, std::make_shared<ActiveLogs>(),
                       [&](const Pruned& pruned) { first.set_value(pruned); });
  CHECK(first.get_future().get().removed == 1);
}

TEST_CASE("the pruner prunes again once much was written") {
  StoredLogs scene;
  const auto active = std::make_shared<ActiveLogs>();
  constexpr std::uint64_t kMiB = 1U << 20U;
  std::promise<void> first;
  std::promise<Pruned> second;
  int passes = 0;
  const std::jthread pruner = start_log_pruner(scene.folder.path(), {24h * 36500, 16 * kMiB},
                                               active, [&](const Pruned& pruned) {
                                                 if (++passes == 1) first.set_value();
                                                 if (passes == 2) second.set_value(pruned);
                                               });
  first.get_future().get();
  for (int i = 0; i < 17; ++i) {
    const std::string path =
        scene.add("q/" + std::to_string(i) + ".1.1.log", 60min - 1min * i, kMiB);
    if (i == 16) active->remove(path, {.bytes = kMiB});
  }
  const Pruned pruned = second.get_future().get();
  CHECK(pruned.removed == 1);
  CHECK_FALSE(scene.has("q/0.1.1.log"));
}

}  // namespace lictor::exec::test
