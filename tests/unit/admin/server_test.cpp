#include "admin/server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <future>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "../exec/support.h"

namespace lictor::admin {
namespace {

using namespace std::chrono_literals;

// A connection to the server, on which everything is given up after a while.
class Client {
 public:
  explicit Client(const std::string& url) {
    if (url.starts_with("unix://")) {
      sockaddr_un name{};
      name.sun_family = AF_UNIX;
      url.copy(name.sun_path, sizeof name.sun_path - 1, std::strlen("unix://"));
      open(AF_UNIX, name);
      return;
    }
    const auto port = htons(static_cast<std::uint16_t>(std::stoi(url.substr(url.rfind(':') + 1))));
    if (url.find('[') != std::string::npos) {
      sockaddr_in6 name{};
      name.sin6_family = AF_INET6;
      name.sin6_addr = in6addr_loopback;
      name.sin6_port = port;
      open(AF_INET6, name);
    } else {
      sockaddr_in name{};
      name.sin_family = AF_INET;
      name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      name.sin_port = port;
      open(AF_INET, name);
    }
  }

  void send(const std::string& bytes) const {
    static_cast<void>(::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL));
  }
  // Until the server closes.
  [[nodiscard]] std::string receive() const {
    std::string all;
    std::array<char, 4096> buffer{};
    ssize_t n = 0;
    while ((n = recv(fd_.get(), buffer.data(), buffer.size(), 0)) > 0) {
      all.append(buffer.data(), static_cast<std::size_t>(n));
    }
    return all;
  }
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

bool has_status(const std::string& answer, const std::string& status) {
  return answer.starts_with("HTTP/1.1 " + status + " ");
}

class Scene {
 public:
  explicit Scene(const std::string& address = "127.0.0.1:0") {
    router_.add("GET", "/echo/*", [](const Request& request) {
      return Response{200,
                      "text/plain",
                      request.wildcard + (request.trusted_listener ? " trusted " : " ") +
                          request.local_address + " " + request.parameter("q").value_or("-"),
                      {}};
    });
    router_.add("POST", "/echo", [](const Request& request) {
      return Response{200, "text/plain", request.body, {}};
    });
    router_.add("GET", "/wait", [this](const Request& request) {
      ++waiting;
      while (request.pause(10s)) {
      }
      return Response{200, "text/plain", "over", {}};
    });
    ListenOptions options;
    options.addresses = {address};
    options.host_name = "some-host";
    auto listeners = open_listeners(options);
    REQUIRE(listeners);
    url = listeners->front().url;
    auto started = Server::start(std::move(*listeners), router_);
    REQUIRE(started);
    server = std::move(*started);
  }

  std::string url;
  std::atomic<int> waiting = 0;

 private:
  Router router_{Guard{{}}};

