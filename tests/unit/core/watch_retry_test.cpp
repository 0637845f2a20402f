// From where a watch asks again after it ended without an answer. The tasks' watch: listing_test.

#include <utility>

#include <doctest/doctest.h>

#include "core/control.h"
#include "core/leadership/lock.h"
#include "core/requests.h"

using namespace lictor;
using namespace lictor::core;
using namespace std::chrono_literals;

namespace {

template <class Effect>
Effect last(const Effects& out) {
  REQUIRE(std::holds_alternative<Effect>(out.back()));
  return std::get<Effect>(out.back());
}

}  // namespace

TEST_SUITE_BEGIN("core");

TEST_CASE("the control key's watch keeps its index over one failure, and over refusals by limits") {
  Requests requests;
  Control control{requests};
  Effects out;
  Instant now{1h};
  const auto answer = [&](ControlRead reply) {
    reply.request = last<WatchControl>(out).request;
    static_cast<void>(control.on(now, reply, out));
    if (!reply.ok) {
      now = control.next_deadline();
      control.on_time(now, out);
    }
    return last<WatchControl>(out).index;
  };
  ControlRead read;
  read.ok = read.found = true;
  read.consul_index = 9;
  ControlRead lost;
  ControlRead refused;
  refused.over_limit = true;

  control.start(out);
  CHECK(answer(lost) == 0);  // by a quorum, until there was an answer
  CHECK(answer(read) == 9);
  CHECK(answer(lost) == 9);
  CHECK(answer(read) == 9);
  CHECK(answer(lost) == 9);
  for (int i = 0; i < 5; ++i) CHECK(answer(refused) == 9);
  CHECK(answer(lost) == 0);
  CHECK(answer(read) == 9);
  CHECK(answer(lost) == 9);
}

TEST_CASE("the leader key's watch keeps its index over one failure, and over refusals by limits") {
  const QueueOptions options;
  Requests requests;
  StoreTrouble trouble;
  Lock lock{options, {}, requests, trouble};
  Effects out;
  Instant now{1h};
  const auto answer = [&](LeaderRead reply) {
    reply.request = last<ReadLeader>(out).request;
    static_cast<void>(lock.on(now, reply, out));
    if (!reply.ok) {
      now = lock.next_deadline();
      lock.on_time(now, out);
    }
    return last<ReadLeader>(out).index;
  };
  LeaderRead held;
  held.ok = held.found = true;
  held.session = "another";
  held.holder = "b";
  held.modify_index = 5;
  held.consul_index = 9;
  LeaderRead refused;
  refused.over_limit = true;

  lock.campaign(now, "ours", out);
  CHECK(answer(held) == 9);
  CHECK(answer({}) == 9);
  CHECK(answer(held) == 9);
  for (int i = 0; i < 5; ++i) CHECK(answer(refused) == 9);
  CHECK(answer({}) == 9);
  CHECK(answer({}) == 0);
  CHECK(answer(held) == 9);
}

TEST_CASE(
    "a lock whose acquisition Consul's limits refused is asked for again, and nothing is read") {
  const QueueOptions options;
  Requests requests;
  StoreTrouble trouble;
  Lock lock{options, {}, requests, trouble};
  Effects out;
  const Instant now{1h};
  lock.campaign(now, "ours", out);
  LeaderRead released;
  released.ok = released.found = released.released = true;
  released.modify_index = released.consul_index = 9;
  released.request = last<ReadLeader>(out).request;
  static_cast<void>(lock.on(now, released, out));
  LockReplied refused;
  refused.request = last<AcquireLock>(out).request;
  refused.answer = LockReplied::Answer::kOverLimit;
  const std::size_t asked = out.size();
  static_cast<void>(lock.on(now, refused, out));
  for (std::size_t i = asked; i < out.size(); ++i) CHECK(std::holds_alternative<Fact>(out[i]));
  const Instant again = lock.next_deadline();
  CHECK(again >= now + 500ms);
  lock.on_time(again, out);
  CHECK(last<AcquireLock>(out).free_at == 9);
}

TEST_SUITE_END();
