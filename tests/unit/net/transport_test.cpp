#include "net/transport.h"

#include <atomic>
#include <thread>

#include "harness.h"

using namespace lictor;
using namespace lictor::net;
using namespace lictor::net::test;

TEST_CASE("a GET brings status, body and Consul's headers") {
  TestServer server{[](const Received&, Connection& connection) {
    // Over 2^53, where a double would lose the last digits; with unusual case and spaces.
    connection.reply(200, "[{}]",
                     "x-consul-INDEX:  18446744073709551557 \r\nX-Consul-KnownLeader: false\r\n");
  }};
  const auto transport = open_for({server.address()});
  const Response response = transport->perform(request("GET", "/v1/kv/a%20b/../c?raw&x=1"));
  CHECK(response.delivery == Delivery::kReplied);
  CHECK(response.status == 200);
  CHECK(response.body == "[{}]");
  CHECK(response.consul_index == 18446744073709551557ULL);
  CHECK(response.known_leader == false);
  CHECK(response.error.empty());
  CHECK(response.endpoint == server.address());
  CHECK(response.sent_at > Instant{});
  CHECK(response.elapsed >= Duration::zero());
  REQUIRE(server.requests().size() == 1);
  const Received seen = server.requests().front();
  CHECK(seen.method == "GET");
  CHECK(seen.target == "/v1/kv/a%20b/../c?raw&x=1");
  for (const char* absent : {"Accept-Encoding", "Expect", "Content-Type", "X-Consul-Token",
                             "X-Consul-Namespace", "Authorization", "Content-Length"}) {
    CAPTURE(absent);
    CHECK(seen.header(absent).empty());
  }
  CHECK(seen.header("Host") == "127.0.0.1:" + std::to_string(server.port()));
}

TEST_CASE("an index or leader that is absent or unreadable counts as none") {
  for (const char* headers :
       {"", "X-Consul-Index: 12x\r\nX-Consul-KnownLeader: maybe\r\n", "X-Consul-Index: -1\r\n",
        "X-Consul-Index: 18446744073709551616\r\n", "X-Consul-Index:\r\n"}) {
    TestServer server{
        [&](const Received&, Connection& connection) { connection.reply(404, "", headers); }};
    const Response response = open_for({server.address()})->perform(request("GET", "/"));
    CHECK(response.status == 404);
    CHECK(response.consul_index == 0);
    CHECK_FALSE(response.known_leader.has_value());
  }
}

TEST_CASE("each method carries its body, and PUT and POST a length also without one") {
  TestServer server{answer};
  const auto transport = open_for({server.address()});
  const std::string large(3U << 20U, 'x');  // libcurl would have asked for "100 Continue"
  struct Row {
    std::string method, body, length;
  };
  for (const Row& row : {Row{"PUT", std::string("a\0b", 3), "3"}, Row{"PUT", "", "0"},
                         Row{"POST", "p", "1"}, Row{"POST", "", "0"}, Row{"DELETE", "", ""},
                         Row{"DELETE", "d", "1"}, Row{"PUT", large, std::to_string(3U << 20U)}}) {
    CAPTURE(row.method);
    const Response response = transport->perform(request(row.method, "/v1/kv/a", row.body));
    CHECK(response.delivery == Delivery::kReplied);
    const Received seen = server.requests().back();
    CHECK(seen.method == row.method);
    CHECK(seen.body == row.body);
    CHECK(seen.header("Content-Length") == row.length);
    CHECK(seen.header("Content-Type").empty());
    CHECK(seen.header("Expect").empty());
  }
  CHECK(server.connections() == 1);
}

TEST_CASE("token, user, namespace and the caller's own headers are sent") {
  TestServer server{answer};
  Options options;
  options.token = "secret-token";
  options.basic_auth = "user:pass:word";
  options.consul_namespace = "team";
  const auto transport = open_for({server.address()}, {}, options);
  Request put = request("PUT", "/", "{}");
  put.headers = {{"Content-Type", "application/json"}, {"X-Empty", ""}};
  CHECK(transport->perform(put).status == 200);
  const Received seen = server.requests().back();
  CHECK(seen.header("X-Consul-Token") == "secret-token");
  CHECK(seen.header("Authorization") == "Basic dXNlcjpwYXNzOndvcmQ=");
  CHECK(seen.header("X-Consul-Namespace") == "team");
  CHECK(seen.header("Content-Type") == "application/json");
  CHECK(contains(seen.head, "X-Empty:\r\n"));
}