 public:
  std::unique_ptr<Server> server;
};

}  // namespace

TEST_SUITE_BEGIN("admin");

TEST_CASE("a request is answered, and the connection closed") {
  const Scene scene;
  const std::string answer = Client{scene.url}.ask(get("/echo/a%2Fb%20c?q=x%26y"));
  CHECK(has_status(answer, "200"));
  CHECK(answer.ends_with("\r\n\r\na/b c trusted 127.0.0.1 x&y"));
  const std::string head =
      Client{scene.url}.ask("HEAD /echo/a HTTP/1.1\r\nHost: localhost\r\n\r\n");
  CHECK(has_status(head, "200"));
  CHECK(head.ends_with("\r\n\r\n"));
  CHECK(Client{scene.url}.ask(post("/echo", 5, "hello")).ends_with("\r\n\r\nhello"));
}

TEST_CASE("unix sockets and IPv6 are served too") {
  const exec::test::TemporaryFolder folder;
  const std::string path = folder / "admin.sock";
  {
    const Scene scene{"unix://" + path};
    CHECK(scene.url == "unix://" + path);
    CHECK(Client{scene.url}.ask(get("/echo/x")).ends_with("x trusted  -"));
    struct stat info {};
    REQUIRE(stat(path.c_str(), &info) == 0);
    CHECK((info.st_mode & 0777U) == 0660U);
    ListenOptions taken;
    taken.addresses = {"unix://" + path};
    const auto second = open_listeners(taken);
    REQUIRE_FALSE(second);
    CHECK(second.error().code == ErrorCode::kConflict);
    CHECK(Client{scene.url}.ask(get("/echo/x")).ends_with("x trusted  -"));
  }
  CHECK(access(path.c_str(), F_OK) != 0);  // taken along

  if (access("/proc/net/if_inet6", F_OK) != 0) return;  // a host without IPv6
  const Scene scene{"[::1]:0"};
  CHECK(scene.url.starts_with("http://[::1]:"));
  CHECK(Client{scene.url}.ask(get("/echo/x")).ends_with("x trusted ::1 -"));
}

TEST_CASE("the file of a killed daemon's socket is taken over") {
  const exec::test::TemporaryFolder folder;
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  (folder / "admin.sock").copy(name.sun_path, sizeof name.sun_path - 1);
  {
    const UniqueFd dead{socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    REQUIRE(bind(dead.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0);
  }
  const Scene scene{"unix://" + folder / "admin.sock"};
  CHECK(has_status(Client{scene.url}.ask(get("/echo/x")), "200"));
}

TEST_CASE("a chosen port that is taken is an error, the default one only a warning") {
  const Scene scene;
  ListenOptions options;
  options.addresses = {scene.url.substr(std::strlen("http://"))};
  const auto refused = open_listeners(options);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kConflict);
  CHECK(refused.error().message.find(options.addresses.front()) != std::string::npos);

  std::string warning;
  options.any_port_will_do = true;
  options.on_warning = [&](const std::string& text) { warning = text; };
  const auto other = open_listeners(options);
  REQUIRE(other);
  CHECK(other->front().url != scene.url);
  CHECK(warning.find(other->front().url) != std::string::npos);
}

TEST_CASE("a listener for all addresses tells the host's name, and is not trusted") {
  const Scene scene{"0.0.0.0:0"};
  CHECK(scene.url.starts_with("http://some-host:"));
  CHECK(Client{scene.url}.ask(get("/echo/x")).ends_with("x 127.0.0.1 -"));
  CHECK(has_status(Client{scene.url}.ask(post("/echo", 1, "x")), "403"));
}

TEST_CASE("what is no request, or too large a one, is refused") {
  const Scene scene;
  CHECK(has_status(Client{scene.url}.ask("nonsense\r\n\r\n"), "400"));
  CHECK(has_status(Client{scene.url}.ask(get("/echo/" + std::string(9'000, 'x'))), "414"));
  CHECK(has_status(Client{scene.url}.ask(get("/echo/x", "X: " + std::string(9'000, 'x') + "\r\n")),
                   "400"));
  CHECK(has_status(Client{scene.url}.ask(post("/echo", 70'000, "")), "413"));
  // Endless: the connection ends instead of the memory.
  const std::string endless = Client{scene.url}.ask("GET /" + std::string(1'000'000, 'x'));
  CHECK_FALSE(has_status(endless, "200"));
  // Refused before the body is read: it never comes.
  CHECK(has_status(Client{scene.url}.ask(post("/nope", 60'000, "")), "404"));
  CHECK(has_status(Client{scene.url}.ask(get("/echo/still-there")), "200"));
}

TEST_CASE("no part of an answer can be asked for a thousand times") {
  const Scene scene;
  std::string ranges = "Range: bytes=0-0";
  for (int i = 0; i < 1000; ++i) ranges += ",0-0";
  const std::string answer = Client{scene.url}.ask(get("/echo/x", ranges + "\r\n"));
  CHECK(has_status(answer, "200"));
  CHECK(answer.size() < 1000);
}

TEST_CASE("who comes when all connections are taken is told so, and served when one is free") {
  const Scene scene;
  std::vector<std::unique_ptr<Client>> waiting;
  for (std::size_t i = 0; i < Server::kMaxConnections; ++i) {
    waiting.push_back(std::make_unique<Client>(scene.url));
    waiting.back()->send(get("/wait"));
  }
  REQUIRE(exec::test::eventually(
      [&] { return scene.waiting == static_cast<int>(Server::kMaxConnections); }));
  CHECK(has_status(Client{scene.url}.receive(), "503"));
  waiting.clear();
  CHECK(exec::test::eventually(
      [&] { return has_status(Client{scene.url}.ask(get("/echo/x")), "200"); }));
}

TEST_CASE(
    "neither a silent client nor one that waits holds up the end, and the latter is answered") {
  Scene scene;
  const Client silent{scene.url};
  const Client half{scene.url};
  half.send("GET /echo");
  const Client waits{scene.url};
  waits.send(get("/wait"));
  REQUIRE(exec::test::eventually([&] { return scene.waiting == 1; }));
  auto ended = std::async(std::launch::async, [&] { scene.server.reset(); });
  CHECK(ended.wait_for(9s) == std::future_status::ready);  // less than any time-out of a client
  CHECK(waits.receive().ends_with("over"));
  CHECK(silent.receive().empty());
}

TEST_SUITE_END();

}  // namespace lictor::admin
