#include "exec/lease_board.h"

#include <doctest/doctest.h>

#include "base/clock.h"

namespace lictor::exec {

using namespace std::chrono_literals;

TEST_SUITE_BEGIN("exec");

TEST_CASE("the warden is told of a lease that is new or shorter, or that may have run out") {
  LeaseBoard board = std::move(LeaseBoard::create(8).value());
  const Instant now = boot_now();
  CHECK(board.extend(0, now + 1h, 5s));
  CHECK_FALSE(board.extend(0, now + 2h, 5s));
  CHECK_FALSE(board.extend(0, now + 2h, 5s));
  CHECK(board.extend(0, now + 1h, 5s));
  CHECK(board.extend(0, now - 1s, 5s));
  CHECK(board.extend(0, now + 1h, 5s));
  board.clear(0);
  CHECK_FALSE(board.extend(0, now + 1h, 5s));  // The warden wakes at the deadline all the same.
}

TEST_CASE("a lease holds up to its deadline, and not once it is given up") {
  LeaseBoard board = std::move(LeaseBoard::create(8).value());
  const Instant deadline = Instant{} + 100s;
  CHECK_FALSE(board.holds(5, Instant{} + 1s));
  (void)board.extend(5, deadline, 5s);
  CHECK(board.deadline(5) == deadline);
  CHECK(board.grace(5) == 5s);
  CHECK(board.holds(5, deadline - 1ns));
  CHECK_FALSE(board.holds(5, deadline));
  CHECK_FALSE(board.holds(6, deadline - 1ns));
  CHECK(board.holds(kNoLease, deadline + 1h));
  board.clear(5);
  CHECK_FALSE(board.holds(5, deadline - 1ns));
  CHECK(board.deadline(5) == deadline);
  (void)board.extend(5, deadline, 5s);
  CHECK(board.holds(5, deadline - 1ns));
}

TEST_CASE("each of a thousand queues has a lease of its own") {
  LeaseBoard board = std::move(LeaseBoard::create(1000).value());
  const Instant deadline = Instant{} + 100s;
  CHECK(board.extend(999, deadline, 5s));
  CHECK(board.holds(999, deadline - 1ns));
  CHECK_FALSE(board.holds(998, deadline - 1ns));
  CHECK(board.admit(256) == false);
}

TEST_SUITE_END();

}  // namespace lictor::exec
