// Blocking queries in turns, and requests that Consul's limits hold back, on real connections.

#include <atomic>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "harness.h"
#include "net/connections.h"
#include "net/consul_client.h"
#include "net/rate_backoff.h"

using namespace lictor;
using namespace lictor::net;
using namespace lictor::net::test;

namespace {

Request watch_of(const std::string& target, std::uint64_t index,
                 std::chrono::milliseconds wait = kGenerous) {
  Request made = request("GET", target + "?index=" + std::to_string(index));
  made.long_poll = true;
  made.watch = http::Watch{index, wait, true};
  return made;
}

// The value of a parameter of the target.
std::string parameter(const std::string& target, const std::string& name) {
  const std::size_t at = target.find(name + '=');
  if (at == std::string::npos) return {};
  const std::size_t from = at + name.size() + 1;
  return target.substr(from, target.find('&', from) - from);
}

std::string index_header(const std::string& index) { return "X-Consul-Index: " + index + "\r\n"; }

// Answers as Consul does where nothing changes: the same index, when `after` is over.
void answer_unchanged(const Received& received, Connection& connection,
                      std::chrono::milliseconds after) {
  std::this_thread::sleep_for(after);
  connection.reply(200, "[]", index_header(parameter(received.target, "index")));
}

std::shared_ptr<RateBackoff> backoff() { return std::make_shared<RateBackoff>(Random{1}); }

}  // namespace

TEST_CASE("a watch is asked with its wait, and a change ends it") {
  TestServer server{[](const Received&, Connection& connection) {
    connection.reply(200, "[1]", index_header("8"));
  }};
  const auto transport = open_for({server.address()});
  const Response changed = transport->perform(watch_of("/v1/kv/a", 7, 25s));
  CHECK(changed.status == 200);
  CHECK(changed.consul_index == 8);
  CHECK(changed.body == "[1]");
  CHECK(server.requests().at(0).target == "/v1/kv/a?index=7&wait=25000ms");
}

TEST_CASE("an answer without a change ends a watch only when its time is over") {
  std::atomic<int> asked = 0;
  TestServer server{[&](const Received& received, Connection& connection) {
    if (++asked < 2) return answer_unchanged(received, connection, 0ms);
    connection.reply(404, "", index_header("9"));
  }};
  const auto transport = open_for({server.address()});
  CHECK(transport->perform(watch_of("/a", 7)).consul_index == 9);
  CHECK(asked == 2);
  const Response over = transport->perform(watch_of("/b", 9, 1ms));
  CHECK(over.consul_index == 9);
  CHECK(over.status == 404);
}

TEST_CASE("watches that are more than their connections take turns on them") {
  std::mutex mutex;
  std::map<std::string, int> turns;
  TestServer server{[&](const Received& received, Connection& connection) {
    const std::string path = received.target.substr(0, received.target.find('?'));
    int turn = 0;
    {
      const std::lock_guard lock{mutex};
      turn = ++turns[path];
    }
    if (turn < 2) return answer_unchanged(received, connection, 1ms);
    connection.reply(200, path, index_header("8"));
  }};
  const auto transport = open_for({server.address()}, {.max_polls = 2, .expected_polls = 5});
  std::vector<Pending> pending;
  pending.reserve(5);
  for (int i = 0; i < 5; ++i) {
    pending.push_back(send(*transport, watch_of("/" + std::to_string(i), 7)));
  }
  for (int i = 0; i < 5; ++i) {
    CHECK(pending[static_cast<std::size_t>(i)].get().body == "/" + std::to_string(i));
  }
  CHECK(server.connections() <= 2);
  for (const Received& each : server.requests()) {
    const std::string wait = parameter(each.target, "wait");  // a slice of its round
    CHECK((wait == "720ms" || wait == "900ms" || wait == "1200ms" || wait == "1800ms"));
  }
}

TEST_CASE("a watch that waits for its turn can be cancelled, and a failure is reported") {
  TestServer server{hold_polls};
  const auto transport = open_for({server.address()}, {.max_polls = 1});
  Pending first = send(*transport, watch_of("/poll", 7));
  REQUIRE(server.wait_for_requests(1));
  Pending second = send(*transport, watch_of("/poll/2", 7));
  Pending third = send(*transport, watch_of("/3", 7));
  transport->cancel(second.id);
  CHECK(second.get().delivery == Delivery::kCancelled);
  transport->cancel(first.id);
  CHECK(third.get().body == "ok");
  TestServer closing{[](const Received&, Connection& connection) { connection.close_when_done(); }};
  const Response lost = open_for({closing.address()})->perform(watch_of("/v1/kv/a", 7));
  CHECK(lost.delivery == Delivery::kLost);
}

