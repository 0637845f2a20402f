#include "exec/warden_protocol.h"

#include <string>

#include <doctest/doctest.h>

namespace lictor::exec {

TEST_CASE("an order reads back as it was written, and in no part") {
  Spawn spawn;
  spawn.attempt = AttemptId{0x123456789abcdef0};
  spawn.slot = 7;
  spawn.ends_with_lease = false;
  spawn.grace = std::chrono::milliseconds{1500};
  spawn.program.argv = {"/bin/x", "", std::string("\0y", 2)};
  spawn.program.environment = {"A=1"};
  spawn.program.directory = "/tmp";
  spawn.program.user = Credentials{1, 2, {3, 4}};
  spawn.program.limits = {{5, 6, RLIM_INFINITY}};
  const std::string bytes = encode(Order{spawn});

  const auto order = decode_order(bytes);
  REQUIRE(order.has_value());
  const auto* read = std::get_if<Spawn>(&*order);
  REQUIRE(read != nullptr);
  CHECK(read->attempt == spawn.attempt);
  CHECK(read->slot == 7);
  CHECK_FALSE(read->ends_with_lease);
  CHECK(read->grace == spawn.grace);
  CHECK(read->program.argv == spawn.program.argv);
  CHECK(read->program.environment == spawn.program.environment);
  CHECK(read->program.directory == "/tmp");
  REQUIRE(read->program.user.has_value());
  CHECK(read->program.user->gid == 2);
  CHECK(read->program.user->groups == spawn.program.user->groups);
  REQUIRE(read->program.limits.size() == 1);
  CHECK(read->program.limits.front().hard == RLIM_INFINITY);

  for (std::size_t size = 0; size < bytes.size(); ++size) {
    CHECK_FALSE(decode_order(std::string_view{bytes}.substr(0, size)).has_value());
  }
  CHECK_FALSE(decode_order(bytes + "x").has_value());
  CHECK_FALSE(decode_order("\x7f").has_value());
}

TEST_CASE("a lock reads back as it was written") {
  const auto order = decode_order(encode(Order{HeldLock{7, "5e55", 0x123456789abcdef0, "{}"}}));
  REQUIRE(order.has_value());
  const auto& lock = std::get<HeldLock>(*order);
  CHECK(lock.slot == 7);
  CHECK(lock.session == "5e55");
  CHECK(lock.index == 0x123456789abcdef0);
  CHECK(lock.value == "{}");
}

TEST_CASE("a truth value is 0 or 1") {
  Spawn spawn;
  std::string bytes = encode(Order{spawn});
  constexpr std::size_t kEndsWithLease = 1 + sizeof(AttemptId) + sizeof(LeaseSlot);
  REQUIRE(bytes[kEndsWithLease] == 1);
  bytes[kEndsWithLease] = 2;
  CHECK_FALSE(decode_order(bytes).has_value());
}

TEST_CASE("the attempt is read from the head of a start, and of nothing else") {
  Spawn spawn;
  spawn.attempt = AttemptId{42};
  CHECK(spawn_head(encode(Order{spawn}).substr(0, 16)) == AttemptId{42});
  CHECK_FALSE(spawn_head(encode(Order{Stop{AttemptId{42}, {}}})));
  CHECK_FALSE(spawn_head(""));
}

TEST_CASE("a report reads back as it was written") {
  const auto exited = decode_report(encode(Report{Exited{AttemptId{9}, 1, 3, StopCause::kLease}}));
  REQUIRE(exited.has_value());
  CHECK(std::get<Exited>(*exited).status == 3);
  CHECK(std::get<Exited>(*exited).cause == StopCause::kLease);
  const auto started = decode_report(encode(Report{Started{AttemptId{9}, 4711, 24}}));
  REQUIRE(started.has_value());
  CHECK(std::get<Started>(*started).pid == 4711);
  CHECK(std::get<Started>(*started).no_cgroup == 24);
  const auto failed = decode_report(encode(Report{SpawnFailed{AttemptId{9}, Step::kRun, 2}}));
  REQUIRE(failed.has_value());
  CHECK(std::get<SpawnFailed>(*failed).step == Step::kRun);
}

}  // namespace lictor::exec
