#include "app/reload.h"

#include <atomic>
#include <future>
#include <string>
#include <thread>

#include <doctest/doctest.h>

namespace lictor::app {
namespace {

// Asks on the loop, as a signal does.
void ask(runtime::Loop& loop, Reloader& reloader) {
  REQUIRE(loop.post([&] { reloader.request(); }));
}

}  // namespace

TEST_CASE("a reload loads on its own thread and is applied on the loop's thread") {
  const auto loop = *runtime::Loop::create();
  std::thread::id loaded_on;
  std::thread::id applied_on;
  Reloader reloader{*loop,
                    [&]() -> Reloader::Apply {
                      loaded_on = std::this_thread::get_id();
                      return [&] { applied_on = std::this_thread::get_id(); };
                    },
                    [&] { loop->stop(); }};
  ask(*loop, reloader);
  loop->run();
  CHECK(applied_on == std::this_thread::get_id());
  CHECK(loaded_on != applied_on);
  CHECK_FALSE(reloader.busy());
}

TEST_CASE("requests during a reload lead to one more, after it; the loop goes on meanwhile") {
  const auto loop = *runtime::Loop::create();
  std::promise<void> readable;
  std::shared_future<void> wait{readable.get_future()};
  std::atomic<int> loads = 0;
  std::string order;
  Reloader reloader{*loop,
                    [&]() -> Reloader::Apply {
                      wait.wait();
                      const int number = ++loads;
                      return [&order, number] { order += std::to_string(number); };
                    },
                    [&] {
                      order += "idle";
                      loop->stop();
                    }};
  for (int i = 0; i < 3; ++i) ask(*loop, reloader);
  REQUIRE(loop->post([&] {
    CHECK(reloader.busy());
    CHECK(loads == 0);
    readable.set_value();
  }));
  loop->run();
  CHECK(order == "12idle");
}

TEST_CASE("a configuration loaded after the loop's end is dropped") {
  const auto loop = *runtime::Loop::create();
  std::promise<void> readable;
  bool applied = false;
  {
    Reloader reloader{*loop,
                      [&]() -> Reloader::Apply {
                        readable.get_future().wait();
                        return [&] { applied = true; };
                      },
                      [] {}};
    ask(*loop, reloader);
    REQUIRE(loop->post([&] { loop->stop(); }));
    loop->run();
    CHECK(reloader.busy());
    readable.set_value();
  }
  CHECK_FALSE(applied);
}

}  // namespace lictor::app
