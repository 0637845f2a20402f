#pragma once

#include <condition_variable>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "temporary_folder.h"

namespace lictor::net::test {

using lictor::unit::TemporaryFolder;

/// One request that the server read off a connection.
struct Received {
  std::string method;
  std::string target;
  std::string head;  ///< the lines up to the empty one
  std::string body;

  /// The value of the header, or "" when it is absent.
  [[nodiscard]] std::string header(const std::string& name) const;
};

/// The server's end of one connection, as its script sees it.
class Connection {
 public:
  explicit Connection(int fd) : fd_(fd) {}

  /// Sends a whole reply. `headers` are lines that each end in "\r\n".
  void reply(int status, const std::string& body, const std::string& headers = "");
  void write(const std::string& bytes);
  void close_when_done() { done_ = true; }  ///< an orderly end (FIN)
  void reset();                             ///< a disorderly one (RST)
  /// Blocks until the client closes the connection (true) or the server stops.
  bool wait_until_closed();

 private:
  friend class TestServer;
  int fd_;
  bool done_ = false;
};

/// A raw HTTP/1.1 server that does only what its script says. The script runs on a thread for each
/// connection, once for each request.
class TestServer {
 public:
  using Script = std::function<void(const Received&, Connection&)>;

  /// Listens on a free port of the loopback, or on `unix_path`.
  explicit TestServer(Script script, std::string unix_path = "", int port = 0);
  ~TestServer();
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;

  [[nodiscard]] int port() const { return port_; }
  [[nodiscard]] std::string address() const;

  [[nodiscard]] std::size_t connections() const;
  [[nodiscard]] std::vector<Received> requests() const;
  [[nodiscard]] std::size_t closed_by_client() const;

  /// Waits for at least `count` requests; false after a generous limit.
  [[nodiscard]] bool wait_for_requests(std::size_t count);

 private:
  struct Peer {
    int fd = -1;
    std::thread thread;
  };

  void accept_all();
  void serve(int fd);
  bool read_request(int fd, std::string& buffer, Received& request);

  Script script_;
  std::string unix_path_;
  int listener_ = -1;
  int port_ = 0;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Peer> peers_;
  std::vector<Received> requests_;
  std::size_t closed_by_client_ = 0;
  bool stopping_ = false;
  std::thread acceptor_;
};

/// A port of the loopback on which nobody listens.
[[nodiscard]] int closed_port();

}  // namespace lictor::net::test
