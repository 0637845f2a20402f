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

// Has seen the locks at 10, 11 and 12, and waits for changes of the first from there.
struct Watched : LockWatch {
  Watched() {
    CHECK_FALSE(add(read(1, 0, 0)));
    CHECK(next_query() == 0);
    CHECK_FALSE(next_query());  // it is under way
    CHECK(on_reply(0, reply(15, {10, 11, 12})).size() == 1);
    CHECK_FALSE(add(read(1, 0, 10)));
    CHECK(next_query() == 15);
    CHECK_FALSE(next_query());
  }
};

TEST_CASE("one query serves the reads of all locks, and each hears of its own alone") {
  Watched watch;
  CHECK_FALSE(watch.add(read(2, 1, 11)));
  const auto answers = watch.on_reply(15, reply(18, {10, 18, 12}));
  REQUIRE(answers.size() == 1);
  CHECK(answers[0].request == RequestId{2});
  CHECK(answers[0].modify_index == 18);
  CHECK(answers[0].consul_index == 18);
  CHECK(watch.next_query() == 18);
}

TEST_CASE("reads that do not wait share a query that is sent after them, beside the watch") {
  Watched watch;
  CHECK_FALSE(watch.add(read(2, 1, 0)));
  CHECK_FALSE(watch.add(read(3, 2, 0)));
  CHECK(watch.next_query() == 0);
  CHECK_FALSE(watch.add(read(4, 2, 0)));
  CHECK_FALSE(watch.next_query());  // one at a time
  CHECK(watch.on_reply(15, reply(18, {10, 18, 12})).empty());
  CHECK(watch.next_query() == 18);
  bool fails = false;
  SUBCASE("answered") {}
  SUBCASE("failed, which the others do not hear of") { fails = true; }
  const auto answers = watch.on_reply(
      0, fails ? wire::LocksRead{false, "no answer", 0, {}} : reply(19, {10, 18, 19}));
  REQUIRE(answers.size() == 2);
  CHECK(answers[0].request == RequestId{2});
  CHECK(answers[0].ok == !fails);
  CHECK(answers[0].modify_index == (fails ? 0 : 18));
  CHECK(watch.next_query() == 0);
  CHECK(watch.on_reply(0, reply(19, {10, 18, 19})).size() == 1);
}

TEST_CASE("a change that the last reply shows is reported at once") {
  Watched watch;
  CHECK(watch.add(read(2, 1, 9)).value().modify_index == 11);
  CHECK(watch.on_reply(15, reply(16, {10, 15, 0})).empty());
  CHECK_FALSE(watch.add(read(3, 2, 12)).value().found);
  CHECK_FALSE(watch.add(read(4, 2, 17)));  // the key was seen after that reply
}

TEST_CASE("all hear of a query without a change, of an index that fell, and of a second failure") {
  Watched watch;
  std::uint64_t consul_index = 0;
  SUBCASE("no change") { consul_index = 15; }
  SUBCASE("an index that fell") { consul_index = 3; }
  SUBCASE("a second failure in a row") {}
  if (consul_index == 0) {
    CHECK(watch.on_reply(15, {false, "cut off", 0, {}}).empty());
    CHECK(watch.next_query() == 15);
    CHECK(watch.on_reply(15, {false, "429", 0, {}, true}).empty());  // not counted
    CHECK(watch.next_query() == 15);
  }
  const auto answers =
      watch.on_reply(15, consul_index == 0 ? wire::LocksRead{false, "no answer", 0, {}}
                                           : reply(consul_index, {10, 11, 12}));
  REQUIRE(answers.size() == 1);
  CHECK(answers[0].ok == (consul_index != 0));
  CHECK(answers[0].error == (consul_index == 0 ? "no answer" : ""));
  CHECK_FALSE(watch.next_query());  // nothing waits
}

TEST_CASE("answers without an index end all reads, since no query can wait") {
  LockWatch watch;
  CHECK_FALSE(watch.add(read(1, 0, 0)));
  CHECK_FALSE(watch.add(read(2, 1, 20)));
  CHECK(watch.next_query() == 0);
  CHECK(watch.on_reply(0, reply(0, {10, 11, 12})).size() == 2);
  CHECK_FALSE(watch.next_query());
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
