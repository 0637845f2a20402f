#include "base/clock.h"
#include "harness.h"
#include "net/consul_client.h"

using namespace lictor;
using namespace lictor::net;
using namespace lictor::net::test;

namespace {

constexpr std::uint64_t tried(std::initializer_list<unsigned> addresses) {
  std::uint64_t bits = 0;
  for (const unsigned address : addresses) bits |= std::uint64_t{1} << address;
  return bits;
}

Tuning avoid_for(Duration duration) {
  Tuning tuning;
  tuning.avoid_for = duration;
  return tuning;
}

std::string refusing() { return "http://127.0.0.1:" + std::to_string(closed_port()); }

}  // namespace

TEST_CASE("the first address is preferred, avoided after a failure, and preferred again later") {
  Failover failover{3, 10s};
  const Instant now{100s};
  CHECK(failover.next(now, 0) == 0U);
  CHECK(failover.next(now, tried({0})) == 1U);
  CHECK_FALSE(failover.next(now, tried({0, 1, 2})).has_value());

  failover.failed(now, 0);
  CHECK(failover.next(now, 0) == 1U);
  CHECK(failover.next(now, tried({1, 2})) == 0U);  // Avoided, yet better than none.
  CHECK(failover.next(now + 10s - 1ns, 0) == 1U);
  CHECK(failover.next(now + 10s, 0) == 0U);

  failover.worked(0);
  CHECK(failover.next(now, 0) == 0U);
}

TEST_CASE("when all addresses have failed the one whose failure is oldest is next") {
  Failover failover{3, 10s};
  failover.failed(Instant{102s}, 0);
  failover.failed(Instant{101s}, 1);
  failover.failed(Instant{103s}, 2);
  CHECK(failover.next(Instant{104s}, 0) == 1U);
  CHECK(failover.next(Instant{104s}, tried({1})) == 0U);
}

TEST_CASE("a request that could not be sent goes to the next address at once") {
  TestServer server{answer};
  const std::string refused = refusing();
  const auto transport = open_for({refused, refusing(), server.address()}, avoid_for(1h));
  const Response response = transport->perform(request("PUT", "/", "x"));
  CHECK(response.delivery == Delivery::kReplied);
  CHECK(response.endpoint == server.address());
  CHECK(response.error.empty());
  CHECK(server.requests().size() == 1);
}

TEST_CASE("when no address can be reached, each was tried once and the error names them all") {
  const std::string first = refusing();
  const std::string second = refusing();
  const auto transport = open_for({first, second});
  const Response response = transport->perform(request("GET", "/v1/status/leader"));
  CHECK(response.delivery == Delivery::kNotSent);
  CHECK(response.endpoint == second);
  CHECK(response.error.find("GET /v1/status/leader: " + first + ": not sent: ") == 0);
  CHECK(response.error.find(first) == response.error.rfind(first));
  CHECK(contains(response.error, "; " + second + ": not sent: "));
}

TEST_CASE("a lost request is not repeated elsewhere, but the next one goes elsewhere") {
  TestServer first{[](const Received&, Connection& connection) { connection.close_when_done(); }};
  TestServer second{answer};
  const auto transport = open_for({first.address(), second.address()}, avoid_for(1h));
  CHECK(transport->perform(request("PUT", "/", "x")).delivery == Delivery::kLost);
  CHECK(second.requests().empty());
  for (int i = 0; i < 3; ++i) {
    const Response response = transport->perform(request("PUT", "/", "x"));
    CHECK(response.delivery == Delivery::kReplied);
    CHECK(response.endpoint == second.address());
  }
  CHECK(first.requests().size() == 1);
}

TEST_CASE("an agent without a leader is returned as it is, and avoided next") {
  struct Row {
    int status;
    std::string body;
    bool avoided;
  };
  for (const Row& row :
       {Row{500, "rpc error making call: No cluster leader", true},
        Row{500, "No cluster leader", true}, Row{500, "node is not the leader", true},
        Row{500, "leadership lost while committing log", true}, Row{429, "", true},
        Row{500, "Invalid check: TTL", false}, Row{503, "", false},
        Row{403, "No cluster leader", false}, Row{404, "", false}}) {
    CAPTURE(row.body);
    TestServer first{
        [&](const Received&, Connection& connection) { connection.reply(row.status, row.body); }};
    TestServer second{answer};
    const auto transport = open_for({first.address(), second.address()}, avoid_for(1h));
    const Response response = transport->perform(request("PUT", "/", "x"));
    CHECK(response.delivery == Delivery::kReplied);
    CHECK(response.status == row.status);
    CHECK(response.body == row.body);
    const Response next = transport->perform(request("PUT", "/", "x"));
    CHECK(next.endpoint == (row.avoided ? second.address() : first.address()));
  }
}

TEST_CASE("the first address is used again once it is back and the while is over") {
  const int port = closed_port();
  TestServer second{answer};
  const std::string address = "http://127.0.0.1:" + std::to_string(port);
  const auto transport = open_for({address, second.address()}, avoid_for(50ms));
  CHECK(transport->perform(request("GET", "/")).endpoint == second.address());
  TestServer first{answer, "", port};
  const Instant limit = boot_now() + kGenerous;
  while (transport->perform(request("GET", "/")).endpoint != address && boot_now() < limit) {
  }
  CHECK(transport->perform(request("GET", "/")).endpoint == address);
}

TEST_CASE("the time-out covers all addresses together") {
  // The connection stands, but a TLS handshake is never answered.
  TestServer silent{answer};
  Options options;
  options.addresses.assign(4, "https://127.0.0.1:" + std::to_string(silent.port()));
  options.connect_timeout = 60ms;
  const auto transport = Transport::open(options).value();
  const Instant before = boot_now();
  const Response response = transport->perform(request("PUT", "/", "x", 100ms));
  CHECK(response.delivery == Delivery::kNotSent);
  CHECK(boot_now() - before >= 100ms);
  CHECK(silent.connections() <= 2);
}
