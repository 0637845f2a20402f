#include "core/rate_limit.h"

#include <doctest/doctest.h>

namespace lictor::core {
namespace {

// How many are taken within `span` if it is tried every millisecond.
int taken(RateLimit& rate, Instant from, Duration span) {
  int count = 0;
  for (Instant now = from; now < from + span; now += 1ms) {
    if (!rate.ready(now)) continue;
    rate.take(now);
    ++count;
  }
  return count;
}

TEST_SUITE_BEGIN("core");

TEST_CASE("hosts that share a queue take no more together than one that has all of it") {
  const Rate limit{10ms, 8};
  RateLimit alone;
  alone.set(limit);
  CHECK(taken(alone, Instant{1h}, 10s) == 1000 + 7);
  int together = 0;
  for (const std::size_t held : {5, 5, 6}) {
    RateLimit part;
    part.set(limit);
    part.share(held, 16);
    together += taken(part, Instant{1h}, 10s);
  }
  CHECK(together <= 1000 + 8);
  CHECK(together >= 990);
}

TEST_CASE("a host gets more of the rate with more partitions, and none without a limit") {
  RateLimit rate;
  rate.share(1, 16);
  CHECK(rate.ready(Instant{1h}));
  rate.set(Rate{10ms, 1});
  rate.share(1, 4);
  CHECK(taken(rate, Instant{1h}, 1s) == 25);
  rate.share(4, 4);
  CHECK(taken(rate, Instant{2h}, 1s) == 100);
}

TEST_SUITE_END();

}  // namespace
}  // namespace lictor::core
