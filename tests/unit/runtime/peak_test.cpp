#include <doctest/doctest.h>

#include "runtime/queue_driver.h"

using lictor::runtime::Peak;

TEST_SUITE_BEGIN("runtime");

TEST_CASE("a fall to half of the peak is told, once") {
  Peak peak{100};
  CHECK_FALSE(peak.fell_to(400));
  CHECK_FALSE(peak.fell_to(201));
  CHECK(peak.fell_to(200));
  CHECK_FALSE(peak.fell_to(200));
  CHECK_FALSE(peak.fell_to(101));
  CHECK(peak.fell_to(99));  // the next halving
  CHECK_FALSE(peak.fell_to(0));
}

TEST_CASE("a low peak is never told, and a later high one is") {
  Peak peak{100};
  CHECK_FALSE(peak.fell_to(99));
  CHECK_FALSE(peak.fell_to(0));
  CHECK_FALSE(peak.fell_to(100));
  CHECK(peak.fell_to(0));
}

TEST_SUITE_END();
