#include "runtime/loop.h"

#include <unistd.h>

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "base/clock.h"

namespace lictor::runtime {
namespace {

using namespace std::chrono_literals;

TEST_CASE("functions of other threads run on the loop's thread, in order, none after its end") {
  const auto loop = Loop::create().value();
  std::vector<int> seen;
  std::thread::id where;
  std::thread other{[&] {
    for (int i = 0; i < 3; ++i) CHECK(loop->post([&, i] { seen.push_back(i); }));
    CHECK(loop->post([&] {
      where = std::this_thread::get_id();
      loop->stop();
      // Posted before the loop has ended, so it is run.
      CHECK(loop->post([&] { seen.push_back(3); }));
    }));
  }};
  loop->run();
  other.join();
  CHECK(seen == std::vector<int>{0, 1, 2, 3});
  CHECK(where == std::this_thread::get_id());
  CHECK_FALSE(loop->post([&] { seen.push_back(4); }));
}

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

// A loop that runs and waits, on a thread of its own.
struct Running {
  explicit Running(LoopMember& member) : loop(*Loop::create()) {
    loop->add(member);
    loop->on_turn(kNever, [] {});
    thread = std::thread{[this] { loop->run(); }};
    std::promise<void> begun;
    REQUIRE(loop->post([&] { begun.set_value(); }));
    begun.get_future().get();
  }
  ~Running() {
    loop->post([this] { loop->stop(); });
    thread.join();
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  // Nobody can see when the loop's thread waits: until one turn was lent.
  void lend_until(const std::function<bool()>& done) const {
    while (!done()) {
      loop->lend();
      std::this_thread::yield();
    }
  }

  std::unique_ptr<Loop> loop;
  std::thread thread;
};

TEST_CASE("a member that gets work from a member after it is stepped again at once") {
  const auto loop = Loop::create().value();
  Stepped first, second;
  loop->add(first);
  loop->add(second);
  loop->on_turn(kNever, [] {});
  first.act = [&] {
    if (first.steps == 3) loop->stop();
  };
  second.act = [&] { first.due = Instant::min(); };
  loop->run();
  CHECK(first.steps == 3);
}

TEST_CASE("a watched descriptor steps the members when it is readable") {
  const auto loop = Loop::create().value();
  int ends[2] = {};
  REQUIRE(pipe(ends) == 0);
  Stepped task;
  loop->add(task);
  loop->watch(ends[0]);
  loop->on_turn(kNever, [] {});
  task.act = [&] {
    if (task.steps == 2) loop->stop();
    REQUIRE(write(ends[1], "x", 1) == 1);
  };
  loop->run();
  CHECK(task.steps == 2);
  for (const int end : ends) close(end);
}

TEST_CASE("a lent thread makes the turn, and the loop keeps the deadline that it leaves behind") {
  Stepped member;
  std::atomic<bool> lent = false, kept = false;
  const auto lender = std::this_thread::get_id();
  member.act = [&] {
    const bool is_lent = std::this_thread::get_id() == lender;
    if (is_lent && !lent) member.due = boot_now() + 10ms;
    kept = kept || (lent && !is_lent);
    lent = lent || is_lent;
  };
  const Running running{member};
  running.lend_until([&] { return lent.load(); });
  while (!kept) std::this_thread::yield();  // for ever, if it was forgotten
}

TEST_CASE("each of many threads lent at once gets its turn, and never two at a time") {
  constexpr int kThreads = 4, kTimes = 2'000;
  Stepped member;
  std::atomic<int> asked = 0, seen = 0, turns = 0;
  std::atomic<bool> two = false;
  member.act = [&] {
    two = two || turns++ != 0;
    seen = asked.load();
    --turns;
  };
  {
    const Running running{member};
    std::vector<std::thread> lenders;
    for (int i = 0; i < kThreads; ++i) {
      lenders.emplace_back([&] {
        for (int n = 0; n < kTimes; ++n) {
          const int mine = ++asked;
          running.loop->lend();
          while (seen < mine) std::this_thread::yield();  // for ever, if it was forgotten
        }
      });
    }
    for (std::thread& lender : lenders) lender.join();
  }
  CHECK(seen == kThreads * kTimes);
  CHECK_FALSE(two);
}

TEST_CASE("a turn may lend its own thread, or end the loop, after which none is made") {
  Stepped member;
  std::atomic<Loop*> loop = nullptr;
  std::atomic<int> turns = 0;
  member.act = [&] {
    Loop* const known = loop;
    if (known == nullptr) return;
    if (++turns < 10) known->lend();
    if (turns == 20) known->stop();
  };
  Running running{member};
  loop = running.loop.get();
  running.lend_until([&] { return turns == 20; });
  while (running.loop->post([] {})) std::this_thread::yield();  // until run() has returned
  running.loop->lend();
  CHECK(turns == 20);
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

}  // namespace
}  // namespace lictor::runtime
