#include "httpd/server.h"

#include <fcntl.h>
#include <microhttpd.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <list>
#include <map>
#include <thread>

#include "base/clock.h"
#include "base/errno_text.h"
#include "base/text.h"
#include "httpd/call.h"

namespace lictor::httpd {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kFull =
    "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\n"
    "Content-Length: 33\r\nRetry-After: 1\r\nConnection: close\r\n\r\n"
    "{\"error\":\"too many connections\"}\n";
constexpr auto kLastAnswers = 1s;
constexpr auto kLinger = 500ms;
constexpr auto kOutOfDescriptorsPause = 100ms;

Response error(int status, std::string_view message) {
  return {status, "application/json", "{\"error\":\"" + std::string{message} + "\"}\n", {}};
}

struct Connection {
  int fd = -1;
  std::string client, local_address;
  bool trusted = false;
  Instant deadline;
  bool idle = true;  // between requests
  bool cut = false;  // shut down by us
  std::string target;
  std::shared_ptr<Call> call;
};

// A closed connection whose client may still read: closing a socket with unread bytes would reset
// it, and could take the answer back.
struct Lingering {
  UniqueFd fd;
  Instant until;

  // Whether the linger is over.
  [[nodiscard]] bool discard(Instant now) const {
    std::array<char, 16'384> buffer{};
    ssize_t n = 0;
    while ((n = recv(fd.get(), buffer.data(), buffer.size(), MSG_DONTWAIT)) > 0 && now < until) {
      now = boot_now();
    }
    return now >= until || n == 0 || (errno != EAGAIN && errno != EINTR);
  }
};

}  // namespace

class Server::Loop {
 public:
  Loop(std::vector<Listener> listeners, Options options)
      : listeners_(std::move(listeners)),
        options_(std::move(options)),
        shared_(std::make_shared<Shared>(options_.max_workers)) {
    if (options_.is_quick) quick_.emplace(1);
  }
  ~Loop();

  [[nodiscard]] bool start();

 private:
  void run();
  void wait();
  void accept_from(const Listener& listener);
  [[nodiscard]] bool make_room();
  void resume_answered();
  void enforce_deadlines();
  void cut(Connection& connection);
  [[nodiscard]] bool has_unsent_answers() const;
  void end();

  // Callbacks of libmicrohttpd, on the server's thread.
  static void* on_target(void* self, const char* target, MHD_Connection* mhd);
  static MHD_Result on_request(void* self, MHD_Connection* mhd, const char*, const char* method,
                               const char*, const char* data, std::size_t* size, void**);
  static void on_completed(void* self, MHD_Connection* mhd, void**, MHD_RequestTerminationCode);
  static void on_connection(void* self, MHD_Connection* mhd, void**,
                            MHD_ConnectionNotificationCode code);

  [[nodiscard]] Connection& connection_of(MHD_Connection* mhd);
  [[nodiscard]] MHD_Result begin(Connection& connection, MHD_Connection* mhd, const char* method);
  [[nodiscard]] MHD_Result queue(Connection& connection, MHD_Connection* mhd, Response response,
                                 bool closes);
  void dispatch(const std::shared_ptr<Call>& call);

  const std::vector<Listener> listeners_;
  const Options options_;
  const std::shared_ptr<Shared> shared_;
  std::optional<ThreadPool> quick_;
  MHD_Daemon* daemon_ = nullptr;
  int daemon_fd_ = -1;
  std::map<int, Connection> connections_;  // by descriptor
  std::list<Lingering> lingering_;
  Instant accept_again_{};          // out of descriptors until then
  std::atomic<bool> last_ = false;  // no further answer will come
  std::thread thread_;
};

// libmicrohttpd may have twice the connections: those that were cut count until it has closed them.
bool Server::Loop::start() {
  if (!shared_->wake.open()) return false;
  daemon_ = MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME, 0,
                             nullptr, nullptr, &Loop::on_request, this, MHD_OPTION_URI_LOG_CALLBACK,
                             &Loop::on_target, this, MHD_OPTION_NOTIFY_COMPLETED,
                             &Loop::on_completed, this, MHD_OPTION_NOTIFY_CONNECTION,
                             &Loop::on_connection, this, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                             options_.max_head_bytes, MHD_OPTION_CONNECTION_LIMIT,
                             static_cast<unsigned>(2 * options_.max_connections), MHD_OPTION_END);
  if (daemon_ == nullptr) return false;
  daemon_fd_ = MHD_get_daemon_info(daemon_, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
  thread_ = std::thread{[this] { run(); }};
  return true;
}

