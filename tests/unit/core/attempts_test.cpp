#include "core/attempts.h"

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
  CHECK(attempts.next_held()->task->key == "3");
  attempts.set_state(*attempts.next_held(), State::kRunning);
  CHECK(attempts.next_held()->task->key == "2");
  attempts.remove(*attempts.next_held());
  CHECK(attempts.next_held()->task->key == "1");
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
  CHECK(attempts.next_held() == nullptr);
  attempts.remove(first);
  CHECK(attempts.next_held() == &second);
  attempts.set_state(second, State::kRunning);
  attempts.set_state(third, State::kHeld);
  CHECK(attempts.next_held() == &third);
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