TEST_CASE("a token file that changes counts for the requests after it is read") {
  const TemporaryFolder folder;
  TestServer server{answer};
  Options options;
  options.token_file = folder.write("token", "first\n");
  const auto transport = open_for({server.address()}, {.check_token_file_every = 1ms}, options);
  CHECK(transport->perform(request("GET", "/")).status == 200);
  folder.write("token", "other\n");
  CHECK(server.requests().at(0).header("X-Consul-Token") == "first");
  CHECK(eventually([&] {
    CHECK(transport->perform(request("GET", "/")).status == 200);
    return server.requests().back().header("X-Consul-Token") == "other";
  }));
}

TEST_CASE("a unix socket works like an address") {
  const TemporaryFolder folder;
  TestServer server{answer, folder / "consul.sock"};
  const auto transport = open_for({server.address()});
  for (int i = 0; i < 3; ++i) {
    const Response response = transport->perform(request("PUT", "/v1/kv/a", "b"));
    CHECK(response.status == 200);
    CHECK(response.endpoint == server.address());
  }
  CHECK(server.requests().front().header("Host") == "localhost");
  CHECK(server.connections() == 1);
}

TEST_CASE("no proxy of the environment is used") {
  ::setenv("http_proxy", ("http://127.0.0.1:" + std::to_string(closed_port())).c_str(), 1);
  TestServer server{answer};
  CHECK(open_for({server.address()})->perform(request("GET", "/")).status == 200);
  ::unsetenv("http_proxy");
}

TEST_CASE("a redirect is returned, not followed") {
  TestServer server{[](const Received&, Connection& connection) {
    connection.reply(301, "", "Location: /elsewhere\r\n");
  }};
  CHECK(open_for({server.address()})->perform(request("GET", "/v1/kv//a")).status == 301);
  CHECK(server.requests().size() == 1);
}

TEST_CASE("long polls neither hold up short requests nor cost them their connection") {
  TestServer server{hold_polls};
  Tuning tuning;
  tuning.max_short_requests = 1;  // Long polls must not count.
  tuning.max_polls = 20;
  const auto transport = open_for({server.address()}, tuning);
  Request long_poll = request("GET", "/poll");
  long_poll.long_poll = true;
  std::vector<Pending> polls = send_all(*transport, 20, long_poll);
  REQUIRE(server.wait_for_requests(20));
  for (int i = 0; i < 20; ++i) CHECK(transport->perform(request("PUT", "/", "x")).status == 200);
  CHECK(server.connections() == 21);
  for (const Pending& poll : polls) CHECK_FALSE(poll.is_done());
  for (const Pending& poll : polls) transport->cancel(poll.id);
  for (Pending& poll : polls) CHECK(poll.get().delivery == Delivery::kCancelled);
}

TEST_CASE("a burst opens no more connections than allowed, and the next one uses them again") {
  TestServer server{answer};
  const auto transport = open_for({server.address()}, {.max_short_requests = 8});
  for (int round = 0; round < 3; ++round) {
    for (Pending& each : send_all(*transport, 100, request("PUT", "/", "x"))) {
      CHECK(each.get().status == 200);
    }
  }
  CHECK(server.connections() <= 8);
  CHECK(server.closed_by_client() == 0);
}

TEST_CASE("requests of several threads at once each get their own answer") {
  TestServer server{[](const Received& received, Connection& connection) {
    connection.reply(200, received.target + received.body);
  }};
  const auto transport = open_for({server.address()});
  constexpr int kThreads = 5;
  constexpr int kEach = 100;
  std::atomic<int> right = 0;
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::vector<std::pair<std::string, std::future<Response>>> sent;
      for (int i = 0; i < kEach; ++i) {
        const std::string target = "/" + std::to_string(t) + "/" + std::to_string(i);
        auto promise = std::make_shared<std::promise<Response>>();
        sent.emplace_back(target + "body", promise->get_future());
        transport->send(request("PUT", target, "body"),
                        [promise](Response response) { promise->set_value(std::move(response)); });
      }
      for (auto& [expected, reply] : sent) right += reply.get().body == expected ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(right == kThreads * kEach);
  CHECK(server.connections() <= Tuning{}.max_short_requests);
}

TEST_CASE("a callback may send the next request") {
  TestServer server{answer};
  const auto transport = open_for({server.address()});
  std::promise<int> finished;
  int count = 0;
  Callback next = [&](const Response& response) {
    if (response.status != 200 || ++count == 20) return finished.set_value(count);
    transport->send(request("GET", "/"), next);
  };
  transport->send(request("GET", "/"), next);
  auto reached = finished.get_future();
  REQUIRE(reached.wait_for(kGenerous) == std::future_status::ready);
  CHECK(reached.get() == 20);
}

