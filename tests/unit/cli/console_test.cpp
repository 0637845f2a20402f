#include "cli/console.h"

#include <cstdio>
#include <memory>
#include <string>

#include <doctest/doctest.h>

#include "cluster/diagnosis.h"

namespace lictor::cli {
namespace {

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, Close>;

std::string content(std::FILE* file) {
  std::rewind(file);
  std::string text(4096, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file));
  return text;
}

TEST_CASE("a full disk is reported once") {
  const File full{std::fopen("/dev/full", "w")};
  const File err{std::tmpfile()};
  REQUIRE(full);
  REQUIRE(err);
  Console console{full.get(), err.get(), {}, {}};
  console.print("42\n");
  const auto flushed = console.flush();
  REQUIRE_FALSE(flushed);
  CHECK(flushed.error().code == ErrorCode::kFailed);
  CHECK(console.flush());
}

TEST_CASE("progress is printed on terminals only, and is erased") {
  const File out{std::tmpfile()};
  const File plain{std::tmpfile()};
  Console quiet{out.get(), plain.get(), {}, {}};
  quiet.progress("1 of 2");
  quiet.report_error("no");
  CHECK(content(plain.get()) == "lictor: no\n");

  const File terminal{std::tmpfile()};
  Console console{out.get(), terminal.get(), {}, {true, false, 12, true}};
  console.progress("1 of 20000000");
  console.note("done");
  CHECK(content(terminal.get()) == "\r\x1b[K1 of 200...\r\x1b[Kdone\n");
}

TEST_CASE("the commands that a text suggests name the queue") {
  CHECK(
      cluster::with_queue(
          R"(see "lictor why 42"; then "lictor dead purge"; "lictor check" says more)", "night") ==
      R"(see "lictor why 42 -q night"; then "lictor dead purge -q night"; "lictor check" says more)");
  CHECK(cluster::with_queue(R"("lictor why 42 -q day")", "night") == R"("lictor why 42 -q day")");
  for (const char* text : {"", "lictor why 42", R"("lictor run")", R"("lictor help topics")",
                           R"(the end of "lictor why 42)"}) {
    CHECK(cluster::with_queue(text, "night") == text);
  }
  const File out{std::tmpfile()};
  const File err{std::tmpfile()};
  Console console{out.get(), err.get(), {}, {}};
  console.name_queue("night");
  console.print_line(R"({"error": "see \"lictor retry 42\""})");  // data stays as it is
  console.print_line(console.suggesting("\"lictor retry 42\""));
  console.report_error("\"lictor show 42\"");
  console.note("\"lictor list\"");
  CHECK(content(out.get()) ==
        "{\"error\": \"see \\\"lictor retry 42\\\"\"}\n\"lictor retry 42 -q night\"\n");
  CHECK(content(err.get()) == "lictor: \"lictor show 42 -q night\"\n\"lictor list -q night\"\n");
}

}  // namespace
}  // namespace lictor::cli
