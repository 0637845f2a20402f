#include "exec/lease_board.h"

#include <doctest/doctest.h>

#include "base/clock.h"

namespace lictor::exec {

using namespace std::chrono_literals;

namespace {

constexpr Duration kTimeout = 5s;

struct Looks {
  HangWatch watch{kTimeout};
  Instant now = Instant{} + 1h;
  std::uint64_t heartbeat = 1;

  // Looks, so long after the last look.
  bool after(Duration wait) {
    now += wait;
    return watch.look(now, heartbeat);
  }
  // The time until a hang is found, with a look each `every`; kTimeout * 100 if never.
  Duration until_found(Duration every) {
    const Instant begin = now;
    while (now - begin < kTimeout * 100) {
      if (after(every)) return now - begin;
    }
    return kTimeout * 100;
  }
};

}  // namespace

TEST_CASE("the warden sees a lease that is new or shorter, or that may have run out") {
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

// --- The watch of the heartbeat

TEST_CASE("a heartbeat that does not change for the timeout is a hang, but not earlier") {
  Looks looks;
  CHECK_FALSE(looks.after(0s));  // the first
  const Duration found = looks.until_found(looks.watch.period());
  CHECK(found >= kTimeout);
  CHECK(found <= kTimeout + 500ms);
}

TEST_CASE("each beat restarts the timeout, and a resting daemon needs no beats") {
  Looks looks;
  for (int i = 0; i < 10; ++i) {
    ++looks.heartbeat;
    for (Duration silent{}; silent < kTimeout - 500ms; silent += looks.watch.period()) {
      CHECK_FALSE(looks.after(looks.watch.period()));
    }
  }
  looks.heartbeat = 0;
  CHECK(looks.until_found(looks.watch.period()) == kTimeout * 100);
}

TEST_CASE("time in which the watcher was stopped too does not count as silence") {
  Looks looks;
  CHECK_FALSE(looks.after(0s));
  while (looks.now < Instant{} + 1h + kTimeout - 500ms) {
    CHECK_FALSE(looks.after(looks.watch.period()));
  }
  CHECK_FALSE(looks.after(8h));  // suspended
  // A thread that wakes later than the watcher has the whole time-out.
  CHECK(looks.until_found(looks.watch.period()) >= kTimeout);
}

TEST_CASE("a watcher that is late at each look counts only the time that it ran") {
  Looks looks;
  CHECK_FALSE(looks.after(0s));
  const Duration found = looks.until_found(3 * looks.watch.period());
  CHECK(found >= 2 * kTimeout);
  CHECK(found <= 2 * kTimeout + 2s);
  CHECK(Looks{}.until_found(5 * looks.watch.period()) == kTimeout * 100);
}

}  // namespace lictor::exec
