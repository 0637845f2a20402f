#include "core/listing.h"

#include <doctest/doctest.h>

using namespace lictor;
using namespace lictor::core;
using namespace std::chrono_literals;

namespace {

// A listing of a short list, at work.
struct Watching {
  const QueueOptions options;
  Requests requests;
  Listing listing{options, requests};
  Effects out;
  Instant now{1s};
  std::uint64_t index = 10;

  Watching() {
    listing.start(now, out);
    REQUIRE(accept(answer()) == Listing::Use::kFirst);  // the names: it is short
    pass(0ms);
  }

  // To the last request; nothing is there.
  TasksListed answer() {
    TasksListed reply;
    REQUIRE(std::holds_alternative<ListTasks>(out.back()));
    const auto& asked = std::get<ListTasks>(out.back());
    reply.request = asked.request;
    reply.ok = true;
    reply.full = asked.full;
    reply.consul_index = ++index;
    return reply;
  }
  Listing::Use accept(const TasksListed& reply) {
    Instant emitted{};
    return listing.accept(now, reply, emitted, out);
  }
  void accept_list() { REQUIRE(accept(answer()) == Listing::Use::kAll); }
  void pass(Duration time) {
    now += time;
    listing.on_time(now, false, out);
  }
};

}  // namespace

TEST_SUITE_BEGIN("core");

TEST_CASE("what a reading costs Consul sets its pace, where the answer shows it") {
  Watching w;
  w.accept_list();
  // The pause after an answer that has taken so long, with or without a write of ours before it.
  const auto pause_after = [&](Duration took, bool wrote) {
    if (wrote) w.listing.wrote(w.index + 1);
    w.pass(w.listing.next_deadline() - w.now);
    w.now += took;
    w.accept_list();
    return w.listing.next_deadline() - w.now;
  };
  for (int i = 0; i < 20; ++i) CHECK(pause_after(100ms, false) < 10ms);  // nothing had changed
  Duration pause{};
  for (int i = 0; i < 20; ++i) pause = pause_after(100ms, true);
  CHECK(pause == 500ms);                  // a sixth of the time
  CHECK(pause_after(3s, true) <= 500ms);  // something else has delayed it
  // Tombstones go after a quarter of an hour.
  for (int i = 0; i < 3; ++i) pause = pause_after(1ms, true);
  CHECK(pause < 10ms);
}

TEST_CASE(
    "a watch that failed asks again from the same index, and reads anew after another failure") {
  Watching w;
  w.accept_list();
  const auto fail = [&](bool over_limit) {
    const Instant next = w.listing.next_deadline();
    if (next > w.now) w.pass(next - w.now);
    TasksListed reply = w.answer();
    const std::uint64_t asked = std::get<ListTasks>(w.out.back()).index;
    reply.ok = false;
    reply.over_limit = over_limit;
    reply.consul_index = 0;
    w.now += 20s;
    CHECK(w.accept(reply) == Listing::Use::kNone);
    w.pass(w.listing.next_deadline() - w.now);
    return asked;
  };
  const auto asked = [&] { return std::get<ListTasks>(w.out.back()).index; };
  const std::uint64_t index = w.listing.index();
  REQUIRE(index != 0);
  CHECK(fail(false) == index);
  CHECK(asked() == index);
  CHECK(w.listing.complete());
  w.accept_list();
  const std::uint64_t later = w.listing.index();
  for (int i = 0; i < 5; ++i) {
    CHECK(fail(true) == later);  // Consul's limits: what is known holds
    CHECK(asked() == later);
  }
  CHECK(fail(false) == later);
  CHECK(asked() == later);
  CHECK(fail(false) == later);
  CHECK(asked() == 0);
  CHECK_FALSE(std::get<ListTasks>(w.out.back()).full);  // everything: its names first
}

TEST_CASE(
    "after a cut connection the watch is asked again at once, if it had not just been asked") {
  Watching w;
  w.accept_list();
  w.pass(w.listing.next_deadline() - w.now);
  TasksListed reply = w.answer();
  reply.ok = false;
  w.now += 100ms;
  static_cast<void>(w.accept(reply));
  CHECK(w.listing.next_deadline() == w.now + 400ms);
}

TEST_CASE("a name that may be what was just deleted is read only if the next names do not come") {
  Watching w;
  w.accept_list();
  w.listing.doubt(w.now, "tasks/a");
  w.pass(10ms);
  w.accept_list();  // the next names tell
  w.listing.doubt(w.now, "tasks/b");
  w.listing.doubt(w.now, "tasks/c");
  w.pass(10ms);
  REQUIRE(std::holds_alternative<ListTasks>(w.out.back()));
  CHECK(w.listing.next_deadline() == w.now + 240ms);  // it watches, and nothing comes
  w.pass(240ms);
  REQUIRE(std::holds_alternative<FetchTasks>(w.out.back()));
  CHECK(std::get<FetchTasks>(w.out.back()).keys == std::vector<std::string>{"tasks/b", "tasks/c"});
  CHECK(w.listing.next_deadline() == Instant::max());
}

TEST_SUITE_END();
