#include <doctest/doctest.h>

#include "cli/console.h"

namespace lictor::cli {
namespace {

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
