#include "net/rate_backoff.h"

#include <doctest/doctest.h>

using namespace lictor;
using namespace lictor::net;
using namespace std::chrono_literals;

namespace {

using Refusal = RateBackoff::Kind;

// Refuses what is sent at the end of each pause. Returns the pause that follows.
Duration refuse_next(RateBackoff& backoff, Refusal kind = Refusal::kWrite) {
  const Instant now = std::max(backoff.held_until(), Instant{1h});
  backoff.refused(now, now, kind);
  return backoff.held_until() - now;
}

}  // namespace

TEST_CASE("pauses after refusals in a row double from 0.5 s to 5 s, give or take a quarter") {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    RateBackoff backoff{Random{seed}};
    for (const Duration expected : {500ms, 1000ms, 2000ms, 4000ms, 5000ms, 5000ms}) {
      const Duration pause = refuse_next(backoff);
      CHECK(pause >= std::max<Duration>(500ms, expected * 3 / 4));
      CHECK(pause <= std::min<Duration>(5s, expected * 5 / 4));
    }
  }
}

TEST_CASE("the pauses of two daemons differ") {
  RateBackoff one{Random{1}};
  RateBackoff other{Random{2}};
  refuse_next(one);
  refuse_next(other);
  CHECK(refuse_next(one) != refuse_next(other));
}

TEST_CASE("of refusals of what was sent together only the first counts") {
  RateBackoff backoff{Random{1}};
  const Instant sent{1h};
  backoff.refused(sent, sent, Refusal::kRead);
  const Instant held_until = backoff.held_until();
  for (int i = 0; i < 20; ++i) backoff.refused(sent + 10ms, sent, Refusal::kWrite);
  CHECK(backoff.held_until() == held_until);
  backoff.accepted(sent, Refusal::kRead);  // as when one of the burst came through
  CHECK(refuse_next(backoff, Refusal::kRead) >= 750ms);
}

TEST_CASE("what is accepted after a pause starts again, for its own kind alone") {
  RateBackoff backoff{Random{1}};
  for (int i = 0; i < 4; ++i) refuse_next(backoff, Refusal::kWrite);
  backoff.accepted(backoff.held_until(), Refusal::kRead);
  CHECK(refuse_next(backoff, Refusal::kWrite) > 3s);
  backoff.accepted(backoff.held_until(), Refusal::kWrite);
  CHECK(refuse_next(backoff, Refusal::kWrite) < 1s);
}
