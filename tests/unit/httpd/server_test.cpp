#include "httpd/server.h"

#include <sys/stat.h>

#include <array>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "sockets.h"
#include "temporary_folder.h"
#include "unit/contains.h"
#include "unit/eventually.h"
#include "unit/refusal.h"

namespace lictor::httpd {
namespace {

using namespace std::chrono_literals;
using unit::eventually;

// A connection to the server, on which everything is given up after a while.
class Client {
 public:
  explicit Client(const std::string& url) {
    if (url.starts_with("unix://")) {
      open(AF_UNIX, unix_name(url.substr(std::strlen("unix://"))));
      return;
    }
    const sockaddr_in name = loopback(std::stoi(url.substr(url.rfind(':') + 1)));
    if (url.find('[') == std::string::npos) {
      open(AF_INET, name);
    } else {
      open(AF_INET6, sockaddr_in6{AF_INET6, name.sin_port, 0, in6addr_loopback, 0});
    }
  }

  void send(const std::string& bytes) const {
    static_cast<void>(::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL));
  }
  // Reads until the server closes.
  [[nodiscard]] std::string receive() const {
    std::string all;
    std::array<char, 4096> buffer{};
    ssize_t n = 0;
    while ((n = recv(fd_.get(), buffer.data(), buffer.size(), 0)) > 0) {
      all.append(buffer.data(), static_cast<std::size_t>(n));
    }
    return all;
  }
  [[nodiscard]] bool shut_down() const { return shutdown(fd_.get(), SHUT_WR) == 0; }
  [[nodiscard]] std::string ask(const std::string& request) const {
    send(request);
    return receive();
  }

