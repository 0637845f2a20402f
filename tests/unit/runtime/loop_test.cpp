#include "runtime/loop.h"

#include <unistd.h>

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "base/clock.h"

namespace lictor::runtime {

using namespace std::chrono_literals;

TEST_SUITE_BEGIN("runtime");

TEST_CASE("what other threads post is run on the loop's thread, in order, and none after its end") {
  auto loop = Loop::create();
  REQUIRE(loop);
  std::vector<int> seen;
  std::thread::id where;
  std::thread other{[&] {
    for (int i = 0; i < 3; ++i) CHECK((*loop)->post([&, i] { seen.push_back(i); }));
    CHECK((*loop)->post([&] {
      where = std::this_thread::get_id();
      (*loop)->stop();
      // Taken, since the loop has not ended yet; so it is run.
      CHECK((*loop)->post([&] { seen.push_back(3); }));
    }));
  }};
  (*loop)->run();
  other.join();
  CHECK(seen == std::vector<int>{0, 1, 2, 3});
  CHECK(where == std::this_thread::get_id());
  CHECK_FALSE((*loop)->post([&] { seen.push_back(4); }));
}

namespace {

struct Stepped : LoopMember {
  std::function<void()> act;
  Instant due = Instant::max();
  int steps = 0;

  void step(Instant) override {
    ++steps;
    due = Instant::max();
    if (act) act();
  }
  [[nodiscard]] Instant next_deadline() const override { return due; }
};

// Longer than anybody waits for a test: a turn that is not due does not come.
constexpr Duration kNever = std::chrono::hours{1};

}  // namespace

TEST_CASE("a task that is given something to do by one stepped after it is stepped again at once") {
  auto loop = Loop::create();
  REQUIRE(loop);
  Stepped first, second;
  (*loop)->add(first);
  (*loop)->add(second);
  (*loop)->on_turn(kNever, [] {});
  first.act = [&] {
    if (first.steps == 3) (*loop)->stop();
  };
  second.act = [&] { first.due = Instant::min(); };
  (*loop)->run();
  CHECK(first.steps == 3);
}

TEST_CASE("what is watched steps the tasks when it is readable") {
  auto loop = Loop::create();
  REQUIRE(loop);
  int ends[2] = {};
  REQUIRE(pipe(ends) == 0);
  Stepped task;
  (*loop)->add(task);
  (*loop)->watch(ends[0]);
  (*loop)->on_turn(kNever, [] {});
  task.act = [&] {
    if (task.steps == 2) (*loop)->stop();
    REQUIRE(write(ends[1], "x", 1) == 1);
  };
  (*loop)->run();
  CHECK(task.steps == 2);
  for (const int end : ends) close(end);
}

TEST_CASE("clocks that go on together have not stepped, one that stands still or is set has") {
  const Instant boot{1h};
  const WallTime wall{500'000h};
  ClockOffset offset;
  CHECK_FALSE(offset.stepped(boot, wall));
  CHECK_FALSE(offset.stepped(boot + 10s, wall + 10s + 1ms));
  CHECK(offset.stepped(boot + 11s, wall + 40s));  // the guest stood still for 29 s
  CHECK_FALSE(offset.stepped(boot + 12s, wall + 41s));
  CHECK(offset.stepped(boot + 13s, wall + 41s));  // set back
  CHECK_FALSE(offset.stepped(boot + 14s, wall + 42s));
}

TEST_SUITE_END();

}  // namespace lictor::runtime