Server::Loop::~Loop() {
  if (daemon_ == nullptr) return;
  shared_->stopping = true;
  shared_->notify();
  shared_->workers.stop();
  if (quick_) quick_->stop();
  last_ = true;
  shared_->notify();
  thread_.join();
}

void Server::Loop::run() {
  Instant until = Instant::max();
  while (true) {
    wait();
    resume_answered();
    MHD_run(daemon_);
    enforce_deadlines();
    if (!last_) continue;
    until = std::min(until, boot_now() + kLastAnswers);
    if (!has_unsent_answers() || boot_now() >= until) return end();
  }
}

// libmicrohttpd does not look at suspended connections, so this does: a client that has gone need
// not be answered.
void Server::Loop::wait() {
  Instant next = Instant::max();
  std::vector<pollfd> fds{{shared_->wake.fd(), POLLIN, 0}, {daemon_fd_, POLLIN, 0}};
  std::vector<Connection*> watched;
  for (auto& [fd, connection] : connections_) {
    next = std::min(next, connection.deadline);
    if (connection.call && connection.call->suspended && !connection.call->is_gone()) {
      fds.push_back({fd, POLLRDHUP, 0});
      watched.push_back(&connection);
    }
  }
  for (const Lingering& each : lingering_) {
    fds.push_back({each.fd.get(), POLLIN, 0});
    next = std::min(next, each.until);
  }
  const Instant now = boot_now();
  const bool accepts = now >= accept_again_ && !shared_->stopping;
  if (!accepts && !shared_->stopping) next = std::min(next, accept_again_);
  if (last_) next = std::min<Instant>(next, now + 50ms);
  const std::size_t first_listener = fds.size();
  if (accepts) {
    for (const Listener& listener : listeners_) fds.push_back({listener.fd.get(), POLLIN, 0});
  }
  int timeout = next == Instant::max()
                    ? -1
                    : static_cast<int>(std::max<std::int64_t>(
                          0, std::chrono::ceil<std::chrono::milliseconds>(next - now).count()));
  MHD_UNSIGNED_LONG_LONG pending = 0;
  if (MHD_get_timeout(daemon_, &pending) == MHD_YES && pending == 0) timeout = 0;
  if (poll(fds.data(), fds.size(), timeout) <= 0) return;

  shared_->wake.clear();
  for (std::size_t i = 0; i < watched.size(); ++i) {
    if (fds[2 + i].revents == 0) continue;
    watched[i]->call->set_gone();
    if (watched[i]->call->is_stream) watched[i]->call->resume();
  }
  for (std::size_t i = first_listener; i < fds.size(); ++i) {
    if (fds[i].revents != 0) accept_from(listeners_[i - first_listener]);
  }
}

void Server::Loop::accept_from(const Listener& listener) {
  UniqueFd fd{accept4(listener.fd.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)};
  if (!fd) {
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
      accept_again_ = boot_now() + kOutOfDescriptorsPause;  // It stays in the queue.
    }
    return;
  }
  if (!make_room()) {
    if (options_.answers_when_full) send(fd.get(), kFull.data(), kFull.size(), MSG_NOSIGNAL);
    return;
  }
  sockaddr_storage peer{};
  socklen_t length = sizeof peer;
  getpeername(fd.get(), reinterpret_cast<sockaddr*>(&peer), &length);
  const int number = fd.release();  // libmicrohttpd closes it, also when it refuses it
  Connection& connection = connections_[number];
  connection.fd = number;
  connection.client = client_text(number);
  connection.local_address = local_name(number).host;
  connection.trusted = listener.trusted;
  connection.deadline = boot_now() + options_.idle_time;
  if (MHD_add_connection(daemon_, number, reinterpret_cast<const sockaddr*>(&peer), length) !=
      MHD_YES) {
    connections_.erase(number);
  }
}

// A connection that lingers gives way to a new client, else the one that has idled longest. False:
// all are busy.
bool Server::Loop::make_room() {
  const auto open = static_cast<std::size_t>(
      std::ranges::count_if(connections_, [](const auto& each) { return !each.second.cut; }));
  if (open + lingering_.size() < options_.max_connections) return true;
  if (!lingering_.empty()) return lingering_.pop_front(), true;
  Connection* longest = nullptr;
  for (auto& [fd, connection] : connections_) {
    const bool idles = connection.idle && !connection.cut;
    if (idles && (longest == nullptr || connection.deadline < longest->deadline)) {
      longest = &connection;
    }
  }
  if (longest == nullptr) return false;
  cut(*longest);
  return true;
}

