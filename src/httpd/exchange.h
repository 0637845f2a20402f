#pragma once

// A request to one of lictor's HTTP servers and its answer, free of the library that carries them.

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "httpd/url.h"

namespace lictor::httpd {

struct Request {
  std::string method;                                       ///< "GET", "HEAD", ...
  std::string target;                                       ///< path and query as they were sent
  Url url;                                                  ///< the target, decoded
  std::map<std::string, std::string, std::less<>> headers;  ///< names in lower case; first values
  std::string body;

  std::string client;             ///< "192.0.2.9:40112"; over a unix socket "uid 1000, pid 77"
  std::string local_address;      ///< of this connection: "192.0.2.7", "::1"; empty: a unix socket
  bool trusted_listener = false;  ///< loopback or unix socket: the client is on this host

  /// std::nullopt if the header was not sent.
  [[nodiscard]] std::optional<std::string> header(std::string_view name) const {
    const auto it = headers.find(name);
    return it == headers.end() ? std::nullopt : std::optional{it->second};
  }
  /// The first value of a query parameter; std::nullopt if it was not sent.
  [[nodiscard]] std::optional<std::string> parameter(std::string_view name) const {
    return url.has(name) ? std::optional{url.get(name)} : std::nullopt;
  }
};

struct Response {
  int status = 200;
  std::string content_type = "application/json";  ///< empty: no such header
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
  bool is_stream = false;  ///< the body goes on with Exchange::send(), up to Exchange::end()
};

/// A request that awaits its answer. Thread safe; may outlive its server.
///
/// An answer, or a stream:
///
///   answer(response)                                           one body, sent as a whole
///   answer(response with is_stream), send(), send(), end()     a body that grows, without a length
class Exchange {
 public:
  virtual ~Exchange() = default;
  [[nodiscard]] virtual const Request& request() const = 0;

  /// Sends the answer; does not block. Later calls do nothing. A connection is held until its
  /// request is answered.
  virtual void answer(Response response) = 0;

  /// Whether the client has gone or the server stops: answer now, with what there is.
  [[nodiscard]] virtual bool gone() const = 0;

  /// Runs `job` on a thread of the server after `delay`, or at once when the server stops; never
  /// after its end.
  virtual void later(std::chrono::milliseconds delay, std::function<void()> job) = 0;

  /// Appends to the body of a stream; does not block. False: the client has gone, or has left
  /// kMaxUnsentBytes unread; the connection is then closed.
  [[nodiscard]] virtual bool send(std::string_view bytes) = 0;
  /// Ends a stream after what was sent.
  virtual void end() = 0;

  static constexpr std::size_t kMaxUnsentBytes = 64 * 1024;
};

using ExchangePtr = std::shared_ptr<Exchange>;

}  // namespace lictor::httpd
