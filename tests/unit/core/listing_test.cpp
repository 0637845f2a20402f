#include "core/listing.h"

#include <doctest/doctest.h>

using namespace lictor;
using namespace lictor::core;
using namespace std::chrono_literals;

TEST_SUITE_BEGIN("core");

TEST_CASE("tasks that come faster than they are read are read several at a time") {
  const QueueOptions options;
  Requests requests;
  Listing listing{options, requests};
  Effects out;
  Instant now{1s};
  listing.start(now, out);
  std::uint64_t index = 10;
  // When the next reading may be sent, after one that told of so many new tasks.
  const auto pause_after = [&](std::size_t tasks) {
    TasksListed reply;
    reply.request = std::get<ListTasks>(out.back()).request;
    reply.ok = reply.full = true;
    reply.consul_index = ++index;
    Instant emitted{};
    REQUIRE(listing.accept(now, reply, emitted, out) == Listing::Use::kAll);
    listing.brought(now, tasks);
    const Duration pause = listing.next_deadline() - now;
    now += pause;
    listing.on_time(now, false, out);
    return pause;
  };
  const Duration shortest = pause_after(1);
  CHECK(shortest < 10ms);
  CHECK(pause_after(5) == shortest);  // written together, perhaps
  CHECK(pause_after(2) == 10ms);
  CHECK(pause_after(2) == 10ms);
  CHECK(pause_after(1) == shortest);
  CHECK(pause_after(2) == shortest);
  CHECK(pause_after(0) == shortest);
}
TEST_CASE("a name that may be what was just deleted is read only if the next names do not come") {
  const QueueOptions options;
  Requests requests;
  Listing listing{options, requests};
  Effects out;
  Instant now{1s};
  listing.start(now, out);
  std::uint64_t index = 10;
  const auto accept_list = [&] {
    TasksListed reply;
    reply.request = std::get<ListTasks>(out.back()).request;
    reply.ok = reply.full = true;
    reply.consul_index = ++index;
    Instant emitted{};
    REQUIRE(listing.accept(now, reply, emitted, out) == Listing::Use::kAll);
  };
  accept_list();
  listing.doubt(now, "tasks/a");
  now += 10ms;
  listing.on_time(now, false, out);
  accept_list();  // the next names tell
  listing.doubt(now, "tasks/b");
  listing.doubt(now, "tasks/c");
  now += 10ms;
  listing.on_time(now, false, out);
  REQUIRE(std::holds_alternative<ListTasks>(out.back()));
  CHECK(listing.next_deadline() == now + 240ms);  // it watches, and nothing comes
  now = listing.next_deadline();
  listing.on_time(now, false, out);
  REQUIRE(std::holds_alternative<FetchTasks>(out.back()));
  CHECK(std::get<FetchTasks>(out.back()).keys == std::vector<std::string>{"tasks/b", "tasks/c"});
  CHECK(listing.next_deadline() == Instant::max());
}
