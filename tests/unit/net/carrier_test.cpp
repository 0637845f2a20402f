// A Carrier on the thread of who drives it. What requests do on their way is tested through
// Transport, which drives one, too.

#include "net/carrier.h"

#include <poll.h>

#include <doctest/doctest.h>

#include "base/clock.h"
#include "harness.h"

using namespace lictor;
using namespace lictor::net;
using namespace lictor::net::test;

namespace {

std::unique_ptr<Carrier> carrier_to(const std::string& address, Tuning tuning = {}) {
  Options options;
  options.addresses = {address};
  auto carrier = Carrier::open(std::move(options), tuning);
  REQUIRE(carrier);
  return *std::move(carrier);
}

// As a loop does it: waits until it is readable or due, and steps it.
template <class Done>
void drive(Carrier& carrier, Done done) {
  const Instant give_up = boot_now() + kGenerous;
  while (!done()) {
    const Instant now = boot_now();
    REQUIRE(now < give_up);
    const Instant due = std::min(carrier.next_deadline(), give_up);
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(due <= now ? 0ns : due - now);
    pollfd readable{carrier.fd(), POLLIN, 0};
    poll(&readable, 1, static_cast<int>(wait.count()));
    carrier.step();
  }
}

}  // namespace

TEST_SUITE_BEGIN("net");

TEST_CASE("a carrier's replies come within step(), on the thread that drives it") {
  TestServer server{answer};
  const auto carrier = carrier_to(server.address());
  std::vector<Response> replies;
  bool stepping = true;
  const auto keep = [&](Response response) {
    CHECK(stepping);
    replies.push_back(std::move(response));
  };
  for (int i = 0; i < 3; ++i) {
    stepping = false;
    carrier->send(request("PUT", "/v1/kv/a", "body"), keep);
    stepping = true;
    drive(*carrier, [&] { return replies.size() == static_cast<std::size_t>(i) + 1; });
    CHECK(replies.back().status == 200);
    CHECK(replies.back().body == "ok");
  }
  CHECK(carrier->idle());
  CHECK(server.connections() == 1);
}

TEST_CASE(
    "a carrier tells of what cannot be sent, of what takes too long and of what is cancelled") {
  TestServer server{hold_polls};
  std::vector<Delivery> ends;
  const auto keep = [&](const Response& response) { ends.push_back(response.delivery); };
  {
    const auto nowhere = carrier_to("http://127.0.0.1:" + std::to_string(closed_port()));
    nowhere->send(request("GET", "/"), keep);
    drive(*nowhere, [&] { return ends.size() == 1; });
    CHECK(ends.back() == Delivery::kNotSent);
  }
  {
    const auto carrier = carrier_to(server.address());
    carrier->send(request("PUT", "/poll", "", 50ms), keep);
    drive(*carrier, [&] { return ends.size() == 2; });
    CHECK(ends.back() == Delivery::kLost);
    const RequestId poll = carrier->send(request("GET", "/poll"), keep);
    carrier->cancel(poll);
    REQUIRE(ends.size() == 3);
    CHECK(ends.back() == Delivery::kCancelled);
    carrier->send(request("GET", "/poll"), keep);
  }
  REQUIRE(ends.size() == 4);
  CHECK(ends.back() == Delivery::kCancelled);
}

TEST_CASE("what waits for a place in a carrier is sent when one is free") {
  TestServer server{answer};
  Tuning tuning;
  tuning.max_short_requests = 1;
  const auto carrier = carrier_to(server.address(), tuning);
  std::size_t replies = 0;
  for (int i = 0; i < 5; ++i) {
    carrier->send(request("GET", "/"), [&](const Response& response) {
      CHECK(response.status == 200);
      ++replies;
    });
  }
  drive(*carrier, [&] { return replies == 5; });
  CHECK(server.connections() == 1);
}

TEST_SUITE_END();