TEST_CASE("cancel() ends a running request at once and closes its connection") {
  TestServer server{hold_polls};
  const auto transport = open_for({server.address()});
  Pending poll = send(*transport, request("GET", "/poll"));
  REQUIRE(server.wait_for_requests(1));
  transport->cancel(poll.id);
  const Response response = poll.get();
  CHECK(response.delivery == Delivery::kCancelled);
  CHECK(response.status == 0);
  CHECK(response.endpoint == server.address());
  CHECK(contains(response.error, ": cancelled"));
  transport->cancel(poll.id);  // Again, and of one that never was: no effect.
  transport->cancel(RequestId{999});
  CHECK(transport->perform(request("GET", "/")).status == 200);
  CHECK(server.connections() == 2);  // The first was closed, not used again.
}

TEST_CASE("a request waiting for a place can be cancelled, and gives up if nothing is answered") {
  TestServer server{hold_polls};
  const auto transport = open_for({server.address()}, {.max_short_requests = 1});
  Pending busy = send(*transport, request("GET", "/poll"));
  REQUIRE(server.wait_for_requests(1));
  Pending cancelled = send(*transport, request("PUT", "/cancelled", "x"));
  Pending expired = send(*transport, request("PUT", "/expired", "x", 20ms));
  Pending patient = send(*transport, request("PUT", "/patient", "x"));
  transport->cancel(cancelled.id);
  const Response unsent = cancelled.get();
  CHECK(unsent.delivery == Delivery::kCancelled);
  CHECK(contains(unsent.error, "before it was sent"));
  const Response late = expired.get();
  CHECK(late.delivery == Delivery::kNotSent);
  CHECK(contains(late.error, "PUT /expired: not sent: 1 earlier requests were without an answer"));
  transport->cancel(busy.id);
  CHECK(busy.get().delivery == Delivery::kCancelled);
  CHECK(patient.get().status == 200);
  CHECK(server.requests().size() == 2);
}

TEST_CASE("a request waits for its place for as long as earlier ones are answered") {
  TestServer server{[](const Received&, Connection& connection) {
    std::this_thread::sleep_for(300ms);
    connection.reply(200, "x");
  }};
  const auto transport = open_for({server.address()}, {.max_short_requests = 1});
  std::vector<Pending> all;
  for (int i = 0; i < 6; ++i) all.push_back(send(*transport, request("GET", "/", "", 1200ms)));
  for (Pending& each : all) CHECK(each.get().status == 200);
}

TEST_CASE("a reply that is slow is reported once, and a blocking query never") {
  // Answers only after the report, so that the test depends on no time.
  std::promise<void> reported;
  const std::shared_future<void> seen = reported.get_future().share();
  TestServer server{[&](const Received& received, Connection& connection) {
    if (received.target == "/slow") seen.wait();
    connection.reply(200, "x");
  }};
  const auto transport = open_for({server.address()});
  int times = 0;
  transport->on_slow_reply(std::chrono::milliseconds{1}, [&] {
    ++times;
    reported.set_value();
  });
  Request poll = request("GET", "/poll");
  poll.long_poll = true;
  CHECK(transport->perform(poll).status == 200);
  CHECK(times == 0);
  CHECK(transport->perform(request("GET", "/slow")).status == 200);
  CHECK(transport->perform(request("GET", "/slow")).status == 200);
  CHECK(times == 1);
}

TEST_CASE("destruction ends running, waiting and just sent requests with kCancelled") {
  TestServer server{hold_polls};
  auto transport = open_for({server.address()}, {.max_short_requests = 4});
  auto first = send_all(*transport, 10, request("PUT", "/poll", "x"));
  REQUIRE(server.wait_for_requests(4));
  auto second = send_all(*transport, 10, request("PUT", "/poll", "x"));
  std::atomic<bool> last = false;
  transport->send(request("GET", "/poll"), [&, raw = transport.get()](const Response&) {
    raw->send(request("GET", "/after"),
              [&](const Response& response) { last = response.delivery == Delivery::kCancelled; });
  });
  transport.reset();
  CHECK(last);
  for (auto* sent : {&first, &second}) {
    for (Pending& each : *sent) {
      REQUIRE(each.is_done());
      CHECK(each.get().delivery == Delivery::kCancelled);
    }
  }
  CHECK(server.requests().size() == 4);
}