 private:
  template <class Name>
  void open(int family, const Name& name) {
    fd_.reset(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const timeval patience{60, 0};
    setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    REQUIRE(connect(fd_.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0);
  }

  UniqueFd fd_;
};

std::string get(const std::string& path, const std::string& extra = {}) {
  return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n" + extra + "\r\n";
}

std::string post(const std::string& path, std::size_t length, const std::string& body) {
  return "POST " + path +
         " HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(length) + "\r\n\r\n" +
         body;
}

int status_of(const std::string& answer) {
  return answer.starts_with("HTTP/1.1 ") ? std::stoi(answer.substr(9)) : 0;
}

// Short enough that a test can wait for a deadline, long enough that only a deadline takes so long.
constexpr auto kShort = 500ms;

Options short_times() {
  Options options;
  options.idle_time = options.read_time = options.answer_time = kShort;
  return options;
}

class Scene {
 public:
  explicit Scene(const std::string& address = "127.0.0.1:0", Options options = {}) {
    options.handle = [this](const ExchangePtr& exchange) { handle(exchange); };
    options.refuse = [](const Request& request) -> std::optional<Response> {
      if (request.url.path != "/nope") return std::nullopt;
      return Response{404, "text/plain", "nope", {}};
    };
    ListenOptions where{.addresses = {address}, .host_name = "some-host"};
    auto listeners = open_listeners(where).value();
    url = listeners.front().url;
    server = Server::start(std::move(listeners), std::move(options)).value();
  }

  ~Scene() { let_go(); }
  void let_go() const {
    go = true;
    go.notify_all();
  }

  // The answer to a request on a connection of its own, with its status.
  [[nodiscard]] std::string ask(const std::string& request) const {
    return Client{url}.ask(request);
  }
  [[nodiscard]] int status(const std::string& request) const { return status_of(ask(request)); }

  std::string url;
  std::atomic<int> waiting = 0;
  std::atomic<int> served = 0;
  std::atomic<int> held = 0;  // workers that wait for `go`
  mutable std::atomic<bool> go = false;

 private:
  void handle(const ExchangePtr& exchange) {
    const Request& request = exchange->request();
    ++served;
    if (request.url.path == "/wait") {
      ++waiting;
      return wait(exchange);
    }
    if (request.url.path == "/hold") {
      ++held;
      go.wait(false);
    }
    if (request.url.path == "/large") {
      return exchange->answer({200, "text/plain", std::string(16U << 20U, 'x'), {}});
    }
    if (request.url.path == "/throw") throw std::bad_alloc{};
    if (request.url.path == "/events") {
      exchange->answer({200, "text/event-stream", "hello ", {}, true});
      const std::lock_guard lock{mutex};
      return streams.push_back(exchange);
    }
    const std::string text =
        request.method == "POST"
            ? request.body
            : request.url.path + (request.trusted_listener ? " trusted " : " ") +
                  request.local_address + " " + request.parameter("q").value_or("-");
    exchange->answer({200, "text/plain", text, {{"Client", request.client}}});
  }
  void wait(const ExchangePtr& exchange) {
    if (exchange->gone()) {
      exchange->answer({200, "text/plain", "over", {}});
      --waiting;
    } else {
      exchange->later(20ms, [this, exchange] { wait(exchange); });
    }
  }

 public:
  std::mutex mutex;
  std::vector<ExchangePtr> streams;
  std::unique_ptr<Server> server;
};

// How long the server takes to close `client`.
std::chrono::nanoseconds time_to_close(const Client& client) {
  const auto begin = std::chrono::steady_clock::now();
  static_cast<void>(client.receive());
  return std::chrono::steady_clock::now() - begin;
}

}  // namespace

TEST_CASE("a request is answered, and the connection closed") {
  const Scene scene;
  const std::string answer = scene.ask(get("/a%2Fb%20c?q=x%26y"));
  CHECK(status_of(answer) == 200);
  CHECK(answer.ends_with("\r\n\r\n/a/b c trusted 127.0.0.1 x&y"));
  CHECK(contains(answer, "\r\nClient: 127.0.0.1:"));
  const std::string head = scene.ask("HEAD /a HTTP/1.1\r\nHost: localhost\r\n\r\n");
  CHECK(status_of(head) == 200);
  CHECK(head.ends_with("\r\n\r\n"));
  CHECK(scene.ask(post("/echo", 5, "hello")).ends_with("\r\n\r\nhello"));
  CHECK(scene
            .ask("POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
                 "3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n")
            .ends_with("\r\n\r\nhello"));
  CHECK(scene.status(get("/throw")) == 500);
  CHECK(scene.status(get("/%2")) == 400);
}

TEST_CASE("a connection is kept for the next request if the server keeps connections") {
  const Scene scene{"127.0.0.1:0", {.keeps_alive = true}};
  const Client client{scene.url};
  const std::string answers =
      client.ask(get("/one") + get("/two") + get("/three", "Connection: close\r\n"));
  CHECK(answers.find("/one trusted") < answers.find("/two trusted"));
  CHECK(answers.find("/two trusted") < answers.find("/three trusted"));
  CHECK(scene.served == 3);
}

TEST_CASE("unix sockets and IPv6 are served too") {
  const unit::TemporaryFolder folder;
  const std::string path = folder / "admin.sock";
  {
    const Scene scene{"unix://" + path};
    CHECK(scene.url == "unix://" + path);
    const std::string answer = scene.ask(get("/echo/x"));
    CHECK(answer.ends_with("x trusted  -"));
    CHECK(contains(answer, "\r\nClient: uid " + std::to_string(getuid()) + ", pid " +
                               std::to_string(getpid()) + "\r\n"));
    struct stat info {};
    REQUIRE(stat(path.c_str(), &info) == 0);
    CHECK((info.st_mode & 0777U) == 0660U);
    ListenOptions taken{.addresses = {"unix://" + path}};
    CHECK(refusal_of(open_listeners(taken)).code == ErrorCode::kConflict);
    CHECK(scene.ask(get("/echo/x")).ends_with("x trusted  -"));
  }
  CHECK(access(path.c_str(), F_OK) != 0);               // taken along
  if (access("/proc/net/if_inet6", F_OK) != 0) return;  // a host without IPv6
  const Scene scene{"[::1]:0"};
  CHECK(scene.url.starts_with("http://[::1]:"));
  CHECK(scene.ask(get("/echo/x")).ends_with("x trusted ::1 -"));
}

TEST_CASE("the file of a killed daemon's socket is taken over") {
  const unit::TemporaryFolder folder;
  const sockaddr_un name = unix_name(folder / "admin.sock");
  {
    const UniqueFd dead{socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    REQUIRE(bind(dead.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0);
  }
  const Scene scene{"unix://" + folder / "admin.sock"};
  CHECK(scene.status(get("/echo/x")) == 200);
}

TEST_CASE("a file that is no socket is not removed") {
  const unit::TemporaryFolder folder;
  const std::string path = folder / "ledger";
  std::ofstream{path} << "kept";
  const Error refused = refusal_of(open_listeners({.addresses = {"unix://" + path}}));
  CHECK(refused.code == ErrorCode::kConflict);
  CHECK(contains(refused.message, path + ": the file there is no socket"));
  CHECK(std::filesystem::file_size(path) == 4);
}

TEST_CASE("a chosen port that is taken is an error, the default one only a warning") {
  const Scene scene;
  ListenOptions options{.addresses = {scene.url.substr(std::strlen("http://"))}};
  const Error refused = refusal_of(open_listeners(options));
  CHECK(refused.code == ErrorCode::kConflict);
  CHECK(contains(refused.message, options.addresses.front()));

  std::string warning;
  options.any_port_will_do = true;
  options.on_warning = [&](const std::string& text) { warning = text; };
  const auto other = open_listeners(options).value();
  CHECK(other.front().url != scene.url);
  CHECK(contains(warning, other.front().url));
}

TEST_CASE("a listener for all addresses has the host's name in its URL, and is not trusted") {
  const Scene scene{"0.0.0.0:0"};
  CHECK(scene.url.starts_with("http://some-host:"));
  CHECK(scene.ask(get("/echo/x")).ends_with("x 127.0.0.1 -"));
}

TEST_CASE("a request that is malformed or too large is refused") {
  const Scene scene;
  CHECK(scene.status("nonsense\r\n\r\n") != 200);
  CHECK(scene.status(get("/" + std::string(20'000, 'x'))) == 414);
  CHECK(scene.status(get("/x", "X: " + std::string(20'000, 'x') + "\r\n")) == 431);
  std::string many;
  for (int i = 0; i < 2000; ++i) many += "X" + std::to_string(i) + ": y\r\n";
  CHECK(scene.status(get("/x", many)) == 431);
  CHECK(scene.status(post("/echo", 70'000, "")) == 413);
  CHECK(scene.status("POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
                     "11170\r\n" +
                     std::string(70'000, 'x') + "\r\n0\r\n\r\n") == 413);
  // Endless: the connection ends instead of the memory.
  CHECK(scene.status("GET /" + std::string(1'000'000, 'x')) != 200);
  // Refused before the body is read: it never comes.
  CHECK(scene.status(post("/nope", 60'000, "")) == 404);
  CHECK(scene.served == 0);
  CHECK(scene.status(get("/still-there")) == 200);
}

TEST_CASE("no part of an answer can be asked for a thousand times") {
  const Scene scene;
  std::string ranges = "Range: bytes=0-0";
  for (int i = 0; i < 1000; ++i) ranges += ",0-0";
  const std::string answer = scene.ask(get("/x", ranges + "\r\n"));
  CHECK(status_of(answer) == 200);
  CHECK(answer.size() < 1000);
}

TEST_CASE("a client that finds all connections busy gets 503, and is served when one is free") {
  const Scene scene;
  const std::size_t most = Options{}.max_connections;
  std::vector<std::unique_ptr<Client>> waiting;
  for (std::size_t i = 0; i < most; ++i) {
    waiting.push_back(std::make_unique<Client>(scene.url));
    waiting.back()->send(get("/wait"));
  }
  REQUIRE(eventually([&] { return scene.waiting == static_cast<int>(most); }));
  CHECK(status_of(Client{scene.url}.receive()) == 503);
  waiting.clear();
  CHECK(eventually([&] { return scene.status(get("/x")) == 200; }));
}

TEST_CASE("clients that connect and say nothing, or half a line, keep nobody out") {
  const Scene scene;
  std::vector<std::unique_ptr<Client>> silent;
  for (std::size_t i = 0; i < 2 * Options{}.max_connections; ++i) {
    silent.push_back(std::make_unique<Client>(scene.url));
    if (i % 2 == 0) silent.back()->send("GET /ec");
  }
  CHECK(scene.status(get("/x")) == 200);
}

TEST_CASE("a silent client is cut off, and so is one that trickles its line, headers or body") {
  const Scene scene{"127.0.0.1:0", short_times()};
  CHECK(time_to_close(Client{scene.url}) < 10 * kShort);
  for (const std::string& begin :
       {std::string{"GET /"}, std::string{"GET / HTTP/1.1\r\nX: "}, post("/echo", 60'000, "")}) {
    CAPTURE(begin);
    const Client slow{scene.url};
    slow.send(begin);
    std::atomic<bool> over = false;
    std::thread trickle{[&] {
      while (!over) {
        slow.send("x");
        std::this_thread::sleep_for(kShort / 10);
      }
    }};
    CHECK(time_to_close(slow) < 10 * kShort);
    over = true;
    trickle.join();
  }
  CHECK(scene.served == 0);
}

TEST_CASE("a kept connection that sends no further request is closed") {
  Options options = short_times();
  options.keeps_alive = true;
  const Scene scene{"127.0.0.1:0", std::move(options)};
  const Client client{scene.url};
  client.send(get("/x"));
  CHECK(time_to_close(client) < 10 * kShort);
  CHECK(scene.served == 1);
}

TEST_CASE("a client that does not read its answer is cut off") {
  Options options = short_times();
  options.max_connections = 1;
  const Scene scene{"127.0.0.1:0", std::move(options)};
  const Client deaf{scene.url};
  deaf.send(get("/large"));
  REQUIRE(eventually([&] { return scene.served == 1; }));
  CHECK(eventually([&] { return scene.status(get("/x")) == 200; }));
  CHECK(deaf.receive().size() < (16U << 20U));
}

TEST_CASE("a handler may take longer than any time that a client has") {
  const Scene scene{"127.0.0.1:0", short_times()};
  const Client waits{scene.url};
  waits.send(get("/wait"));
  REQUIRE(eventually([&] { return scene.waiting == 1; }));
  std::this_thread::sleep_for(2 * kShort);
  CHECK(scene.waiting == 1);
  REQUIRE(waits.shut_down());
  CHECK(waits.receive().ends_with("over"));
}

TEST_CASE("a quick request is answered while all workers wait") {
  Options options{.max_workers = 2};
  options.is_quick = [](const Request& request) { return request.url.path == "/healthz"; };
  const Scene scene{"127.0.0.1:0", std::move(options)};
  const Client first{scene.url}, second{scene.url}, third{scene.url};
  for (const Client* client : {&first, &second, &third}) client->send(get("/hold"));
  REQUIRE(eventually([&] { return scene.held == 2; }));
  CHECK(scene.status(get("/healthz")) == 200);
  CHECK(scene.held == 2);
  scene.let_go();
  for (const Client* client : {&first, &second, &third}) {
    CHECK(status_of(client->receive()) == 200);
  }
}

TEST_CASE("an exchange learns that its client has gone") {
  const Scene scene;
  auto client = std::make_unique<Client>(scene.url);
  client->send(get("/wait"));
  REQUIRE(eventually([&] { return scene.waiting == 1; }));
  client.reset();
  CHECK(eventually([&] { return scene.waiting == 0; }));
}

TEST_CASE("a stream sends to hundreds of clients, and is closed to the one that does not read") {
  constexpr std::size_t kClients = 200;
  Options options = short_times();
  options.max_connections = kClients;
  Scene scene{"127.0.0.1:0", std::move(options)};
  std::vector<std::unique_ptr<Client>> clients;
  for (std::size_t i = 0; i < kClients; ++i) {
    clients.push_back(std::make_unique<Client>(scene.url));
    clients.back()->send(get("/events"));
  }
  const auto streams = [&] {
    const std::lock_guard lock{scene.mutex};
    return scene.streams;
  };
  REQUIRE(eventually([&] { return streams().size() == kClients; }));
  std::this_thread::sleep_for(2 * kShort);  // an idle stream has no deadline
  for (const ExchangePtr& stream : streams()) REQUIRE(stream->send("event "));
  const ExchangePtr deaf = streams().front();
  const std::string much(Exchange::kMaxUnsentBytes / 2, 'x');
  CHECK(eventually([&] { return !deaf->send(much); }));
  CHECK_FALSE(deaf->send("x"));
  for (const ExchangePtr& stream : streams()) {
    if (stream != deaf) stream->end();
  }
  std::size_t whole = 0;
  for (const auto& client : clients) {
    const std::string all = client->receive();
    whole += all.find("hello ") != std::string::npos && all.find("event ") != std::string::npos &&
             all.ends_with("0\r\n\r\n");
  }
  CHECK(whole == kClients - 1);
}

TEST_CASE("the end waits for no client, and answers those that wait") {
  Scene scene;
  const Client silent{scene.url};
  const Client half{scene.url};
  half.send("GET /echo");
  const Client deaf{scene.url};
  deaf.send(get("/large"));
  const Client listens{scene.url};
  listens.send(get("/events"));
  const Client waits{scene.url};
  waits.send(get("/wait"));
  REQUIRE(eventually([&] { return scene.served == 3; }));
  auto ended = std::async(std::launch::async, [&] { scene.server.reset(); });
  CHECK(ended.wait_for(9s) == std::future_status::ready);  // less than any time-out of a client
  CHECK(waits.receive().ends_with("over"));
  CHECK(listens.receive().ends_with("0\r\n\r\n"));
  CHECK(silent.receive().empty());
  CHECK_FALSE(scene.streams.front()->send("x"));  // an exchange may outlive its server
}

}  // namespace lictor::httpd
