#include <sys/wait.h>
#include <unistd.h>

#include <doctest/doctest.h>

#include "exec/children.h"

namespace lictor::exec {

TEST_SUITE_BEGIN("exec");

TEST_CASE("the daemon sees the warden's programs, also when the warden is dead") {
  ProgramTable table = std::move(ProgramTable::create().value());
  const pid_t warden = fork();
  REQUIRE(warden >= 0);
  if (warden == 0) {
    const auto first = table.take_place(), second = table.take_place(), third = table.take_place();
    table.set(*first, 11);
    table.set(*second, 22);
    table.set(*third, 33);
    table.give_back(*second);
    _exit(0);
  }
  REQUIRE(waitpid(warden, nullptr, 0) == warden);
  CHECK(table.list() == std::vector<pid_t>{11, 33});
}

TEST_CASE("a full table has a free place after one is given back") {
  ProgramTable table = std::move(ProgramTable::create().value());
  for (std::size_t i = 0; i < ProgramTable::kPlaces; ++i) REQUIRE(table.take_place().has_value());
  CHECK_FALSE(table.take_place().has_value());
  table.give_back(7);
  CHECK(table.take_place() == 7);
  CHECK_FALSE(table.take_place().has_value());
}

TEST_SUITE_END();

}  // namespace lictor::exec
