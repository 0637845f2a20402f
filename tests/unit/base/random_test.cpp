#include "base/random.h"

#include <doctest/doctest.h>

using namespace lictor;

TEST_CASE("a seed gives the numbers of SplitMix64 and a name of 16 digits, its own") {
  Random random{1234567};  // the vector that its authors' reference code prints
  CHECK(random.next() == 6457827717110365317ULL);
  CHECK(random.next() == 3203168211198807973ULL);
  CHECK(random.next() == 9817491932198370423ULL);
  const std::string hex = Random{5}.hex();
  CHECK(hex.size() == 16);
  CHECK(hex.find_first_not_of("0123456789abcdef") == std::string::npos);
  CHECK(Random{5}.hex() != Random{6}.hex());
  CHECK(random_seed() != random_seed());
}
