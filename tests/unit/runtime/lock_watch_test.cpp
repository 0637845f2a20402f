#include "runtime/lock_watch.h"

#include <doctest/doctest.h>

namespace lictor::runtime {
namespace {

constexpr std::uint32_t kCount = 3;

core::ReadLeader read(std::uint64_t request, std::uint32_t partition, std::uint64_t index) {
  return {RequestId{request}, false, index, {kCount, partition}};
}

// Each lock with its ModifyIndex; 0: there is no such key.
wire::LocksRead reply(std::uint64_t consul_index, std::vector<std::uint64_t> modified) {
  wire::LocksRead read{true, {}, consul_index, {}};
  for (const std::uint64_t index : modified) {
    core::LeaderRead lock;
    lock.ok = true;
    lock.found = index != 0;
    lock.modify_index = index;
    lock.consul_index = consul_index;
    read.locks.push_back(lock);
  }
  return read;
}

TEST_CASE("one query serves the reads of all locks, and each hears of its own alone") {
  LockWatch watch;
  CHECK_FALSE(watch.next_query());
  CHECK_FALSE(watch.add(read(1, 0, 10)));
  CHECK_FALSE(watch.add(read(2, 1, 11)));
  CHECK(watch.next_query() == 0);
  CHECK_FALSE(watch.next_query());  // it is under way
  CHECK(watch.on_reply(reply(12, {10, 11, 12})).empty());
  CHECK(watch.next_query() == 12);
  const auto answers = watch.on_reply(reply(15, {10, 15, 12}));
  REQUIRE(answers.size() == 1);
  CHECK(answers[0].request == RequestId{2});
  CHECK(answers[0].modify_index == 15);
  CHECK(answers[0].consul_index == 15);
}

TEST_CASE("a change that the last reply shows is reported at once") {
  LockWatch watch;
  CHECK_FALSE(watch.add(read(1, 0, 10)));
  static_cast<void>(watch.next_query());
  CHECK(watch.on_reply(reply(15, {10, 15, 0})).empty());
  CHECK(watch.add(read(2, 1, 11)).value().modify_index == 15);
  CHECK_FALSE(watch.add(read(3, 2, 11)).value().found);
  CHECK_FALSE(watch.add(read(4, 2, 16)));  // the key was seen after that reply
}

TEST_CASE("all hear of a query without a change, of an index that fell, and of a second failure") {
  LockWatch watch;
  CHECK_FALSE(watch.add(read(1, 0, 10)));
  static_cast<void>(watch.next_query());
  CHECK(watch.on_reply(reply(15, {10, 11, 12})).empty());
  static_cast<void>(watch.next_query());
  std::uint64_t consul_index = 0;
  SUBCASE("no change") { consul_index = 15; }
  SUBCASE("an index that fell") { consul_index = 3; }
  SUBCASE("a second failure in a row") {}
  if (consul_index == 0) {
    CHECK(watch.on_reply({false, "cut off", 0, {}}).empty());
    CHECK(watch.next_query() == 15);
    CHECK(watch.on_reply({false, "429", 0, {}, true}).empty());  // not counted
    CHECK(watch.next_query() == 15);
  }
  const auto answers = watch.on_reply(consul_index == 0 ? wire::LocksRead{false, "no answer", 0, {}}
                                                        : reply(consul_index, {10, 11, 12}));
  REQUIRE(answers.size() == 1);
  CHECK(answers[0].ok == (consul_index != 0));
  CHECK(answers[0].error == (consul_index == 0 ? "no answer" : ""));
  CHECK_FALSE(watch.next_query());  // nothing waits
}

TEST_CASE("a cancelled read is not answered") {
  LockWatch watch;
  CHECK_FALSE(watch.add(read(1, 0, 10)));
  CHECK(watch.cancel(RequestId{1}));
  CHECK_FALSE(watch.cancel(RequestId{1}));
  CHECK_FALSE(watch.next_query());
}

}  // namespace
}  // namespace lictor::runtime
