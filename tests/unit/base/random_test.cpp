#include "base/random.h"

#include <doctest/doctest.h>

using namespace lictor;

TEST_SUITE_BEGIN("base");

TEST_CASE("a seed gives the numbers of SplitMix64") {
  Random random{1234567};  // the vector that its authors' reference code prints
  CHECK(random.next() == 6457827717110365317ULL);
  CHECK(random.next() == 3203168211198807973ULL);
  CHECK(random.next() == 9817491932198370423ULL);
}

TEST_CASE("a fraction is in [0, 1) and reaches all of it") {
  Random random{7};
  double least = 1;
  double most = 0;
  for (int i = 0; i < 10'000; ++i) {
    const double f = random.fraction();
    REQUIRE(f >= 0.0);
    REQUIRE(f < 1.0);
    least = f < least ? f : least;
    most = f > most ? f : most;
  }
  CHECK(least < 0.01);
  CHECK(most > 0.99);
}

TEST_CASE("a hexadecimal name has 16 digits") {
  Random random{1};
  for (int i = 0; i < 100; ++i) {
    const std::string hex = random.hex();
    CHECK(hex.size() == 16);
    CHECK(hex.find_first_not_of("0123456789abcdef") == std::string::npos);
  }
  CHECK(Random{5}.hex() == Random{5}.hex());
  CHECK(Random{5}.hex() != Random{6}.hex());
}

TEST_CASE("two seeds from the operating system differ") { CHECK(random_seed() != random_seed()); }

TEST_SUITE_END();
