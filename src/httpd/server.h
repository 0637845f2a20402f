#pragma once

// An HTTP server over libmicrohttpd: one thread reads requests and writes answers, a few workers
// run the handler. Everything is bounded: connections, bytes and the time of each step.
//
//   connection: idle -> reading -> handling (suspended) -> answering -> idle, or closed
//               each state but handling has a deadline that no trickle of bytes extends
//
// libmicrohttpd parses and sends; it neither accepts nor times out. Its own time-out restarts with
// every byte, so a client that sends a byte now and then could hold a connection for ever. So the
// loop here accepts, hands each socket over, and shuts down those that are late:
//
//   poll(): wake-up, libmicrohttpd's epoll, clients that wait for an answer, listeners
//     --> answered calls are resumed --> MHD_run() --> deadlines
//
// A closed connection lingers for half a second: the kernel resets a closed socket with unread
// bytes, and the reset could overtake the answer.
//
// At the end: exchanges learn that they are gone, waiting jobs run at once, handlers end, their
// answers get a second, then all connections are closed.

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "httpd/exchange.h"
#include "httpd/listener.h"
#include "lictor/result.h"

namespace lictor::httpd {

struct Options {
  /// On a worker. Answers now, or keeps the exchange and answers later from any thread.
  std::function<void(const ExchangePtr&)> handle;
  /// On the server's thread, before the body is read: the refusal. Must not block. May be empty.
  std::function<std::optional<Response>(const Request&)> refuse;

  /// On the server's thread: whether the handler answers such a request without waiting for others.
  /// A separate worker runs these, so that they are answered while all others wait. May be empty.
  std::function<bool(const Request&)> is_quick;

  std::vector<std::pair<std::string, std::string>> headers;  ///< of every answer

  /// At the bound the connection that has idled longest is closed for a new one.
  std::size_t max_connections = 32;
  bool answers_when_full = true;  ///< 503 where none idles; otherwise only closes
  bool keeps_alive = false;       ///< more than one request a connection
  std::size_t max_workers = 8;
  std::size_t max_head_bytes = 16 * 1024;  ///< request line and headers
  std::size_t max_body_bytes = 64 * 1024;

  std::chrono::milliseconds idle_time{10'000};    ///< up to the end of a request line
  std::chrono::milliseconds read_time{10'000};    ///< for headers and body
  std::chrono::milliseconds answer_time{60'000};  ///< for the answer, a stream's backlog included
};

class Server {
 public:
  /// Begins at once. Errors: kFailed (out of file descriptors).
  [[nodiscard]] static Result<std::unique_ptr<Server>> start(std::vector<Listener> listeners,
                                                             Options options);
  /// Tells the exchanges that they are gone, gives their answers a second to be sent, then closes
  /// all connections. Waits for handlers, never for a client.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

 private:
  class Loop;
  explicit Server(std::unique_ptr<Loop> loop);
  std::unique_ptr<Loop> loop_;
};

}  // namespace lictor::httpd