// A stream that goes on gets a new deadline with each piece; it has none while it waits for one.
void Server::Loop::resume_answered() {
  for (const auto& call : shared_->take_ready()) {
    if (call->is_stream && call->suspended) {
      connection_of(call->mhd).deadline = boot_now() + options_.answer_time;
    }
    call->resume();
  }
  if (!shared_->stopping) return;
  for (auto& [fd, connection] : connections_) {
    if (connection.call && connection.call->is_stream) connection.call->resume();  // it ends
  }
}

void Server::Loop::enforce_deadlines() {
  const Instant now = boot_now();
  for (auto& [fd, connection] : connections_) {
    if (connection.call && connection.call->is_stream && connection.call->suspended) {
      connection.deadline = Instant::max();  // the client has read all that was sent
    }
    if (now >= connection.deadline) cut(connection);
  }
  lingering_.remove_if([&](const Lingering& each) { return each.discard(now); });
}

// The descriptor is libmicrohttpd's, so only a shutdown is allowed: libmicrohttpd sees the end of
// the connection and closes it.
void Server::Loop::cut(Connection& connection) {
  shutdown(connection.fd, SHUT_RDWR);
  connection.cut = true;
  connection.deadline = Instant::max();
}

bool Server::Loop::has_unsent_answers() const {
  return std::ranges::any_of(connections_, [](const auto& each) {
    const Connection& connection = each.second;
    const Call* call = connection.call.get();
    return call && call->dispatched && !call->suspended && !connection.cut;
  });
}

// Suspended connections must be resumed first: libmicrohttpd cannot stop while there is one.
void Server::Loop::end() {
  shared_->close();
  for (auto& [fd, connection] : connections_) {
    if (connection.call) connection.call->resume();  // unanswered: closed
  }
  MHD_run(daemon_);
  MHD_stop_daemon(daemon_);
}

void* Server::Loop::on_target(void* self, const char* target, MHD_Connection* mhd) {
  auto& loop = *static_cast<Loop*>(self);
  Connection& connection = loop.connection_of(mhd);
  connection.target = target;
  connection.idle = false;
  connection.deadline = boot_now() + loop.options_.read_time;
  return nullptr;
}

Connection& Server::Loop::connection_of(MHD_Connection* mhd) {
  return connections_.at(
      MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd);
}

// Called several times for one request: with its headers, with each piece of its body, at the end
// of the body, and once more when the suspended connection is resumed with an answer.
MHD_Result Server::Loop::on_request(void* self, MHD_Connection* mhd, const char*,
                                    const char* method, const char*, const char* data,
                                    std::size_t* size, void**) {
  auto& loop = *static_cast<Loop*>(self);
  Connection& connection = loop.connection_of(mhd);
  if (!connection.call) return loop.begin(connection, mhd, method);
  Call& call = *connection.call;
  std::string& body = call.asked.body;
  if (*size != 0) {
    // One byte over the limit shows that it was exceeded; the rest is dropped.
    const std::size_t room = loop.options_.max_body_bytes + 1 - body.size();
    body.append(data, std::min(*size, room));
    *size = 0;
    return MHD_YES;
  }
  if (body.size() > loop.options_.max_body_bytes) {
    return loop.queue(connection, mhd, error(413, "the body is too large"), true);
  }
  if (!std::exchange(call.dispatched, true)) {
    connection.deadline = Instant::max();
    call.suspend();
    loop.dispatch(connection.call);
    return MHD_YES;
  }
  auto response = call.take_response();
  if (!response) return MHD_NO;  // the server ends
  return loop.queue(connection, mhd, std::move(*response), !loop.options_.keeps_alive);
}

// The headers are there. A refusal here saves reading the body of a client without a token.
MHD_Result Server::Loop::begin(Connection& connection, MHD_Connection* mhd, const char* method) {
  if (shared_->stopping) return MHD_NO;
  connection.call = std::make_shared<Call>(shared_, mhd);
  Request& request = connection.call->asked;
  request.method = method;
  request.target = connection.target;
  request.client = connection.client;
  request.local_address = connection.local_address;
  request.trusted_listener = connection.trusted;
  MHD_get_connection_values_n(
      mhd, MHD_HEADER_KIND,
      [](void* headers, MHD_ValueKind, const char* name, std::size_t name_size, const char* value,
         std::size_t value_size) {
        static_cast<decltype(Request::headers)*>(headers)->emplace(lowered({name, name_size}),
                                                                   std::string{value, value_size});
        return MHD_YES;
      },
      &request.headers);
  auto url = parse_url(request.target);
  if (!url) return queue(connection, mhd, error(400, "the path's % escapes are wrong"), true);
  request.url = std::move(*url);
  if (options_.refuse) {
    if (auto refused = options_.refuse(request)) {
      return queue(connection, mhd, std::move(*refused), true);
    }
  }
  // libmicrohttpd has refused a value that is no number.
  const auto bytes = to_number<std::uint64_t>(request.header("content-length").value_or("0"));
  if (!bytes || *bytes > options_.max_body_bytes) {
    return queue(connection, mhd, error(413, "the body is too large"), true);
  }
  return MHD_YES;
}

