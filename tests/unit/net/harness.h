#pragma once

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include <doctest/doctest.h>

#include "net/transport.h"
#include "test_server.h"
#include "unit/contains.h"
#include "unit/eventually.h"

namespace lictor::net::test {

using namespace std::chrono_literals;
using unit::eventually;

/// Long enough for a loaded machine under a sanitizer; no test waits for it when all is well.
constexpr std::chrono::seconds kGenerous{30};

inline std::unique_ptr<Transport> open_for(const std::vector<std::string>& addresses,
                                           Tuning tuning = {}, Options options = {}) {
  options.addresses = addresses;
  options.connect_timeout = kGenerous;
  auto transport = Transport::open(std::move(options), tuning);
  REQUIRE_MESSAGE(transport, (transport ? "" : transport.error().message));
  return *std::move(transport);
}

inline Request request(std::string method, std::string target, std::string body = "",
                       std::chrono::milliseconds timeout = kGenerous) {
  Request made;
  made.method = std::move(method);
  made.target = std::move(target);
  made.body = std::move(body);
  made.timeout = timeout;
  return made;
}

/// A request under way.
struct Pending {
  RequestId id;
  std::future<Response> reply;

  [[nodiscard]] Response get() {
    REQUIRE(reply.wait_for(kGenerous) == std::future_status::ready);
    return reply.get();
  }
  [[nodiscard]] bool is_done() const { return reply.wait_for(0s) == std::future_status::ready; }
};

inline Pending send(Transport& transport, Request what) {
  auto promise = std::make_shared<std::promise<Response>>();
  Pending pending{{}, promise->get_future()};
  // A second call would throw, and so fail the test: a callback runs once.
  pending.id = transport.send(
      std::move(what), [promise](Response response) { promise->set_value(std::move(response)); });
  return pending;
}

/// Sends the request `count` times.
inline std::vector<Pending> send_all(Transport& transport, int count, const Request& what) {
  std::vector<Pending> pending;
  for (int i = 0; i < count; ++i) pending.push_back(send(transport, what));
  return pending;
}

/// Answers every request with "ok".
inline void answer(const Received&, Connection& connection) { connection.reply(200, "ok"); }

/// Answers targets that contain "poll" never, others with "ok".
inline void hold_polls(const Received& received, Connection& connection) {
  if (contains(received.target, "poll")) {
    connection.wait_until_closed();
  } else {
    connection.reply(200, "ok");
  }
}

}  // namespace lictor::net::test
