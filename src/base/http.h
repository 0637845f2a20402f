#pragma once

// HTTP as the wire layer words it and the net layer carries it.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lictor/time.h"

namespace lictor::http {

/// A blocking query that waits for a change after `index`, which its target names. The HTTP client
/// adds `&wait=` and may ask in pieces: an answer with the same index shows no change, and is kept
/// back until `wait` is over. If there are more watches than connections for them, they take turns
/// (net/poll_turns.h).
struct Watch {
  std::uint64_t index = 0;
  std::chrono::milliseconds wait{25'000};
  bool prompt = false;  ///< work waits for its answer: gets its turn more often
};

/// One HTTP request. `target` is path and query, percent-encoded by the caller
/// ("/v1/kv/a%20b?raw").
struct Request {
  std::string method = "GET";
  std::string target;
  std::string body;  ///< sent with Content-Length, for PUT and POST also when empty
  std::vector<std::pair<std::string, std::string>> headers;
  /// For the whole request, beyond the wait of `watch`. Does not run while the request waits for a
  /// place and earlier ones are answered.
  std::chrono::milliseconds timeout{3000};
  /// The request fails earlier after this time without a byte, rounded up to seconds; 0: never.
  std::chrono::milliseconds silence{0};
  /// Changes nothing, whatever the method: may be sent twice, as a GET may.
  bool only_reads = false;
  bool long_poll = false;      ///< a blocking query: takes no place of a short request
  std::optional<Watch> watch;  ///< for a long poll; none: its target says how long to wait
  /// Leadership depends on it: goes before all others, also while Consul's limits hold those back.
  bool urgent = false;
};

/// How far a request came. Only kReplied carries a status; kNotSent is the only failure after
/// which a write is certain not to have landed.
enum class Delivery {
  kReplied,    ///< status, headers and the whole body arrived
  kNotSent,    ///< no connection: no byte of the request left
  kLost,       ///< it may have been carried out; no whole reply came (reset, time-out)
  kCancelled,  ///< by cancel() or shutdown; it may have been carried out
};

struct Response {
  Delivery delivery = Delivery::kNotSent;
  int status = 0;
  std::string body;
  /// X-Consul-Index; 0 when absent or unreadable (Consul says to treat 0 as 1).
  std::uint64_t consul_index = 0;
  /// X-Consul-KnownLeader; absent on errors and on writes.
  std::optional<bool> known_leader;
  std::string error;     ///< for a person, when not kReplied: what failed, at which address
  std::string endpoint;  ///< the address that was asked last
  Instant sent_at{};     ///< when send() was called: never later than the first byte
  Duration elapsed{};    ///< from the first byte received to the last: the transfer's cost
};

[[nodiscard]] inline Request put(std::string target, std::string body = {},
                                 std::chrono::milliseconds timeout = Request{}.timeout) {
  Request request;
  request.method = "PUT";
  request.target = std::move(target);
  request.body = std::move(body);
  request.timeout = timeout;
  return request;
}

/// Whether the whole reply arrived, with this status.
[[nodiscard]] inline bool replied(const Response& response, int status) {
  return response.delivery == Delivery::kReplied && response.status == status;
}

/// Consul refused because of a limit of its own: it did nothing, and fewer requests should be sent.
/// 429: rpc_rate, http_max_conns_per_client, request_limits. 503 with this text: request_limits
/// again, if only the leader could have answered. Client agents may pass the text on as a 500.
[[nodiscard]] inline bool over_limit(const Response& response) {
  if (response.delivery != Delivery::kReplied) return false;
  return response.status == 429 ||
         (response.status >= 500 && response.body.find("rate limit exceeded") != std::string::npos);
}

}  // namespace lictor::http