// An exception of a handler must not end the daemon.
void Server::Loop::dispatch(const std::shared_ptr<Call>& call) {
  const bool is_quick = quick_ && options_.is_quick(call->asked);
  const bool posted = (is_quick ? *quick_ : shared_->workers).post([this, call] {
    try {
      options_.handle(call);
    } catch (...) {
      call->answer(error(500, "the daemon could not answer; its host may be out of memory"));
    }
  });
  if (!posted) call->answer(error(503, "the daemon cannot start a thread"));
}

MHD_Result Server::Loop::queue(Connection& connection, MHD_Connection* mhd, Response response,
                               bool closes) {
  connection.deadline = boot_now() + options_.answer_time;
  connection.call->dispatched = true;
  MHD_Response* out = nullptr;
  if (response.is_stream) {
    connection.call->is_stream = true;
    constexpr std::size_t kBlock = 4096;
    out = MHD_create_response_from_callback(
        MHD_SIZE_UNKNOWN, kBlock,
        [](void* call, std::uint64_t, char* buffer, std::size_t size) {
          return (*static_cast<std::shared_ptr<Call>*>(call))->read(buffer, size);
        },
        new std::shared_ptr<Call>{connection.call},
        [](void* call) { delete static_cast<std::shared_ptr<Call>*>(call); });
  } else {
    auto* body = new std::string{std::move(response.body)};
    out = MHD_create_response_from_buffer_with_free_callback_cls(
        body->size(), body->data(), [](void* bytes) { delete static_cast<std::string*>(bytes); },
        body);
  }
  if (out == nullptr) return MHD_NO;
  if (!response.content_type.empty()) {
    MHD_add_response_header(out, "Content-Type", response.content_type.c_str());
  }
  response.headers.insert(response.headers.end(), options_.headers.begin(), options_.headers.end());
  for (const auto& [name, value] : response.headers) {
    MHD_add_response_header(out, name.c_str(), value.c_str());
  }
  if (closes) MHD_add_response_header(out, "Connection", "close");
  const MHD_Result queued = MHD_queue_response(mhd, static_cast<unsigned>(response.status), out);
  MHD_destroy_response(out);
  return queued;
}

void Server::Loop::on_completed(void* self, MHD_Connection* mhd, void**,
                                MHD_RequestTerminationCode) {
  auto& loop = *static_cast<Loop*>(self);
  Connection& connection = loop.connection_of(mhd);
  if (connection.call) {
    connection.call->mhd = nullptr;
    connection.call->set_gone();
    connection.call.reset();
  }
  connection.idle = true;
  connection.deadline = boot_now() + loop.options_.idle_time;
}

void Server::Loop::on_connection(void* self, MHD_Connection* mhd, void**,
                                 MHD_ConnectionNotificationCode code) {
  if (code != MHD_CONNECTION_NOTIFY_CLOSED) return;
  auto& loop = *static_cast<Loop*>(self);
  Connection& connection = loop.connection_of(mhd);
  if (!connection.cut && !loop.shared_->stopping) {
    UniqueFd copy{fcntl(connection.fd, F_DUPFD_CLOEXEC, 0)};
    if (copy && shutdown(copy.get(), SHUT_WR) == 0) {
      loop.lingering_.push_back({std::move(copy), boot_now() + kLinger});
    }
  }
  loop.connections_.erase(connection.fd);
}

Server::Server(std::unique_ptr<Loop> loop) : loop_(std::move(loop)) {}
Server::~Server() = default;

Result<std::unique_ptr<Server>> Server::start(std::vector<Listener> listeners, Options options) {
  auto loop = std::make_unique<Loop>(std::move(listeners), std::move(options));
  if (!loop->start()) {
    return fail(ErrorCode::kFailed, std::string{"cannot start the HTTP server: "} + errno_text() +
                                        "; raise the limit of open files");
  }
  return std::unique_ptr<Server>{new Server{std::move(loop)}};
}

}  // namespace lictor::httpd
