#include "admin/connection.h"

#include <arpa/inet.h>
#include <httplib.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "base/clock.h"

namespace lictor::admin {
namespace {

using namespace std::chrono_literals;

// A request, whole: line, headers and body. The library itself reads a line of any length.
constexpr std::size_t kMaxRequestBytes = 128 * 1024;
constexpr std::size_t kMaxBodyBytes = 64 * 1024;
constexpr auto kReadTime = 10s;   // for the whole request
constexpr auto kWriteTime = 10s;  // for each piece of the answer
constexpr auto kLinger = 500ms;

int poll_one(int fd, short events, Duration timeout) {
  pollfd entry{fd, events, 0};
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(timeout).count();
  const int ready = poll(&entry, 1, static_cast<int>(std::max<long>(left, 0)));
  return ready > 0 ? entry.revents : 0;
}

std::string local_address_of(int fd) {
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &length) != 0) return {};
  if (storage.ss_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &storage, sizeof v4);
    inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size());
  } else if (storage.ss_family == AF_INET6) {
    sockaddr_in6 v6{};
    std::memcpy(&v6, &storage, sizeof v6);
    inet_ntop(AF_INET6, &v6.sin6_addr, text.data(), text.size());
  }
  constexpr std::string_view kMapped = "::ffff:";  // IPv4 that came in by a socket for both
  const std::string_view address{text.data()};
  return std::string{address.starts_with(kMapped) ? address.substr(kMapped.size()) : address};
}

// A socket with bounds on time and bytes.
class BoundedStream : public httplib::Stream {
 public:
  BoundedStream(int fd, bool trusted_listener)
      : trusted(trusted_listener),
        local_address(local_address_of(fd)),
        fd_(fd),
        read_until_(boot_now() + kReadTime) {}

  [[nodiscard]] bool is_readable() const override { return begin_ < end_ || room_ > 0; }
  [[nodiscard]] bool is_writable() const override { return !hung_up(0ms); }

  ssize_t read(char* target, size_t size) override {
    if (begin_ == end_) {
      const ssize_t got = fill();
      if (got <= 0) return got;
    }
    const std::size_t n = std::min(size, end_ - begin_);
    std::memcpy(target, buffer_.data() + begin_, n);
    begin_ += n;
    return static_cast<ssize_t>(n);
  }

  ssize_t write(const char* bytes, size_t size) override {
    const Instant until = boot_now() + kWriteTime;
    while (true) {
      const ssize_t n = send(fd_, bytes, size, MSG_NOSIGNAL);
      if (n >= 0) return n;
      if (errno == EINTR) continue;
      if (errno != EAGAIN || boot_now() >= until) return -1;
      poll_one(fd_, POLLOUT, until - boot_now());
    }
  }

  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  // The library refuses numbers that select() cannot take. Nothing here uses select().
  [[nodiscard]] ::socket_t socket() const override { return 0; }

  [[nodiscard]] bool hung_up(std::chrono::milliseconds wait) const {
    return poll_one(fd_, POLLRDHUP, wait) != 0;
  }

  // Closing a socket with unread bytes resets it, which can take the answer back from the client.
  void linger() {
    ::shutdown(fd_, SHUT_WR);
    read_until_ = boot_now() + kLinger;
    while (room_ > 0 && fill() > 0) {
    }
  }

  const bool trusted;
  const std::string local_address;

 private:
  ssize_t fill() {
    begin_ = end_ = 0;
    while (room_ > 0) {
      const ssize_t n = recv(fd_, buffer_.data(), std::min(buffer_.size(), room_), 0);
      if (n >= 0) {
        end_ = static_cast<std::size_t>(n);
        room_ -= end_;
        return n;
      }
      if (errno == EINTR) continue;
      if (errno != EAGAIN || boot_now() >= read_until_) return -1;
      poll_one(fd_, POLLIN, read_until_ - boot_now());
    }
    return -1;
  }

  const int fd_;
  Instant read_until_;
  std::array<char, 4096> buffer_{};
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::size_t room_ = kMaxRequestBytes;
};

// The library hands its handlers nothing of ours: the stream that this thread serves.
thread_local const BoundedStream* current = nullptr;

std::optional<std::string> header(const httplib::Request& request, const char* name) {
  if (!request.has_header(name)) return std::nullopt;
  return request.get_header_value(name);
}

Request to_request(const httplib::Request& from) {
  Request request;
  request.method = from.method;
  request.path = from.path;
  request.query.insert(from.params.begin(), from.params.end());
  request.body = from.body;
  request.host = header(from, "Host");
  request.origin = header(from, "Origin");
  request.authorization = header(from, "Authorization");
  request.trusted_listener = current->trusted;
  request.local_address = current->local_address;
  request.pause = [stream = current](std::chrono::milliseconds span) {
    return !stream->hung_up(span);
  };
  return request;
}

void fill_in(Response from, httplib::Response& to) {
  to.status = from.status;
  for (const auto& [name, value] : from.headers) to.set_header(name, value);
  // What is said here changes all the time, and is none of a search engine's or a frame's business.
  to.set_header("Cache-Control", "no-store");
  to.set_header("X-Content-Type-Options", "nosniff");
  to.set_content(std::move(from.body), from.content_type);
}

}  // namespace

class HttpFace::Library : public httplib::Server {
 public:
  explicit Library(const Router& router) {
    // Before any of the body is read, so that nobody's is who may not send one.
    set_pre_routing_handler([&router](const httplib::Request& from, httplib::Response& to) {
      const Request request = to_request(from);
      if (auto refused = router.refuse(request)) {
        fill_in(std::move(*refused), to);
        return HandlerResponse::Handled;
      }
      if (from.method != "GET" && from.method != "HEAD") return HandlerResponse::Unhandled;
      fill_in(router.handle(request), to);
      return HandlerResponse::Handled;
    });
    const Handler handler = [&router](const httplib::Request& from, httplib::Response& to) {
      fill_in(router.handle(to_request(from)), to);
    };
    Post(".*", handler);
    Put(".*", handler);
    Patch(".*", handler);
    Delete(".*", handler);
    set_exception_handler([](const httplib::Request&, httplib::Response& to, std::exception_ptr) {
      fill_in(error_response(500, "the daemon could not answer; its host may be out of memory"),
              to);
    });
    set_payload_max_length(kMaxBodyBytes);
  }

  void answer(BoundedStream& stream) {
    bool closed = false;
    current = &stream;
    process_request(stream, true, closed, [](httplib::Request& request) {
      // Of a few bytes the library makes many: a part of the answer for each range that is asked
      // for, and whatever a packed body unfolds to.
      request.ranges.clear();
      request.headers.erase("Range");
      request.headers.erase("Content-Encoding");
    });
    current = nullptr;
  }
};

HttpFace::HttpFace(const Router& router) : library_(std::make_unique<Library>(router)) {}
HttpFace::~HttpFace() = default;

void HttpFace::serve(int fd, bool trusted_listener) {
  BoundedStream stream{fd, trusted_listener};
  library_->answer(stream);
  stream.linger();
}

}  // namespace lictor::admin