TEST_CASE("however much is asked at once, a daemon's clients open no more than their connections") {
  std::atomic<int> open = 0;
  std::atomic<int> most = 0;
  TestServer server{[&](const Received& received, Connection& connection) {
    const int now = ++open;
    int seen = most;
    while (seen < now && !most.compare_exchange_weak(seen, now)) {
    }
    std::this_thread::sleep_for(1ms);
    --open;
    connection.reply(200, "ok", index_header(received.target.starts_with("/w") ? "8" : "0"));
  }};
  const auto transport = open_for({server.address()}, {.max_short_requests = kShortConnections,
                                                       .max_urgent_requests = kUrgentConnections,
                                                       .max_polls = kPollConnections});
  std::vector<Pending> pending;
  for (int i = 0; i < 100; ++i) {
    pending.push_back(send(*transport, watch_of("/w", 7)));
    pending.push_back(send(*transport, request("GET", "/short")));
    Request urgent = request("PUT", "/urgent");
    urgent.urgent = true;
    pending.push_back(send(*transport, std::move(urgent)));
  }
  for (Pending& each : pending) CHECK(each.get().status == 200);
  CHECK(most <= static_cast<int>(kPollConnections + kShortConnections + kUrgentConnections));
  CHECK(server.connections() <= kPollConnections + kShortConnections + kUrgentConnections);
}

TEST_CASE("a refusal by a limit is the answer, and holds back all but urgent requests") {
  struct Row {
    int status;
    std::string body;
    bool is_limit;
  };
  for (const Row& row :
       {Row{429, "", true},
        Row{503, "rate limit exceeded for operation that can only be performed by the leader",
            true},
        Row{500, "rpc error making call: rate limit exceeded, try a different server", true},
        Row{503, "Service Unavailable", false}, Row{500, "rpc error", false},
        Row{403, "rate limit exceeded", false}}) {
    CAPTURE(row.body);
    std::atomic<bool> refuses = true;
    TestServer server{[&](const Received&, Connection& connection) {
      if (refuses.exchange(false)) return connection.reply(row.status, row.body);
      connection.reply(200, "ok", index_header("8"));
    }};
    const Tuning tuning{.backoff = backoff()};
    const auto one = open_for({server.address()}, tuning);
    const auto other = open_for({server.address()}, tuning);
    const Instant begin = boot_now();
    const Response refused = one->perform(request("PUT", "/txn"));
    CHECK(refused.status == row.status);
    CHECK(http::over_limit(refused) == row.is_limit);
    Pending again = send(*one, request("PUT", "/txn"));
    Pending read = send(*other, request("GET", "/read", "", 100ms));  // its time does not run yet
    Pending watched = send(*other, watch_of("/watch", 7));
    Request renewal = request("PUT", "/renew");
    renewal.urgent = true;
    CHECK(other->perform(renewal).status == 200);
    CHECK((tuning.backoff->held_until() > begin) == row.is_limit);
    const std::size_t asked = server.requests().size();
    const bool held = boot_now() < begin + RateBackoff::kFirst;  // else this machine is too slow
    if (row.is_limit && held) CHECK(asked == 2);
    for (Pending* each : {&again, &read, &watched}) CHECK(each->get().status == 200);
    if (row.is_limit) CHECK(boot_now() - begin >= RateBackoff::kFirst);
  }
}

TEST_CASE("a request that is held back can be cancelled, and ends with its client") {
  TestServer server{
      [](const Received&, Connection& connection) { connection.reply(429, "slow down"); }};
  auto transport = open_for({server.address()});
  CHECK(transport->perform(request("GET", "/")).status == 429);
  Pending cancelled = send(*transport, request("PUT", "/cancelled"));
  transport->cancel(cancelled.id);
  CHECK(cancelled.get().delivery == Delivery::kCancelled);
  Pending last = send(*transport, watch_of("/last", 7));
  transport.reset();
  CHECK(last.get().delivery == Delivery::kCancelled);
  CHECK(server.requests().size() == 1);
}

TEST_CASE("refusals in a row slow requests down") {
  TestServer server{[](const Received&, Connection& connection) { connection.reply(429, ""); }};
  const auto transport = open_for({server.address()}, {.backoff = backoff()});
  const Instant begin = boot_now();
  for (int i = 0; i < 3; ++i) CHECK(transport->perform(request("PUT", "/")).status == 429);
  CHECK(boot_now() - begin >= 500ms + 750ms);  // after the first and after the second
}

TEST_CASE("every request names the admin partition, as the consul command does") {
  TestServer server{[](const Received&, Connection& connection) {
    connection.reply(200, "", index_header("8"));
  }};
  Options options;
  options.consul_partition = "bil&ling";
  const auto transport = open_for({server.address()}, {}, options);
  CHECK(transport->perform(request("PUT", "/v1/session/create")).status == 200);
  CHECK(transport->perform(request("GET", "/v1/kv/a?recurse")).status == 200);
  CHECK(transport->perform(watch_of("/v1/kv/a", 7, 25s)).status == 200);
  const auto asked = server.requests();
  CHECK(asked.at(0).target == "/v1/session/create?partition=bil%26ling");
  CHECK(asked.at(1).target == "/v1/kv/a?recurse&partition=bil%26ling");
  CHECK(asked.at(2).target == "/v1/kv/a?index=7&wait=25000ms&partition=bil%26ling");
}
