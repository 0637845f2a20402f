#include <doctest/doctest.h>

#include "runtime/loop.h"

namespace lictor::runtime {

using namespace std::chrono_literals;

TEST_SUITE_BEGIN("runtime");

TEST_CASE("clocks that go on together have not stepped, one that stands still or is set has") {
  const Instant boot{1h};
  const WallTime wall{500'000h};
  ClockOffset offset;
  CHECK_FALSE(offset.stepped(boot, wall));
  CHECK_FALSE(offset.stepped(boot + 10s, wall + 10s + 1ms));
  CHECK(offset.stepped(boot + 11s, wall + 40s));  // the guest stood still for 29 s
  CHECK_FALSE(offset.stepped(boot + 12s, wall + 41s));
  CHECK(offset.stepped(boot + 13s, wall + 41s));  // set back
  CHECK_FALSE(offset.stepped(boot + 14s, wall + 42s));
}

TEST_SUITE_END();

}  // namespace lictor::runtime
