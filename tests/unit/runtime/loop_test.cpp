#include "runtime/loop.h"

#include <thread>
#include <vector>

#include <doctest/doctest.h>

namespace lictor::runtime {

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

TEST_SUITE_END();

}  // namespace lictor::runtime
