#include "test_server.h"

#include <strings.h>

#include "base/assert.h"
#include "sockets.h"

namespace lictor::net::test {
namespace {

constexpr std::chrono::seconds kPatience{30};

int listen_on_unix(const std::string& path) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  LICTOR_ASSERT(fd >= 0);
  const sockaddr_un address = unix_name(path);
  LICTOR_ASSERT(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  LICTOR_ASSERT(::listen(fd, 1024) == 0);
  return fd;
}

}  // namespace

std::string Received::header(const std::string& name) const {
  std::size_t start = head.find("\r\n");
  while (start != std::string::npos && start + 2 < head.size()) {
    start += 2;
    const std::size_t end = head.find("\r\n", start);
    const std::string line = head.substr(start, end - start);
    const std::size_t colon = line.find(':');
    if (colon == name.size() && ::strncasecmp(line.c_str(), name.c_str(), colon) == 0) {
      const std::size_t value = line.find_first_not_of(' ', colon + 1);
      return value == std::string::npos ? "" : line.substr(value);
    }
    start = end;
  }
  return "";
}

void Connection::reply(int status, const std::string& body, const std::string& headers) {
  write("HTTP/1.1 " + std::to_string(status) + " Whatever\r\n" + headers +
        "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
}

void Connection::write(const std::string& bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = ::send(fd_, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
    if (n <= 0) return;  // The client has gone; that is for the test to notice.
    done += static_cast<std::size_t>(n);
  }
}

void Connection::reset() {
  const linger now{1, 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  done_ = true;
}

bool Connection::wait_until_closed() {
  char byte = 0;
  const ssize_t n = ::recv(fd_, &byte, 1, 0);
  done_ = true;
  return n <= 0;
}

TestServer::TestServer(Script script, std::string unix_path, int port)
    : script_(std::move(script)), unix_path_(std::move(unix_path)), port_(port) {
  listener_ = unix_path_.empty() ? listen_on_loopback(port_) : listen_on_unix(unix_path_);
  acceptor_ = std::thread{[this] { accept_all(); }};
}

TestServer::~TestServer() {
  {
    const std::lock_guard lock{mutex_};
    stopping_ = true;
    for (const Peer& peer : peers_) {
      if (peer.fd >= 0) ::shutdown(peer.fd, SHUT_RDWR);
    }
  }
  ::shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  for (Peer& peer : peers_) peer.thread.join();
  ::close(listener_);
}

std::string TestServer::address() const {
  return unix_path_.empty() ? "http://127.0.0.1:" + std::to_string(port_) : "unix://" + unix_path_;
}

std::size_t TestServer::connections() const {
  const std::lock_guard lock{mutex_};
  return peers_.size();
}

std::vector<Received> TestServer::requests() const {
  const std::lock_guard lock{mutex_};
  return requests_;
}

std::size_t TestServer::closed_by_client() const {
  const std::lock_guard lock{mutex_};
  return closed_by_client_;
}

bool TestServer::wait_for_requests(std::size_t count) {
  std::unique_lock lock{mutex_};
  return changed_.wait_for(lock, kPatience, [&] { return requests_.size() >= count; });
}

void TestServer::accept_all() {
  for (;;) {
    const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    const std::lock_guard lock{mutex_};
    if (fd < 0) {
      if (stopping_) return;
      continue;
    }
    if (stopping_) {
      ::close(fd);
      return;
    }
    Peer& peer = peers_.emplace_back();
    peer.fd = fd;
    peer.thread = std::thread{[this, fd, &peer] {
      serve(fd);
      const std::lock_guard done{mutex_};
      ::close(fd);
      peer.fd = -1;
    }};
  }
}

void TestServer::serve(int fd) {
  std::string buffer;
  Received request;
  Connection connection{fd};
  while (!connection.done_ && read_request(fd, buffer, request)) {
    {
      const std::lock_guard lock{mutex_};
      requests_.push_back(request);
      changed_.notify_all();
    }
    script_(request, connection);
  }
}

bool TestServer::read_request(int fd, std::string& buffer, Received& request) {
  const auto read_more = [&] {
    char bytes[16384];
    const ssize_t n = ::recv(fd, bytes, sizeof bytes, 0);
    if (n > 0) {
      buffer.append(bytes, static_cast<std::size_t>(n));
      return true;
    }
    const std::lock_guard lock{mutex_};
    if (!stopping_) ++closed_by_client_;
    changed_.notify_all();
    return false;
  };
  std::size_t end = 0;
  while ((end = buffer.find("\r\n\r\n")) == std::string::npos) {
    if (!read_more()) return false;
  }
  request.head = buffer.substr(0, end + 2);
  request.method = request.head.substr(0, request.head.find(' '));
  const std::size_t target = request.method.size() + 1;
  request.target = request.head.substr(target, request.head.find(' ', target) - target);
  buffer.erase(0, end + 4);
  const std::string length = request.header("Content-Length");
  const std::size_t bytes = length.empty() ? 0 : std::stoul(length);
  while (buffer.size() < bytes) {
    if (!read_more()) return false;
  }
  request.body = buffer.substr(0, bytes);
  buffer.erase(0, bytes);
  return true;
}

int closed_port() {
  int port = 0;
  ::close(listen_on_loopback(port));
  return port;
}

}  // namespace lictor::net::test
