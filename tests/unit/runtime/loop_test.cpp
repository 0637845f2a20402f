#include "runtime/loop.h"

#include <unistd.h>

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <optional>
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

struct Stepped : Task {
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

namespace {

// A loop that runs and waits, on a thread of its own.
struct Running {
  explicit Running(Task& task) : loop(*Loop::create()) {
    loop->add(task);
    loop->on_turn(kNever, [] {});
    thread = std::thread{[this] { loop->run(); }};
    // It has made its first turn, and then waits or is about to.
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

  // Until the loop's thread is not at it any more, which nobody can see: until a turn was lent.
  void lend_until(const std::function<bool()>& done) {
    while (!done()) {
      loop->lend();
      std::this_thread::yield();
    }
  }

  std::unique_ptr<Loop> loop;
  std::thread thread;
};

}  // namespace

TEST_CASE("a lent thread makes the turn itself while the loop waits") {
  Stepped task;
  std::atomic<bool> here = false;
  const auto lender = std::this_thread::get_id();
  std::optional<Running> running;
  bool own = true;
  task.act = [&] {
    if (std::this_thread::get_id() != lender) return;
    own = running->loop->on_own_thread();
    here = true;
  };
  running.emplace(task);
  running->lend_until([&] { return here.load(); });
  CHECK_FALSE(own);
}

TEST_CASE("of many that lend their threads each gets its turn, and never two at a time") {
  constexpr int kThreads = 4, kTimes = 5'000;
  Stepped task;
  std::atomic<int> asked = 0, seen = 0, at_it = 0;
  std::atomic<bool> two = false;
  task.act = [&] {
    two = two || at_it++ != 0;
    seen = asked.load();
    --at_it;
  };
  {
    Running running{task};
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

TEST_CASE("a deadline that a lent turn leaves behind is kept by the loop") {
  Stepped task;
  std::atomic<bool> asked = false, kept = false;
  std::atomic<Running*> running = nullptr;
  task.act = [&] {
    Running* const known = running;
    if (known == nullptr) return;
    if (!known->loop->on_own_thread() && !asked) {
      task.due = boot_now() + 10ms;
      asked = true;
    } else if (asked) {
      kept = true;
    }
  };
  Running alive{task};
  running = &alive;
  alive.lend_until([&] { return asked.load(); });
  while (!kept) std::this_thread::yield();
  running = nullptr;
}

TEST_CASE("a turn may lend its own thread, and what it does so is seen to by another turn") {
  Stepped task;
  std::atomic<Running*> running = nullptr;
  std::atomic<int> turns = 0;
  task.act = [&] {
    Running* const known = running;
    if (known == nullptr || turns >= 10) return;
    ++turns;
    known->loop->lend();
  };
  Running alive{task};
  running = &alive;
  alive.lend_until([&] { return turns == 10; });
}

TEST_CASE("a lent turn may end the loop, and after its end none is made") {
  auto loop = Loop::create();
  REQUIRE(loop);
  Stepped task;
  (*loop)->add(task);
  (*loop)->on_turn(kNever, [] {});
  const auto lender = std::this_thread::get_id();
  task.act = [&] {
    if (std::this_thread::get_id() == lender) (*loop)->stop();
  };
  std::atomic<bool> ended = false;
  std::thread thread{[&] {
    (*loop)->run();
    ended = true;
  }};
  while (!ended) {
    (*loop)->lend();
    std::this_thread::yield();
  }
  thread.join();
  const int steps = task.steps;
  (*loop)->lend();
  CHECK(task.steps == steps);
}

TEST_SUITE_END();

}  // namespace lictor::runtime
