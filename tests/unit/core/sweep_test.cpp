#include "core/sweep.h"

#include <doctest/doctest.h>

namespace lictor::core {
namespace {

using Keys = std::vector<std::string>;
constexpr double kInPart = 1'024;

TasksListed reply(std::uint64_t index, const Keys& keys) {
  TasksListed listed;
  listed.ok = true;
  listed.consul_index = index;
  listed.keys = KeyList{keys};
  return listed;
}

Keys many(const std::string& prefix, int count) {
  Keys keys;
  for (int i = 0; i < count; ++i) keys.push_back(prefix + std::to_string(10'000 + i));
  return keys;
}

Keys operator+(Keys a, const Keys& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// What the sweep asks for while everything has changed, and the keys that it wants one by one.
Keys all_steps(Sweep& sweep, const Keys& keys, Keys& single) {
  Keys steps;
  while (sweep.running()) {
    const Sweep::Step step = sweep.step(kInPart);
    steps.push_back(step.below + (step.full ? "*" : "?"));
    Keys below;
    for (const std::string& key : keys) {
      if (key.starts_with(step.below)) below.push_back(key);
    }
    for (std::string& key : sweep.accept(reply(9, step.full ? Keys{} : below), kInPart)) {
      single.push_back(std::move(key));
    }
  }
  return steps;
}

}  // namespace

TEST_CASE("a sweep ends at once when the index says that nothing changed") {
  Sweep sweep;
  sweep.seen(7);
  sweep.start();
  CHECK(sweep.step(kInPart).below.empty());
  CHECK_FALSE(sweep.step(kInPart).full);
  CHECK(sweep.accept(reply(7, many("t/", 5'000)), kInPart).empty());
  CHECK_FALSE(sweep.running());
  CHECK(sweep.seen() == 7);
}

TEST_CASE("a sweep goes down to the parts that changed") {
  Sweep sweep;
  sweep.seen(7);
  sweep.start();
  CHECK(sweep.accept(reply(9, many("t/a", 1'500) + many("t/b", 1'500)), kInPart).empty());
  CHECK(sweep.step(kInPart).below == "t/a");
  sweep.accept(reply(8, many("t/a", 1'500)), kInPart);
  CHECK(sweep.step(kInPart).below == "t/a10");  // "t/a1" is common to all
  CHECK_FALSE(sweep.step(kInPart).full);
  sweep.accept(reply(6, many("t/a", 1'000)), kInPart);
  CHECK(sweep.step(kInPart).below == "t/a11");
  sweep.accept(reply(8, many("t/a", 500)), kInPart);
  CHECK(sweep.step(kInPart).below == "t/a11");
  CHECK(sweep.step(kInPart).full);
  sweep.accept(reply(12, {}), kInPart);
  CHECK(sweep.step(kInPart).below == "t/b");
  sweep.accept(reply(7, many("t/b", 1'500)), kInPart);
  CHECK_FALSE(sweep.running());
  CHECK(sweep.seen() == 9);  // what came later is looked for by the next
}

TEST_CASE("a sweep covers every key, by a part or by itself") {
  Keys single;
  Sweep sweep;
  sweep.start();
  const Keys keys = Keys{"t/", "t/.x", "t/.y", "t/a", "t/a/", "t/a//b", "t/a//c"} +
                    many("t/a0", 2'000) + Keys{"t/\xc3\xa4", "t/\xc3\xa4x", "t/\xc3\xb6"};
  const Keys steps = all_steps(sweep, keys, single);
  CHECK(single == Keys{"t/", "t/.x", "t/.y", "t/\xc3\xa4", "t/\xc3\xa4x", "t/\xc3\xb6", "t/a"});
  CHECK(steps == Keys{"?", "t/a?", "t/a/*", "t/a0?", "t/a010*", "t/a011*"});
}

TEST_CASE("what was never seen is read without asking whether it changed, unless it is large") {
  Sweep sweep;
  sweep.start();
  sweep.accept(reply(9, many("t/a", 400) + many("t/b", 400) + many("t/c", 400)), kInPart);
  CHECK(sweep.step(kInPart).below == "t/a");
  CHECK(sweep.step(kInPart).full);
  sweep.accept(reply(9, {}), kInPart);
  CHECK(sweep.step(300).below == "t/b");  // the tasks are larger than was thought
  CHECK_FALSE(sweep.step(300).full);
  sweep.accept(reply(9, many("t/b", 400)), 300);
  CHECK(sweep.step(300).below == "t/b100");
  CHECK(sweep.step(300).full);
}

TEST_CASE("a sweep ends when keys cannot be told apart") {
  Keys single;
  Sweep sweep;
  sweep.start();
  const Keys steps = all_steps(sweep, Keys(5'000, "t/a"), single);  // as non-UTF-8 may look
  CHECK(steps == Keys{"?"});
  CHECK(single.size() == 5'000);
}

}  // namespace lictor::core
