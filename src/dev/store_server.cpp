#include "dev/store_server.h"

#include <httplib.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/random.h"
#include "dev/headers.h"

namespace lictor::dev {
namespace {

using namespace std::chrono_literals;

constexpr int kMaxConnections = 200;  // Consul's http_max_conns_per_client
constexpr int kPatienceMs = 60'000;   // for the next byte, sent or taken, or the next request
constexpr std::size_t kMaxBodyBytes = 8 * 1024 * 1024;
constexpr Duration kLookAtClient =
    1s;  // how often a waiting query looks whether its client is there

// The model, for many threads.
class Store {
 public:
  Store(Model& model, OnChange on_change) : model_(model), on_change_(std::move(on_change)) {}

  // Blocks as a blocking query does, or until `is_gone` says so.
  template <class IsGone>
  http::Response ask(const http::Request& request, const IsGone& is_gone) {
    std::unique_lock lock{mutex_};
    const auto wait = blocking_wait(request);
    // And up to a sixteenth more, as Consul adds it (4.1).
    const Duration span = wait.value_or(Duration{});
    const auto more = static_cast<double>(span.count()) / 16 * random_.fraction();
    const Instant until = boot_now() + span + Duration{static_cast<Duration::rep>(more)};
    Watch watch;
    while (true) {
      const std::uint64_t before = model_.index();
      const Instant now = boot_now();
      auto answered = model_.handle(now, request, now >= until || is_gone(), &watch);
      if (model_.index() != before) {
        changed_.notify_all();
        if (on_change_) on_change_(model_.state());
      }
      if (answered) return std::move(*answered);
      const Instant next = std::min({until, model_.next_deadline(), now + kLookAtClient});
      changed_.wait_for(lock, next - now);
    }
  }

 private:
  Model& model_;
  const OnChange on_change_;
  Random random_{random_seed()};
  std::mutex mutex_;
  std::condition_variable changed_;
};

// Who is connected. At the limit a connection that waits for its next request goes for a new one,
// the one that has waited longest first: who opens many and says nothing keeps nobody out.
class Connections {
 public:
  // False: there are too many, and all of them are busy.
  bool admit() {
    const std::lock_guard lock{mutex_};
    if (open_ >= kMaxConnections) {
      const auto longest = std::min_element(idle_.begin(), idle_.end(),
                                            [](auto& a, auto& b) { return a.second < b.second; });
      if (longest == idle_.end()) return false;
      shutdown(longest->first, SHUT_RDWR);
      idle_.erase(longest);
      --open_;
    }
    ++open_;
    return true;
  }
  void idle(int fd) {
    const std::lock_guard lock{mutex_};
    idle_[fd] = boot_now();
  }
  // False: it had to go.
  bool busy(int fd) {
    const std::lock_guard lock{mutex_};
    return idle_.erase(fd) != 0;
  }
  void end(int fd, bool had_to_go) {
    const std::lock_guard lock{mutex_};
    if (!had_to_go) --open_;
    close(fd);
  }

 private:
  std::mutex mutex_;
  int open_ = 0;  // without those that had to go
  std::map<int, Instant> idle_;
};

// A blocking socket.
class SocketStream : public httplib::Stream {
 public:
  explicit SocketStream(int fd) : fd_(fd) {}

  [[nodiscard]] bool is_readable() const override { return begin_ < end_ || ready(kPatienceMs); }
  [[nodiscard]] bool is_writable() const override { return true; }
  ssize_t read(char* target, size_t size) override {
    if (begin_ == end_) {
      begin_ = end_ = 0;
      if (!ready(kPatienceMs)) return -1;
      const ssize_t got = recv(fd_, buffer_.data(), buffer_.size(), 0);
      if (got <= 0) return got;
      end_ = static_cast<std::size_t>(got);
    }
    const std::size_t n = std::min(size, end_ - begin_);
    std::memcpy(target, buffer_.data() + begin_, n);
    begin_ += n;
    return static_cast<ssize_t>(n);
  }
  ssize_t write(const char* bytes, size_t size) override {
    return send(fd_, bytes, size, MSG_NOSIGNAL);
  }
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  // The library refuses numbers that select() cannot take. Nothing here uses select().
  [[nodiscard]] ::socket_t socket() const override { return 0; }

  [[nodiscard]] bool hung_up() const {
    pollfd entry{fd_, POLLRDHUP, 0};
    return poll(&entry, 1, 0) > 0;
  }

 private:
  [[nodiscard]] bool ready(int timeout_ms) const {
    pollfd entry{fd_, POLLIN, 0};
    return poll(&entry, 1, timeout_ms) > 0;
  }

  const int fd_;
  std::array<char, 16'384> buffer_{};
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

// The library hands its handlers nothing of ours: the stream that this thread serves.
thread_local const SocketStream* current = nullptr;

class Library : public httplib::Server {
 public:
  explicit Library(Store& store) : store_(store) {
    set_pre_routing_handler([this](const httplib::Request& from, httplib::Response& to) {
      if (from.method != "GET" && from.method != "HEAD") return HandlerResponse::Unhandled;
      handle(from, to);
      return HandlerResponse::Handled;
    });
    const Handler handler = [this](const httplib::Request& from, httplib::Response& to) {
      handle(from, to);
    };
    Post(".*", handler);
    Put(".*", handler);
    Patch(".*", handler);
    Delete(".*", handler);
    Options(".*", handler);
    set_payload_max_length(kMaxBodyBytes);
  }

  void answer_all(int fd, Connections& connections) {
    SocketStream stream{fd};
    current = &stream;
    bool had_to_go = false;
    const auto next = [&] {
      connections.idle(fd);
      const bool readable = stream.is_readable();
      had_to_go = !connections.busy(fd);
      return readable && !had_to_go;
    };
    bool closed = false;
    while (
        !closed && next() && process_request(stream, false, closed, [](httplib::Request& request) {
          // The library would take a body apart by its type, and wait for one without a length.
          request.headers.erase("Content-Type");
          request.headers.erase("Range");
          request.ranges.clear();
          if (!request.has_header("Content-Length") && !request.has_header("Transfer-Encoding")) {
            request.headers.emplace("Content-Length", "0");
          }
        })) {
    }
    current = nullptr;
    connections.end(fd, had_to_go);
  }

 private:
  void handle(const httplib::Request& from, httplib::Response& to) {
    http::Request request;
    request.method = from.method;
    request.target = from.target;
    request.body = from.body;
    http::Response response = store_.ask(request, [stream = current] { return stream->hung_up(); });
    to.status = response.status;
    for (const auto& [name, value] : headers_of(request, response)) to.set_header(name, value);
    to.body = std::move(response.body);
  }

  Store& store_;
};

}  // namespace

void serve_store(int listener, Model& model, OnChange on_change) {
  Store store{model, std::move(on_change)};
  Library library{store};
  Connections connections;
  constexpr timeval kSendPatience{kPatienceMs / 1000, 0};
  while (true) {
    const int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) {
      if (errno == EMFILE || errno == ENFILE) std::this_thread::sleep_for(100ms);
      pollfd entry{listener, POLLIN, 0};
      poll(&entry, 1, -1);
      continue;
    }
    if (!connections.admit()) {
      close(fd);  // as Consul does (CONSUL-FACTS.md 8)
      continue;
    }
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &kSendPatience, sizeof kSendPatience);
    // The library writes head and body apart; the body would wait for the head's ACK, 40 ms.
    constexpr int kOn = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &kOn, sizeof kOn);
    std::thread{[&library, &connections, fd] { library.answer_all(fd, connections); }}.detach();
  }
}

}  // namespace lictor::dev
