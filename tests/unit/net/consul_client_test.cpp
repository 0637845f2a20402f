// A ConsulClient on the thread that drives it. What requests do on their way is tested through
// Transport, which drives one, too.

#include "net/consul_client.h"

#include <poll.h>

#include <doctest/doctest.h>

#include "base/clock.h"
#include "harness.h"

using namespace lictor;
using namespace lictor::net;
using namespace lictor::net::test;

namespace {

std::unique_ptr<ConsulClient> client_to(const std::string& address) {
  Options options;
  options.addresses = {address};
  auto consul_client = ConsulClient::open(std::move(options));
  REQUIRE(consul_client);
  return *std::move(consul_client);
}

// As a loop does it: waits until it is readable or due, and steps it.
template <class Done>
void drive(ConsulClient& consul_client, Done done) {
  const Instant give_up = boot_now() + kGenerous;
  while (!done()) {
    const Instant now = boot_now();
    REQUIRE(now < give_up);
    const Instant due = std::min(consul_client.next_deadline(), give_up);
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(due <= now ? 0ns : due - now);
    pollfd readable{consul_client.fd(), POLLIN, 0};
    poll(&readable, 1, static_cast<int>(wait.count()));
    consul_client.step();
  }
}

}  // namespace

TEST_SUITE_BEGIN("net");

TEST_CASE("a client's replies come within step(), on the thread that drives it") {
  TestServer server{answer};
  const auto consul_client = client_to(server.address());
  std::vector<Response> replies;
  bool stepping = true;
  const auto keep = [&](Response response) {
    CHECK(stepping);
    replies.push_back(std::move(response));
  };
  for (int i = 0; i < 3; ++i) {
    stepping = false;
    consul_client->send(request("PUT", "/v1/kv/a", "body"), keep);
    stepping = true;
    drive(*consul_client, [&] { return replies.size() == static_cast<std::size_t>(i) + 1; });
    CHECK(replies.back().status == 200);
    CHECK(replies.back().body == "ok");
  }
  CHECK(consul_client->idle());
  CHECK(server.connections() == 1);
}

TEST_CASE("a client says what cannot be sent, takes too long or is cancelled") {
  TestServer server{hold_polls};
  std::vector<Delivery> ends;
  const auto keep = [&](const Response& response) { ends.push_back(response.delivery); };
  {
    const auto nowhere = client_to("http://127.0.0.1:" + std::to_string(closed_port()));
    nowhere->send(request("GET", "/"), keep);
    drive(*nowhere, [&] { return ends.size() == 1; });
    CHECK(ends.back() == Delivery::kNotSent);
  }
  {
    const auto consul_client = client_to(server.address());
    consul_client->send(request("PUT", "/poll", "", 50ms), keep);
    drive(*consul_client, [&] { return ends.size() == 2; });
    CHECK(ends.back() == Delivery::kLost);
    const RequestId poll = consul_client->send(request("GET", "/poll"), keep);
    consul_client->cancel(poll);
    REQUIRE(ends.size() == 3);
    CHECK(ends.back() == Delivery::kCancelled);
    consul_client->send(request("GET", "/poll"), keep);
  }
  REQUIRE(ends.size() == 4);
  CHECK(ends.back() == Delivery::kCancelled);
}

TEST_SUITE_END();
