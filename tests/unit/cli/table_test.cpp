#include "cli/table.h"

#include <doctest/doctest.h>

namespace lictor::cli {
namespace {

Table sample() {
  Table table{{"ID", "NODE", "ERROR"}};
  table.add_row({{"42"}, {""}, {"a long error that goes on and on"}});
  table.add_row({{"a\x1b[1m"}, {""}, {""}});
  return table;
}

TEST_CASE("columns are aligned, empty ones left out, and lines end without blanks") {
  CHECK(sample().render({}) ==
        "ID        ERROR\n"
        "42        a long error that goes on and on\n"
        "a\\x1b[1m\n");
}

TEST_CASE("on a terminal the last column is cut to the width") {
  CHECK(sample().render({true, false, 30}) ==
        "ID        ERROR\n"
        "42        a long error that...\n"
        "a\\x1b[1m\n");
}

TEST_CASE("colour is for terminals that want it, and does not move columns") {
  Table table{{"STATE", "ID"}};
  table.add_row({{"dead", Style::kRed}, {"42"}});
  CHECK(table.render({true, true, 80}) ==
        "\x1b[1mSTATE\x1b[0m  \x1b[1mID\x1b[0m\n\x1b[31mdead\x1b[0m   42\n");
  CHECK(table.render({true, false, 80}) == "STATE  ID\ndead   42\n");
}

TEST_CASE("a table without rows is nothing") { CHECK(Table{{"ID"}}.render({}).empty()); }

}  // namespace
}  // namespace lictor::cli
