#include "core/tombstones.h"

#include <doctest/doctest.h>

using namespace lictor;
using namespace lictor::core;
using namespace std::chrono_literals;

namespace {

constexpr Instant kNow{100s};

}  // namespace

TEST_CASE("a tombstone covers what is from before the deletion, until a later version is seen") {
  Tombstones stones;
  stones.add("a", 7, kNow);
  CHECK(stones.has("a"));
  CHECK(stones.covers("a", 6));
  CHECK(stones.covers("a", 7));
  CHECK_FALSE(stones.covers("b", 7));
  CHECK_FALSE(stones.covers("a", 8));
  CHECK_FALSE(stones.has("a"));
  CHECK_FALSE(stones.covers("a", 7));  // ended: this would be one that was restored
}

TEST_CASE(
    "of a name that is deleted twice the later deletion counts, and stays as long as it may") {
  Tombstones stones;
  stones.add("a", 7, kNow);
  CHECK_FALSE(stones.covers("a", 9));
  stones.add("a", 9, kNow + 1s);
  CHECK(stones.covers("a", 8));
  stones.forget_before(kNow + 1s);
  CHECK(stones.covers("a", 9));
  CHECK(stones.size() == 1);
  stones.forget_before(kNow + 2s);
  CHECK_FALSE(stones.has("a"));
  CHECK(stones.size() == 0);
}

TEST_CASE("tombstones go when all that was asked before them is answered, two of a time together") {
  Tombstones stones;
  stones.add("b", 1, kNow);
  stones.add("a", 2, kNow);
  stones.add("a", 3, kNow);
  stones.add("c", 4, kNow + 1s);
  stones.forget_before(kNow);
  CHECK(stones.size() == 3);
  stones.forget_before(kNow + 1ns);
  CHECK(stones.size() == 1);
  CHECK(stones.has("c"));
  stones.add("a", 5, kNow + 2s);
  CHECK(stones.covers("a", 5));
  stones.clear();
  CHECK_FALSE(stones.has("c"));
  stones.add("c", 6, kNow + 3s);
  stones.forget_before(kNow + 4s);
  CHECK(stones.size() == 0);
}
