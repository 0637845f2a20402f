#include "exec/channel.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <string>

#include <doctest/doctest.h>

namespace lictor::exec {
namespace {

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

  Packet got;
  REQUIRE(there.receive(got) == Channel::Received::kPacket);
  CHECK(got.bytes.empty());
  REQUIRE(there.receive(got) == Channel::Received::kPacket);
  CHECK(got.bytes == "short");
  CHECK(got.fds.empty());
  with_fd.fds.clear();
  REQUIRE(there.receive(got) == Channel::Received::kPacket);
  CHECK(got.bytes == longer);
  REQUIRE(got.fds.size() == 1);
  CHECK(write(got.fds.front().get(), "y", 1) == 1);
  std::array<char, 2> bytes{};
  CHECK(read(reader.get(), bytes.data(), bytes.size()) == 1);
  CHECK(there.receive(got) == Channel::Received::kNothing);
}

TEST_CASE("what an end sent before it closed arrives, also if it left messages unread") {
  auto [here, there] = std::move(Channel::create().value());
  REQUIRE(send(here, "never read"));
  REQUIRE(send(there, "first"));
  REQUIRE(send(there, "last"));
  { const Channel closed = std::move(there); }
  Packet got;
  for (const char* sent : {"first", "last"}) {
    REQUIRE(here.receive(got) == Channel::Received::kPacket);
    CHECK(got.bytes == sent);
  }
  CHECK(here.receive(got) == Channel::Received::kGone);
}

TEST_CASE("what the socket does not take is kept, and sent in order once it does") {
  auto [here, there] = std::move(Channel::create().value());
  int sent = 0;
  while (!here.backed_up()) REQUIRE(send(here, std::to_string(sent++)));
  Packet got;
  int received = 0;
  for (int i = 0; i < 10; ++i) {  // Room for one does not let one pass those that are kept.
    REQUIRE(there.receive(got) == Channel::Received::kPacket);
    CHECK(got.bytes == std::to_string(received++));
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

TEST_CASE("an end that sends no more still receives, and one that is gone is told from silence") {
  auto [here, there] = std::move(Channel::create().value());
  Packet got;
  here.finish_sending();
  CHECK(there.receive(got) == Channel::Received::kGone);
  REQUIRE(send(there, "still here"));
  REQUIRE(here.receive(got) == Channel::Received::kPacket);
  CHECK(got.bytes == "still here");
  { const Channel gone = std::move(here); }
  CHECK_FALSE(send(there, "nobody there"));
}

}  // namespace lictor::exec
