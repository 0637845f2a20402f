#include "exec/output_log.h"

#include <string>

#include <doctest/doctest.h>

#include "base/read_file.h"
#include "base/text.h"
#include "temporary_folder.h"

namespace lictor::exec {

TEST_SUITE_BEGIN("exec");

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
  // A trace that begins before what there is of the output.
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

TEST_CASE("of a long output start and end are kept, and what is missing between is said") {
  const unit::TemporaryFolder folder;
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

TEST_CASE("a full disk is told once") {
  OutputLog log{"/dev/full", 100};
  CHECK(log.write("hello") ==
        "cannot write /dev/full: No space left on device; the job goes on, but its output is lost");
  CHECK(log.write("hello").empty());
  CHECK(log.finish().empty());
  CHECK(log.tail() == "hellohello");
}

TEST_SUITE_END();

}  // namespace lictor::exec
