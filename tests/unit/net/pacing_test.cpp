#include <map>
#include <vector>

#include <doctest/doctest.h>

#include "net/connections.h"
#include "net/poll_turns.h"
#include "net/rate_backoff.h"

namespace lictor::net {
namespace {

using namespace std::chrono_literals;

http::Watch watch(bool prompt, std::chrono::milliseconds wait = 25s) { return {1, wait, prompt}; }

// A store in which nothing ever changes: each query is held for as long as it asks.
struct Idle {
  PollTurns turns;
  Instant now{1h};
  std::multimap<Instant, RequestId> held{};
  std::map<RequestId, std::vector<Instant>> asked{};
  std::map<RequestId, Duration> longest_gap{};  // between two turns
  std::map<RequestId, Instant> last_end{};
  std::size_t most = 0;

  void ask_due() {
    while (const auto turn = turns.next(now)) {
      asked[turn->query].push_back(now);
      if (last_end.contains(turn->query)) {
        Duration& gap = longest_gap[turn->query];
        gap = std::max(gap, now - last_end[turn->query]);
      }
      held.emplace(now + turn->wait, turn->query);
      most = std::max(most, held.size());
    }
  }
  void run(Duration time) {
    const Instant end = now + time;
    ask_due();
    while (true) {
      const Instant answer = held.empty() ? Instant::max() : held.begin()->first;
      const Instant next = std::min(answer, turns.next_deadline());
      if (next > end) break;
      now = std::max(now, next);
      if (answer <= now) {
        const RequestId query = held.begin()->second;
        held.erase(held.begin());
        last_end[query] = now;
        turns.ended(now, query, 0ms);
      }
      ask_due();
    }
    now = end;
  }
};

// As many queues as a daemon leads, each with one prompt query and three others.
Idle leading(std::size_t queues) {
  Idle idle{.turns = {kPollConnections, queues * kPollsPerQueue}};
  for (std::uint64_t i = 1; i <= queues * kPollsPerQueue; ++i) {
    idle.turns.add(idle.now, RequestId{i}, watch(i % kPollsPerQueue == 1, 1h));
  }
  return idle;
}

}  // namespace

TEST_CASE("if all queries fit, each waits for as long as its caller wants, at once") {
  PollTurns turns{4, 4};
  const Instant now{1h};
  for (std::uint64_t i = 1; i <= 4; ++i) {
    turns.add(now, RequestId{i}, watch(i == 1));
    const auto turn = turns.next(now).value();
    CHECK(turn.query == RequestId{i});
    CHECK(turn.wait == 25s);
  }
  CHECK_FALSE(turns.next(now));
  CHECK(turns.next_deadline() == Instant::max());
  // An answer that came early, as Consul may send it: the rest of the wait is left.
  turns.ended(now + 10s, RequestId{2}, 0ms);
  CHECK(turns.next_deadline() <= now + 10s);
  CHECK(turns.next(now + 10s)->wait == 15s);
  turns.ended(now + 10s, RequestId{2}, 0ms);
  CHECK_FALSE(turns.next(now + 10s));  // no loop
  CHECK(turns.next_deadline() == now + 10s + 500ms);
}

TEST_CASE("a query that is removed makes room, whether it was under way or not") {
  PollTurns turns{1, 3};
  const Instant now{1h};
  for (std::uint64_t i = 1; i <= 3; ++i) turns.add(now, RequestId{i}, watch(true));
  CHECK(turns.next(now)->query == RequestId{1});
  CHECK_FALSE(turns.next(now));
  turns.remove(RequestId{2});
  turns.remove(RequestId{1});
  turns.remove(RequestId{7});
  CHECK(turns.next(now)->query == RequestId{3});
}

TEST_CASE("a new query goes before those of its kind that have had their turn") {
  PollTurns turns{1, 3};
  const Instant now{1h};
  turns.add(now, RequestId{1}, watch(true));
  static_cast<void>(turns.next(now));
  turns.ended(now + 1min, RequestId{1}, 0ms);
  turns.add(now + 2min, RequestId{2}, watch(true));
  CHECK(turns.next(now + 2min)->query == RequestId{2});
}

TEST_CASE("queries of the other kind that come later never make more than there are places") {
  PollTurns turns{4, 7};
  const Instant now{1h};
  for (std::uint64_t i = 1; i <= 4; ++i) {
    turns.add(now, RequestId{i}, watch(true));
    REQUIRE(turns.next(now));
  }
  for (std::uint64_t i = 5; i <= 7; ++i) turns.add(now, RequestId{i}, watch(false));
  CHECK_FALSE(turns.next(now));
  turns.ended(now + 2s, RequestId{1}, 0ms);
  CHECK(turns.next(now + 2s)->query == RequestId{5});  // their share
  CHECK_FALSE(turns.next(now + 2s));
}

TEST_CASE("an answer that was costly is not asked for again at once") {
  PollTurns turns{1, 2};
  const Instant now{1h};
  turns.add(now, RequestId{1}, watch(true));
  static_cast<void>(turns.next(now));
  turns.ended(now + 2s, RequestId{1}, 500ms);
  CHECK(turns.next_deadline() == now + 7s);
}

TEST_CASE("the queries of 5 to 250 queues take turns, rounds of 2 s and 6 s, within their places") {
  for (const std::size_t queues : {5U, 6U, 12U, 18U, 40U, 100U, 250U}) {
    CAPTURE(queues);
    Idle idle = leading(queues);
    idle.run(20s);  // all have begun
    const auto count = [&] {
      std::size_t all = 0;
      for (const auto& [query, times] : idle.asked) all += times.size();
      return all;
    };
    const std::size_t before = count();
    idle.longest_gap.clear();
    idle.run(120s);
    CHECK(idle.most <= kPollConnections);
    const double each = static_cast<double>(count() - before) / 120 / static_cast<double>(queues);
    CHECK(each <= 1.05);  // requests a second
    REQUIRE(idle.asked.size() == queues * kPollsPerQueue);
    for (const auto& [query, gap] : idle.longest_gap) {
      const bool prompt = query.value % kPollsPerQueue == 1;
      CHECK(gap <= (prompt ? 2'500ms : 7'000ms));
      // Few queues: a new task is always seen at once.
      if (prompt && queues <= 12) CHECK(gap <= 700ms);
    }
  }
}

TEST_CASE("a daemon that follows in all of its queues asks for their locks every 2 s") {
  Idle idle{.turns = {kPollConnections, 400}};
  for (std::uint64_t i = 1; i <= 100; ++i) {
    idle.turns.add(idle.now, RequestId{i}, watch(true, 1h));
  }
  idle.run(1min);
  for (const auto& [query, times] : idle.asked) {
    CHECK(times.size() >= 25);
    CHECK(times.size() <= 32);
  }
}

namespace {

using Refusal = RateBackoff::Kind;

// Refuses the requests at the end of each pause. Returns the pause that follows.
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

TEST_CASE("of refusals of requests that were sent together only the first counts") {
  RateBackoff backoff{Random{1}};
  const Instant sent{1h};
  backoff.refused(sent, sent, Refusal::kRead);
  const Instant held_until = backoff.held_until();
  for (int i = 0; i < 20; ++i) backoff.refused(sent + 10ms, sent, Refusal::kWrite);
  CHECK(backoff.held_until() == held_until);
  backoff.accepted(sent, Refusal::kRead);  // as when one of the burst came through
  CHECK(refuse_next(backoff, Refusal::kRead) >= 750ms);
}

TEST_CASE("a request accepted after a pause resets the pauses, for its own kind alone") {
  RateBackoff backoff{Random{1}};
  for (int i = 0; i < 4; ++i) refuse_next(backoff, Refusal::kWrite);
  backoff.accepted(backoff.held_until(), Refusal::kRead);
  CHECK(refuse_next(backoff, Refusal::kWrite) > 3s);
  backoff.accepted(backoff.held_until(), Refusal::kWrite);
  CHECK(refuse_next(backoff, Refusal::kWrite) < 1s);
}

}  // namespace lictor::net
