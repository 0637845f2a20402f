#include "core/attempts.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>

using namespace lictor;
using namespace lictor::core;
using namespace std::chrono_literals;

namespace {

using State = Attempt::State;

std::shared_ptr<const Task> task(const std::string& key, std::uint64_t created) {
  auto made = std::make_shared<Task>();
  made->key = key;
  made->create_index = created;
  return made;
}

}  // namespace

TEST_SUITE_BEGIN("core");

TEST_CASE("held attempts start in the tasks' order, whenever they were claimed") {
  Attempts attempts;
  for (std::uint64_t i = 1; i <= 3; ++i) {
    Attempt& a = attempts.add(AttemptId{i}, task(std::to_string(i), 10 - i));
    attempts.set_state(a, State::kHeld);
  }
  CHECK(attempts.count(State::kHeld) == 3);
  CHECK(attempts.next_held(true)->task->key == "3");
  attempts.set_state(*attempts.next_held(true), State::kRunning);
  CHECK(attempts.next_held(true)->task->key == "2");
  attempts.remove(*attempts.next_held(true));
  CHECK(attempts.next_held(true)->task->key == "1");
  CHECK(attempts.find("2") == nullptr);
  CHECK(attempts.find(AttemptId{2}) == nullptr);
  CHECK(attempts.find(AttemptId{3})->state == State::kRunning);
  CHECK(attempts.size() == 2);
}

TEST_CASE("a held attempt waits for the claims made before it, and for no later one") {
  Attempts attempts;
  Attempt& first = attempts.add(AttemptId{1}, task("a", 1));
  Attempt& second = attempts.add(AttemptId{2}, task("b", 2));
  Attempt& third = attempts.add(AttemptId{3}, task("c", 3));
  attempts.set_state(second, State::kHeld);
  CHECK(attempts.next_held(true) == nullptr);
  CHECK(attempts.next_held(false) == &second);  // where tasks run side by side it does not
  attempts.remove(first);
  CHECK(attempts.next_held(true) == &second);
  attempts.set_state(second, State::kRunning);
  attempts.set_state(third, State::kHeld);
  CHECK(attempts.next_held(true) == &third);
}

TEST_CASE("what was claimed ahead is ready when it is due, in the tasks' order among all others") {
  const WallTime due{100s};
  for (const std::uint64_t early : {3, 1'000}) {  // few, and many
    CAPTURE(early);
    Attempts attempts;
    const auto timed = [&](std::uint64_t i) {
      auto made = std::make_shared<Task>(*task(std::to_string(i), i));
      made->execute_at = due;
      return made;
    };
    for (std::uint64_t i = early; i > 0; --i) {
      Attempt& a = attempts.add(AttemptId{early - i + 1}, timed(i));
      attempts.set_early(a, due);
      if (i != 2) attempts.set_state(a, State::kHeld);
      CHECK(attempts.is_early(a));
    }
    CHECK(attempts.early() == early);
    CHECK(attempts.next_held(true) == nullptr);
    attempts.advance(due - 1ms);
    CHECK(attempts.next_due() == due);
    CHECK(attempts.last_early()->task->key == "2");  // its claim is not settled
    attempts.advance(due);
    CHECK(attempts.early() == 0);
    CHECK(attempts.ready_size() == early - 1);
    CHECK_FALSE(attempts.next_due().has_value());
    CHECK_FALSE(attempts.is_early(*attempts.find("1")));

    attempts.set_state(*attempts.find("2"), State::kHeld);  // it was claimed after all
    Attempt& untimed = attempts.add(AttemptId{early + 1}, task("0", 5'000));
    attempts.set_state(untimed, State::kHeld);
    std::vector<std::string> order;
    while (Attempt* next = attempts.next_held(true)) {
      order.push_back(next->task->key);
      attempts.set_state(*next, State::kRunning);
    }
    REQUIRE(order.size() == early + 1);
    for (std::uint64_t i = 0; i <= early; ++i) CHECK(order[i] == std::to_string(i));
    CHECK(attempts.ready_size() == 0);
  }
}

TEST_CASE("what is given back or withdrawn leaves those that are due at once") {
  Attempts attempts;
  const WallTime due{100s};
  for (std::uint64_t i = 0; i < 100; ++i) {
    Attempt& a = attempts.add(AttemptId{i + 1}, task(std::to_string(i), i));
    attempts.set_early(a, due);
    attempts.set_state(a, State::kHeld);
  }
  attempts.remove(*attempts.find("7"));
  attempts.advance(due);
  attempts.remove(*attempts.find("0"));
  attempts.set_state(*attempts.find("1"), State::kSettling);
  CHECK(attempts.ready_size() == 97);
  CHECK(attempts.next_held(true)->task->key == "2");
  // The clock was set back: what is claimed ahead now is early, and what was due stays so.
  Attempt& late = attempts.add(AttemptId{200}, task("late", 200));
  attempts.set_early(late, due);
  attempts.set_state(late, State::kHeld);
  CHECK(attempts.early() == 1);
  CHECK_FALSE(attempts.is_early(*attempts.find("2")));
  attempts.remove(*attempts.find("2"));
  CHECK(attempts.early() == 1);
  CHECK(attempts.ready_size() == 96);
  attempts.clear();
  CHECK(attempts.early() == 0);
  CHECK(attempts.ready_size() == 0);
}

TEST_CASE("only what runs times out") {
  Attempts attempts;
  Attempt& a = attempts.add(AttemptId{1}, task("a", 1));
  Attempt& b = attempts.add(AttemptId{2}, task("b", 2));
  attempts.set_state(a, State::kRunning);
  attempts.set_state(b, State::kRunning);
  attempts.set_timeout(a, Instant{10s});
  attempts.set_timeout(b, Instant{10s});
  CHECK(attempts.next_timed_out(Instant{9s}) == nullptr);
  CHECK(attempts.next_timeout() == Instant{10s});
  CHECK(attempts.next_timed_out(Instant{10s}) == &a);
  attempts.set_state(a, State::kSettling);
  CHECK(attempts.next_timed_out(Instant{10s}) == &b);
  attempts.set_timeout(b, Instant{20s});
  CHECK(attempts.next_timeout() == Instant{20s});
  attempts.remove(b);
  CHECK(attempts.next_timeout() == Instant::max());
}

TEST_CASE("last chances are counted once each") {
  Attempts attempts;
  Attempt& a = attempts.add(AttemptId{1}, task("a", 1));
  CHECK_FALSE(attempts.has_last_chance());
  attempts.mark_last_chance(a);
  attempts.mark_last_chance(a);
  CHECK(attempts.has_last_chance());
  attempts.remove(a);
  CHECK_FALSE(attempts.has_last_chance());
  CHECK(attempts.empty());
  attempts.mark_last_chance(attempts.add(AttemptId{2}, task("a", 1)));
  attempts.clear();
  CHECK_FALSE(attempts.has_last_chance());
  CHECK(attempts.count(State::kClaiming) == 0);
}

TEST_SUITE_END();
