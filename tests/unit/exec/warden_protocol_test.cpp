#include "exec/warden_protocol.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <string>

#include <doctest/doctest.h>

#include "exec/channel.h"

namespace lictor::exec {

TEST_CASE("an order reads back as it was written, and in no part") {
  Spawn spawn{.attempt = AttemptId{0x123456789abcdef0},
              .slot = 7,
              .ends_with_lease = false,
              .grace = std::chrono::milliseconds{1500}};
  spawn.program.argv = {"/bin/x", "", std::string("\0y", 2)};
  spawn.program.environment = {"A=1"};
  spawn.program.directory = "/tmp";
  spawn.program.user = Credentials{1, 2, {3, 4}};
  spawn.program.limits = {{5, 6, RLIM_INFINITY}};
  const std::string bytes = encode(Order{spawn});

  const auto order = decode_order(bytes).value();
  const auto* read = std::get_if<Spawn>(&order);
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

TEST_CASE("a truth value is 0 or 1") {
  Spawn spawn;
  std::string bytes = encode(Order{spawn});
  constexpr std::size_t kEndsWithLease = 1 + sizeof(AttemptId) + sizeof(LeaseSlot);
  REQUIRE(bytes[kEndsWithLease] == 1);
  bytes[kEndsWithLease] = 2;
  CHECK_FALSE(decode_order(bytes).has_value());
}

TEST_CASE("the attempt is read from the head of a start, and of nothing else") {
  Spawn spawn{.attempt = AttemptId{42}};
  CHECK(spawn_head(encode(Order{spawn}).substr(0, 16)) == AttemptId{42});
  CHECK_FALSE(spawn_head(encode(Order{Stop{AttemptId{42}, {}}})));
  CHECK_FALSE(spawn_head(""));
}

TEST_CASE("a report and a lock read back as they were written") {
  const auto exited =
      decode_report(encode(Report{Exited{AttemptId{9}, 1, 3, StopCause::kLease}})).value();
  CHECK(std::get<Exited>(exited).status == 3);
  CHECK(std::get<Exited>(exited).cause == StopCause::kLease);
  const auto started = decode_report(encode(Report{Started{AttemptId{9}, 4711}})).value();
  CHECK(std::get<Started>(started).pid == 4711);
  const auto failed =
      decode_report(encode(Report{SpawnFailed{AttemptId{9}, Step::kRun, 2}})).value();
  CHECK(std::get<SpawnFailed>(failed).step == Step::kRun);
  const HeldLock held{7, "5e55", 0x123456789abcdef0, "{}"};
  const auto lock = std::get<HeldLock>(decode_order(encode(Order{held})).value());
  CHECK(lock.slot == 7);
  CHECK(lock.session == "5e55");
  CHECK(lock.index == 0x123456789abcdef0);
  CHECK(lock.value == "{}");
}

namespace {

Packet next(Channel& channel) {
  Packet got;
  REQUIRE(channel.receive(got) == Channel::Received::kPacket);
  return got;
}

bool send(Channel& channel, std::string bytes) {
  Packet packet{std::move(bytes), {}};
  return channel.send(packet);
}

}  // namespace

TEST_CASE("messages arrive whole and in order, short, long and empty, with their descriptors") {
  auto [here, there] = std::move(Channel::create().value());
  const std::string longer(1'000'000, 'x');
  std::array<int, 2> pipe{};
  REQUIRE(pipe2(pipe.data(), O_CLOEXEC) == 0);
  const UniqueFd reader{pipe[0]};
  Packet with_fd{longer, {}};
  with_fd.fds.emplace_back(pipe[1]);
  REQUIRE(send(here, ""));
  REQUIRE(send(here, "short"));
  REQUIRE(here.send(with_fd));

  CHECK(next(there).bytes.empty());
  Packet got = next(there);
  CHECK(got.bytes == "short");
  CHECK(got.fds.empty());
  with_fd.fds.clear();
  got = next(there);
  CHECK(got.bytes == longer);
  REQUIRE(got.fds.size() == 1);
  CHECK(write(got.fds.front().get(), "y", 1) == 1);
  std::array<char, 2> bytes{};
  CHECK(read(reader.get(), bytes.data(), bytes.size()) == 1);
  CHECK(there.receive(got) == Channel::Received::kNothing);
}

TEST_CASE("messages that an end sent before it closed arrive, also if it left messages unread") {
  auto [here, there] = std::move(Channel::create().value());
  REQUIRE(send(here, "never read"));
  REQUIRE(send(there, "first"));
  REQUIRE(send(there, "last"));
  { const Channel closed = std::move(there); }
  for (const char* sent : {"first", "last"}) CHECK(next(here).bytes == sent);
  Packet got;
  CHECK(here.receive(got) == Channel::Received::kGone);
}

TEST_CASE("messages that the socket does not take are kept, and sent in order once it does") {
  auto [here, there] = std::move(Channel::create().value());
  int sent = 0;
  while (!here.backed_up()) REQUIRE(send(here, std::to_string(sent++)));
  Packet got;
  int received = 0;
  for (int i = 0; i < 10; ++i) {  // Room for one does not let one pass those that are kept.
    CHECK(next(there).bytes == std::to_string(received++));
    REQUIRE(send(here, std::to_string(sent++)));
  }

  while (received < sent) {
    if (there.receive(got) == Channel::Received::kPacket) {
      CHECK(got.bytes == std::to_string(received++));
    } else {
      REQUIRE(here.backed_up());
      REQUIRE(here.flush());
    }
  }
  CHECK_FALSE(here.backed_up());
}

TEST_CASE("an end that sends no more still receives, and a closed end differs from a silent one") {
  auto [here, there] = std::move(Channel::create().value());
  Packet got;
  here.finish_sending();
  CHECK(there.receive(got) == Channel::Received::kGone);
  REQUIRE(send(there, "still here"));
  CHECK(next(here).bytes == "still here");
  { const Channel gone = std::move(here); }
  CHECK_FALSE(send(there, "nobody there"));
}

}  // namespace lictor::exec
