// The transport's reports about requests that fail, and how often the server saw them.

#include "base/clock.h"
#include "harness.h"
#include "net/consul_client.h"

namespace lictor::net::test {
namespace {

std::size_t count(const TestServer& server, const std::string& target) {
  std::size_t n = 0;
  for (const Received& each : server.requests()) n += each.target == target ? 1 : 0;
  return n;
}

struct Write {
  std::string method, body;
};
const std::vector<Write> kWrites{{"PUT", "a body"},
                                 {"PUT", ""},
                                 {"POST", ""},
                                 {"DELETE", ""},
                                 {"PUT", std::string(2U << 20U, 'x')}};

}  // namespace

// libcurl repeats a request by itself when a kept connection closes without a reply. Had the first
// copy of a CAS been carried out, the second would come back as rejected.
TEST_CASE("a write on a kept connection that closes without a reply is lost, and sent only once") {
  for (const bool reset : {false, true}) {
    for (const Write& write : kWrites) {
      CAPTURE(reset);
      CAPTURE(write.method);
      TestServer server{[&](const Received& received, Connection& connection) {
        if (received.target == "/first") return connection.reply(200, "");
        reset ? connection.reset() : connection.close_when_done();
      }};
      const auto transport = open_for({server.address()});
      REQUIRE(transport->perform(request("GET", "/first")).status == 200);
      const Response lost = transport->perform(request(write.method, "/second", write.body));
      CHECK(lost.delivery == Delivery::kLost);
      CHECK(lost.status == 0);
      CHECK(contains(lost.error, write.method + " /second: " + server.address() + ": "));
      CHECK(contains(lost.error, "may have been carried out"));
      CHECK(count(server, "/second") == 1);
      Request asked = request(write.method, "/third", write.body);
      asked.only_reads = true;
      CHECK_FALSE(contains(transport->perform(asked).error, "may have been carried out"));
      // The transport goes on.
      CHECK(transport->perform(request("GET", "/first")).status == 200);
      CHECK(count(server, "/second") == 1);
    }
  }
}

TEST_CASE("a read on a kept connection that closes without a reply is repeated") {
  TestServer server{[&](const Received& received, Connection& connection) {
    if (received.target == "/second" && server.connections() == 1) {
      return connection.close_when_done();
    }
    connection.reply(200, "");
  }};
  const auto transport = open_for({server.address()});
  REQUIRE(transport->perform(request("GET", "/first")).status == 200);
  CHECK(transport->perform(request("GET", "/second")).status == 200);
  CHECK(count(server, "/second") == 2);
}

TEST_CASE("a request on a new connection that closes without a reply is lost") {
  for (const bool reset : {false, true}) {
    TestServer server{[&](const Received&, Connection& connection) {
      reset ? connection.reset() : connection.close_when_done();
    }};
    const auto transport = open_for({server.address()});
    for (const Write& write : kWrites) {
      CHECK(transport->perform(request(write.method, "/w", write.body)).delivery ==
            Delivery::kLost);
    }
    CHECK(transport->perform(request("GET", "/r")).delivery == Delivery::kLost);
    CHECK(count(server, "/w") == kWrites.size());
  }
}

TEST_CASE("a server that closed a kept connection in between costs a write nothing") {
  TestServer server{[&](const Received&, Connection& connection) {
    connection.reply(200, "");
    connection.close_when_done();
  }};
  const auto transport = open_for({server.address()});
  // Which of the two sees the close first is chance: a write is then done or lost, never doubled.
  for (int i = 0; i < 50; ++i) {
    const std::string target = "/" + std::to_string(i);
    const Response response = transport->perform(request("PUT", target, "x"));
    CHECK(count(server, target) <= 1);
    if (response.delivery == Delivery::kReplied) CHECK(count(server, target) == 1);
  }
}

TEST_CASE("half a reply is lost, not replied") {
  for (const char* half :
       {"HTTP/1.1 200 OK\r\nX-Consul-Index: 7\r\nContent-Length: 100\r\n\r\nonly this",
        "HTTP/1.1 200 OK\r\nX-Consul-Index: 7\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nonly ",
        "HTTP/1.1 200 OK\r\nX-Consul-Index: 7\r\nContent-Le", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 20",
        "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n"}) {
    TestServer server{[&](const Received&, Connection& connection) {
      connection.write(half);
      connection.close_when_done();
    }};
    const auto transport = open_for({server.address()});
    for (const char* method : {"GET", "PUT"}) {
      const Response response = transport->perform(request(method, "/"));
      CHECK(response.delivery == Delivery::kLost);
      CHECK(response.status == 0);
      CHECK(response.body.empty());
      CHECK(response.consul_index == 0);
    }
    CHECK(server.requests().size() == 2);
  }
}

TEST_CASE("a whole reply before the close counts") {
  TestServer server{[&](const Received&, Connection& connection) {
    connection.write(
        "HTTP/1.1 100 Continue\r\nX-Consul-Index: 1\r\n\r\n"
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ntrue\r\n0\r\n\r\n");
    connection.close_when_done();
  }};
  const Response response = open_for({server.address()})->perform(request("PUT", "/", "x"));
  CHECK(response.delivery == Delivery::kReplied);
  CHECK(response.status == 200);
  CHECK(response.body == "true");
  CHECK(response.consul_index == 0);
}

TEST_CASE("a reply that does not come in time is lost") {
  TestServer server{hold_polls};
  const auto transport = open_for({server.address()});
  for (const char* method : {"PUT", "GET", "DELETE"}) {
    const Instant before = boot_now();
    const Response response = transport->perform(request(method, "/poll", "", 50ms));
    CHECK(response.delivery == Delivery::kLost);
    CHECK(boot_now() - before >= 50ms);
    CHECK(response.sent_at >= before);
    const bool is_write = std::string_view{method} != "GET";
    CHECK(contains(response.error, "may have been carried out") == is_write);
    CHECK(contains(response.error, "no whole reply: no answer within 50ms"));
  }
}

TEST_CASE("a reply to a long poll that begins and stands still is lost before its time-out") {
  TestServer server{[](const Received&, Connection& connection) {
    connection.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nnot a hundred bytes");
    connection.wait_until_closed();
  }};
  const auto transport = open_for({server.address()});
  Request poll = request("GET", "/slow");
  poll.long_poll = true;
  poll.timeout = 2min;
  const Response lost = transport->perform(poll);
  CHECK(lost.delivery == Delivery::kLost);
  CHECK(contains(lost.error, "no whole reply: the answer stood still"));
}

TEST_CASE("a server that is silent from the first byte on is waited for as long as was asked") {
  TestServer server{hold_polls};
  const auto transport = open_for({server.address()});
  Request silent = request("GET", "/poll", "", 2min);
  silent.silence = 1s;
  const Response lost = transport->perform(silent);
  CHECK(lost.delivery == Delivery::kLost);
  CHECK(contains(lost.error, server.address()));
  CHECK(contains(lost.error, "no whole reply: no answer within 1s"));
}

TEST_CASE("a refused connection, a name that does not exist and a missing socket are not sent") {
  const std::pair<std::string, const char*> table[] = {
      {"http://127.0.0.1:" + std::to_string(closed_port()), "Connection refused; "},
      {"http://no-such-host.invalid:8500", "no-such-host.invalid"},
      {"unix:///nowhere/consul.sock", "No such file or directory; "}};
  for (const auto& [address, reason] : table) {
    const auto transport = open_for({address});
    for (const char* method : {"PUT", "GET"}) {
      const Response response = transport->perform(request(method, "/v1/kv/a?token=hush"));
      CAPTURE(response.error);
      CHECK(response.delivery == Delivery::kNotSent);
      CHECK(response.endpoint == address);
      CHECK(
          contains(response.error, std::string{method} + " /v1/kv/a: " + address + ": not sent: "));
      CHECK(contains(response.error, reason));
      CHECK_FALSE(contains(response.error, "hush"));
    }
  }
}

TEST_CASE("no error shows the token or the password") {
  TestServer server{[](const Received&, Connection& connection) { connection.close_when_done(); }};
  Options options;
  options.token = "hush-token";
  options.basic_auth = "user:hush-word";
  const std::string refused = "http://127.0.0.1:" + std::to_string(closed_port());
  const auto transport = open_for({refused, server.address()}, {}, options);
  const Response response = transport->perform(request("PUT", "/", "x"));
  CHECK(response.delivery == Delivery::kLost);
  CHECK(contains(response.error, refused));
  CHECK(contains(response.error, server.address()));
  CHECK_FALSE(contains(response.error, "hush"));
}

TEST_CASE("a request whose time is over before it starts is not sent") {
  TestServer server{answer};
  const auto transport = open_for({server.address()});
  for (const auto timeout : {0ms, -5ms, std::chrono::milliseconds::min()}) {
    CHECK(transport->perform(request("PUT", "/", "x", timeout)).delivery == Delivery::kNotSent);
  }
  CHECK(server.requests().empty());
  const auto forever = std::chrono::milliseconds::max();
  CHECK(transport->perform(request("PUT", "/", "x", forever)).status == 200);
}

namespace {

constexpr std::uint64_t tried(std::initializer_list<unsigned> addresses) {
  std::uint64_t bits = 0;
  for (const unsigned address : addresses) bits |= std::uint64_t{1} << address;
  return bits;
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
  const auto transport = open_for({refused, refusing(), server.address()}, {.avoid_for = 1h});
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
  const auto transport = open_for({first.address(), second.address()}, {.avoid_for = 1h});
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
    const auto transport = open_for({first.address(), second.address()}, {.avoid_for = 1h});
    const Response response = transport->perform(request("PUT", "/", "x"));
    CHECK(response.delivery == Delivery::kReplied);
    CHECK(response.status == row.status);
    CHECK(response.body == row.body);
    const Response next = transport->perform(request("PUT", "/", "x"));
    CHECK(next.endpoint == (row.avoided ? second.address() : first.address()));
  }
}

TEST_CASE("the first address is used again once it is back and the pause is over") {
  const int port = closed_port();
  TestServer second{answer};
  const std::string address = "http://127.0.0.1:" + std::to_string(port);
  const auto transport = open_for({address, second.address()}, {.avoid_for = 50ms});
  CHECK(transport->perform(request("GET", "/")).endpoint == second.address());
  TestServer first{answer, "", port};
  CHECK(eventually([&] { return transport->perform(request("GET", "/")).endpoint == address; }));
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

}  // namespace lictor::net::test
