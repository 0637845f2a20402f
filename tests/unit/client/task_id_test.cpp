#include "client/task_id.h"

#include <string>

#include <doctest/doctest.h>

namespace lictor::client {
namespace {

using namespace std::chrono_literals;

TEST_CASE("ids of one millisecond are in the order of creation") {
  TaskIds ids{1};
  const WallTime now{1'795'228'350'949ms};
  std::string last;
  for (int i = 0; i < 1000; ++i) {
    const std::string id = ids.next(now);
    CHECK(id > last);
    last = id;
  }
  CHECK(ids.next(now + 1ms) > last);
}

TEST_CASE("ids grow also when the clock steps back") {
  TaskIds ids{1};
  const std::string first = ids.next(WallTime{1'795'228'350'949ms});
  CHECK(ids.next(WallTime{1'000'000ms}) > first);
}

TEST_CASE("an id is milliseconds in hexadecimal digits and random bits") {
  const std::string id = TaskIds{1}.next(WallTime{1'795'228'350'949ms});
  CHECK(id.size() == 29);
  CHECK(id.starts_with("01a1fbf2b9e5-"));
  CHECK(id != TaskIds{2}.next(WallTime{1'795'228'350'949ms}));
  CHECK(id_fault(id).empty());
}

TEST_CASE("an id that no HTTP client could reach is refused") {
  for (const char* good : {"42", "a/b", "db7:8 x", "\u00fcber", "a.b", "..a", "~", "a~", "~2",
                           "a~1", "a~2", "a/b~301", "a,7"}) {
    CAPTURE(good);
    CHECK(id_fault(good).empty());
  }
  for (const std::string bad : {"", "/a", "a/", "a//b", "./a", "a/../b", "..", "a\nb", "\x1b[31m",
                                "\xff", "a\u00a0b", "a\u2028", "a\u202eb"}) {
    CAPTURE(bad);
    CHECK_FALSE(id_fault(bad).empty());
  }
  CHECK_FALSE(id_fault(std::string(513, 'a')).empty());
}

}  // namespace
}  // namespace lictor::client
