#include "exec/noop_runner.h"

#include "base/clock.h"
#include "support.h"

namespace lictor::exec::test {

TEST_CASE("no sleep, no thread: the end is told within the start") {
  NoopRunner runner{0ms};
  Exits exits;
  REQUIRE(runner.start(attempt(1), Instant::max(), exits.callback()));
  REQUIRE(exits.has(AttemptId{1}));
  CHECK(exits.of(AttemptId{1}).ending == Ending::kDone);
  runner.stop(AttemptId{1}, 0ms);
}

TEST_CASE("each sleeps its time, all at once") {
  NoopRunner runner{20ms};
  Exits exits;
  const Instant begin = boot_now();
  for (std::uint64_t id = 1; id <= 500; ++id) {
    REQUIRE(runner.start(attempt(id), Instant::max(), exits.callback()));
  }
  exits.wait_for(500);
  CHECK(boot_now() - begin >= 20ms);
  CHECK(boot_now() - begin < 5s);  // One after the other would take 10.
  CHECK(exits.of(AttemptId{500}).ending == Ending::kDone);
}

TEST_CASE("a stop ends a sleep at once, and so does the runner's end") {
  Exits exits;
  {
    NoopRunner runner{1h};
    REQUIRE(runner.start(attempt(1), Instant::max(), exits.callback()));
    REQUIRE(runner.start(attempt(2), Instant::max(), exits.callback()));
    runner.stop(AttemptId{1}, 0ms);
    CHECK(exits.of(AttemptId{1}).ending == Ending::kStopped);
    runner.stop(AttemptId{1}, 0ms);
    runner.stop(AttemptId{7}, 0ms);
    CHECK_FALSE(exits.has(AttemptId{2}));
  }
  CHECK(exits.of(AttemptId{2}).ending == Ending::kStopped);
}

}  // namespace lictor::exec::test
