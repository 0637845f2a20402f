#include "cli/console.h"

#include <cstdio>
#include <memory>
#include <string>

#include <doctest/doctest.h>

#include "base/printable.h"
#include "cluster/diagnosis.h"
#include "unit/refusal.h"

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
  CHECK(refusal_of(console.flush()).code == ErrorCode::kFailed);
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

TEST_CASE("the commands that a text suggests name the queue and repeat the options") {
  CHECK(
      cluster::with_options(
          R"(see "lictor why 42"; then "lictor dead purge"; "lictor check" says more)", "night") ==
      R"(see "lictor why 42 -q night"; then "lictor dead purge -q night"; "lictor check" says more)");
  CHECK(cluster::with_options(R"("lictor why 42 -q day")", "night") == R"("lictor why 42 -q day")");
  for (const char* text : {"", "lictor why 42", R"("lictor run")", R"("lictor help topics")",
                           R"(the end of "lictor why 42)"}) {
    CHECK(cluster::with_options(text, "night") == text);
  }
  CHECK(cluster::with_options(R"("lictor check", "lictor list" or "lictor help jobs")", "",
                              " --config a.json") ==
        R"("lictor check --config a.json", "lictor list --config a.json" or "lictor help jobs")");
  // Whoever may write a task chooses its id.
  const std::string hostile = "see \"lictor why " + shell_argument("a\"; reboot 'x'") + '"';
  CHECK(hostile == R"(see "lictor why 'a"; reboot '\''x'\'''")");
  CHECK(cluster::with_options(hostile, "night") ==
        R"(see "lictor why 'a"; reboot '\''x'\''' -q night")");
  CHECK(cluster::with_options("\"lictor show " + shell_argument("-rf") + '"', "night") ==
        R"("lictor show -q night -- -rf")");
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

Table sample() {
  Table table{{"ID", "NODE", "ERROR"}};
  table.add_row({{"42"}, {""}, {"a long error that goes on and on"}});
  table.add_row({{"a\x1b[1m"}, {""}, {""}});
  return table;
}

TEST_CASE("columns are aligned, empty ones left out, and lines end without blanks") {
  CHECK(sample().render(0).text(false) ==
        "ID        ERROR\n"
        "42        a long error that goes on and on\n"
        "a\\x1b[1m\n");
}

TEST_CASE("in a pipe nothing is cut, and one long id does not pad all rows to its length") {
  Table table{{"ID", "STATE"}};
  const std::string id(400, 'x');
  table.add_row({{id}, {"dead"}});
  table.add_row({{"b"}, {"waiting"}});
  CHECK(table.render(0).text(false) == "ID" + std::string(80, ' ') + "STATE\n" + id + "  dead\n" +
                                           "b" + std::string(81, ' ') + "waiting\n");
}

TEST_CASE("on a terminal the last column is cut to the width") {
  CHECK(sample().render(30).text(false) ==
        "ID        ERROR\n"
        "42        a long error that...\n"
        "a\\x1b[1m\n");
}

TEST_CASE("if that is not enough, the first column is cut in its middle") {
  Table table{{"ID", "STATE", "ERROR"}};
  table.add_row({{"a-long-id-of-one-task-0001"}, {"dead"}, {"a long error that goes on"}});
  table.add_row({{"b"}, {"dead"}, {""}});
  CHECK(table.render(45).text(false) ==
        "ID                    STATE  ERROR\n"
        "a-long-id...ask-0001  dead   a long error ...\n"
        "b                     dead\n");
  CHECK(table.render(0).text(false).find("a-long-id-of-one-task-0001  dead") != std::string::npos);
  // One that is short leaves its room to the others.
  Table wide{{"ID", "ERROR"}};
  wide.add_row({{"a-long-id-of-one-task-0001"}, {"failed"}});
  CHECK(wide.render(34).text(false) ==
        "ID                          ERROR\na-long-id-of-one-task-0001  failed\n");
}

TEST_CASE("colour is printed on terminals that want it, and does not move columns") {
  Table table{{"STATE", "ID"}};
  table.add_row({{"dead", Style::kRed}, {"42"}});
  CHECK(table.render(80).text(true) ==
        "\x1b[1mSTATE\x1b[0m  \x1b[1mID\x1b[0m\n\x1b[31mdead\x1b[0m   42\n");
  CHECK(table.render(80).text(false) == "STATE  ID\ndead   42\n");
}

TEST_CASE("a table without rows prints nothing") { CHECK(Table{{"ID"}}.render(0).empty()); }

}  // namespace
}  // namespace lictor::cli
