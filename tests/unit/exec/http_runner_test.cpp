#include "exec/http_runner.h"

#include <poll.h>
#include <sys/resource.h>

#include <array>
#include <atomic>
#include <ctime>
#include <thread>

#include <nlohmann/json.hpp>

#include "../net/test_server.h"
#include "../net/tls_server.h"
#include "base/clock.h"
#include "base/text.h"
#include "base/time_text.h"
#include "base/unique_fd.h"
#include "skip.h"
#include "sockets.h"
#include "support.h"
#include "unit/refusal.h"

namespace lictor::exec::test {
namespace {

using net::test::Connection;
using net::test::Received;
using net::test::TestServer;

HttpCall call_to(const std::string& url) { return {parse_http_target(url).value(), {}, {}, {}}; }

// One http executor that asks `server`.
class Client {
 public:
  explicit Client(const std::string& url) : Client(call_to(url)) {}
  explicit Client(HttpCall call, LeaseSlot slot = kNoLease)
      : board(std::move(LeaseBoard::create(8).value())) {
    if (slot != kNoLease) (void)board.extend(slot, boot_now() + 1h, 5s);
    runner = std::move(HttpRunner::create(board, std::move(call), slot).value());
  }

  void start(std::uint64_t id) {
    REQUIRE(runner->start(attempt(id), Instant::max(), exits.callback()));
  }
  [[nodiscard]] Exit of(std::uint64_t id) { return exits.of(AttemptId{id}); }
  [[nodiscard]] Exit run(const Attempt& attempt = test::attempt(1),
                         Instant deadline = Instant::max()) {
    REQUIRE(runner->start(attempt, deadline, exits.callback()));
    return exits.of(attempt.id);
  }

  LeaseBoard board;
  Exits exits;
  std::unique_ptr<HttpRunner> runner;
};

TestServer::Script answering(int status, std::string body = "", std::string headers = "") {
  return [=](const Received&, Connection& connection) { connection.reply(status, body, headers); };
}

// The end of an attempt whose server runs `script`.
Exit end_against(const TestServer::Script& script) {
  TestServer server{script};
  return Client{server.address() + "/notify"}.run();
}

// The end of an attempt whose server replies with `status`.
Exit end_after_reply(int status, const std::string& body = "", const std::string& headers = "") {
  return end_against(answering(status, body, headers));
}

// The end of an attempt whose server closes after these bytes.
Exit closed_after(const std::string& reply) {
  return end_against([&](const Received&, Connection& c) {
    c.write(reply);
    c.close_when_done();
  });
}

HttpCall kept_call_to(const TestServer& server, std::chrono::milliseconds keep_alive) {
  HttpCall call = call_to(server.address() + "/notify");
  call.keep_alive = keep_alive;
  return call;
}

std::string http_date(std::time_t when) {
  std::array<char, 64> text{};
  std::tm parts{};
  std::strftime(text.data(), text.size(), "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&when, &parts));
  return text.data();
}

}  // namespace

TEST_CASE("http: the record is posted, with the attempt in the headers") {
  TestServer server{answering(204)};
  HttpCall call = call_to(server.address() + "/a/b?c=d");
  call.headers = {{"X-A", "b"}, {"X-Empty", ""}, {"user-agent", "mine"}};
  Client client{std::move(call)};
  Attempt attempt = test::attempt(1, R"({"taskId": "7", "n": 1.50})");
  attempt.task_id = "7 \xff%\r\nX: y";
  attempt.task_key = std::string(5000, 'k');
  attempt.number = 3;
  attempt.fencing_token = 12345;
  const Exit exit = client.run(attempt, boot_now() + 1h);
  CHECK(exit.ending == Ending::kDone);
  CHECK(exit.error == "");
  CHECK_FALSE(exit.result);
  REQUIRE(server.requests().size() == 1);
  const Received request = server.requests().front();
  CHECK(request.method == "POST");
  CHECK(request.target == "/a/b?c=d");
  CHECK(request.body == R"({"taskId": "7", "n": 1.50})");
  CHECK(request.header("Content-Type") == "application/json");
  CHECK(request.header("User-Agent") == "mine");
  CHECK(request.header("X-A") == "b");
  CHECK(contains(request.head, "X-Empty:\r\n"));
  CHECK(request.header("Lictor-Task-Id") == "7%20%FF%25%0D%0AX:%20y");
  CHECK_FALSE(contains(request.head, "Lictor-Task-Key"));  // too long for a header
  CHECK(request.header("Lictor-Task-Type") == attempt.task_type);
  CHECK(request.header("Lictor-Queue") == attempt.queue);
  CHECK(request.header("Lictor-Attempt") == "3");
  CHECK(request.header("Lictor-Fencing-Token") == "12345");
  const auto deadline = parse_rfc3339(request.header("Lictor-Deadline")).value();
  CHECK(deadline > wall_now() + 50min);
  CHECK(deadline < wall_now() + 70min);
}

TEST_CASE("http: 2xx is done, and a JSON body is the result") {
  const std::string json = "Content-Type: application/JSON ; charset=utf-8\r\n";
  CHECK(end_after_reply(200).ending == Ending::kDone);
  CHECK_FALSE(end_after_reply(200, "").result);
  CHECK(end_after_reply(201, R"({"size": 5})", json).result == R"({"size": 5})");
  const Exit text = end_after_reply(200, "fine \xff", "Content-Type: text/plain\r\n");
  CHECK(text.ending == Ending::kDone);
  CHECK_FALSE(text.result);
  CHECK(text.output_tail == "fine \xef\xbf\xbd");
  const Exit careless = end_after_reply(200, "OK", json);
  CHECK(careless.ending == Ending::kDone);
  CHECK_FALSE(careless.result);
  CHECK(careless.result_fault.ends_with(
      "/notify: expected JSON, as the reply's Content-Type says, got something else"));
}

TEST_CASE("http: some statuses are tried again and some are not, also if the body breaks off") {
  for (const int status : {408, 425, 429, 500, 502, 503, 504, 599}) {
    CAPTURE(status);
    CHECK(end_after_reply(status).ending == Ending::kRetry);
  }
  for (const int status : {300, 301, 302, 304, 307, 400, 401, 403, 404, 409, 410, 422, 431}) {
    CAPTURE(status);
    CHECK(end_after_reply(status).ending == Ending::kPermanent);
    CHECK(end_after_reply(status).taken == JobTaken::kYes);
  }
  const Exit exit = end_after_reply(404, "no such thing");
  CHECK(exit.error.starts_with("POST http://127.0.0.1:"));
  CHECK(exit.error.ends_with("/notify: status 404: no such thing"));
  CHECK(exit.output_tail == "no such thing");
  CHECK(end_after_reply(422, "Traceback\r\n  no such queue: q7\n\n")
            .error.ends_with("/notify: status 422:   no such queue: q7"));
  CHECK(end_after_reply(500, "").error.ends_with("/notify: status 500"));
  const Exit page = closed_after(
      "HTTP/1.1 502 Bad\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<p>Oh</p>\n</html>");
  CHECK(page.error.ends_with("/notify: status 502"));
  const Exit broken = closed_after("HTTP/1.1 400 Bad\r\nContent-Length: 10\r\n\r\nhalf");
  CHECK(broken.ending == Ending::kPermanent);
  CHECK(broken.output_tail == "half");
}

TEST_CASE("http: a redirect is not followed") {
  TestServer server{[](const Received&, Connection& connection) {
    connection.reply(307, "", "Location: /elsewhere\r\n");
  }};
  const Exit exit = Client{server.address() + "/here"}.run();
  CHECK(exit.ending == Ending::kPermanent);
  CHECK(exit.error.ends_with("/here: status 307, and redirects are not followed; correct the URL"));
  CHECK(server.requests().size() == 1);
}

TEST_CASE("http: Retry-After is taken in both its forms") {
  CHECK(end_after_reply(429, "", "Retry-After: 7\r\n").retry_after == 7s);
  // The bound is ours, or a lower one of a newer libcurl.
  const auto longest = end_after_reply(503, "", "Retry-After: 99999999999\r\n").retry_after.value();
  CHECK(longest >= std::chrono::hours{6});
  CHECK(longest <= std::chrono::seconds{1LL << 32U});
  const auto until =
      end_after_reply(503, "", "Retry-After: " + http_date(std::time(nullptr) + 3600) + "\r\n")
          .retry_after.value();
  CHECK(until > 50min);
  CHECK(until <= 60min);
  CHECK_FALSE(
      end_after_reply(503, "", "Retry-After: " + http_date(1'000'000'000) + "\r\n").retry_after);
  CHECK_FALSE(end_after_reply(503, "", "Retry-After: soon\r\n").retry_after);
  CHECK_FALSE(end_after_reply(500).retry_after);
  CHECK_FALSE(end_after_reply(404, "", "Retry-After: 7\r\n").retry_after);
}

TEST_CASE("http: an incomplete reply is tried again, and the error says so") {
  const auto check = [](const Exit& exit, const std::string& part) {
    CHECK(exit.ending == (part == "no connection: " ? Ending::kNotStarted : Ending::kRetry));
    CAPTURE(exit.error);
    CHECK(contains(exit.error, "/notify: " + part));
  };
  const std::string sent = "no whole reply: ";
  check(end_against([](const Received&, Connection& c) { c.close_when_done(); }), sent);
  check(end_against([](const Received&, Connection& c) { c.reset(); }), sent);
  check(closed_after("HTTP/1.1 200 OK\r\nContent-Len"),
        sent + "connection closed within the reply's head");
  for (const char* reply : {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
                            "HTTP/1.1 100 Continue\r\n\r\n", "220 mail.example.org ESMTP\r\n"}) {
    check(closed_after(reply), sent);
  }
  check(Client{"http://127.0.0.1:" + std::to_string(net::test::closed_port()) + "/notify"}.run(),
        "no connection: ");
  check(Client{"http://no-such-host.invalid/notify"}.run(), "no connection: ");
}

TEST_CASE("http: a request that the receiver closes unread was hardly taken") {
  // A listener that closes each connection without reading from it, with a reset or in order.
  const auto end_against_unread = [](bool reset) {
    int port = 0;
    const UniqueFd listener{listen_on_loopback(port)};
    std::thread receiver{[&] {
      const UniqueFd connection{accept(listener.get(), nullptr, nullptr)};
      // If it closed before the request comes, it would end in order, and a client could not tell.
      pollfd request{connection.get(), POLLIN, 0};
      poll(&request, 1, 10'000);
      const linger at_once{reset ? 1 : 0, 0};
      setsockopt(connection.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    }};
    Exit exit = Client{"http://127.0.0.1:" + std::to_string(port) + "/notify"}.run();
    receiver.join();
    return exit;
  };
  for (int i = 0; i < 20; ++i) {
    for (const bool reset : {false, true}) {
      CAPTURE(reset);
      const Exit exit = end_against_unread(reset);
      CAPTURE(exit.error);
      const bool unsent = exit.ending == Ending::kNotStarted;
      CHECK((unsent || (exit.ending == Ending::kRetry && exit.taken == JobTaken::kHardly)));
    }
  }
  // The server read everything, so the request may have been carried out.
  const Exit read = end_against([](const Received&, Connection& c) { c.close_when_done(); });
  CHECK(read.ending == Ending::kRetry);
  CHECK(read.taken == JobTaken::kYes);
  const Exit begun = end_against([](const Received&, Connection& c) {
    c.write("HTTP/1.1 200 OK\r\nContent-Len");
    c.reset();
  });
  CHECK(begun.taken == JobTaken::kYes);
}

TEST_CASE("http: with keep_alive one connection serves one request after the other") {
  for (const bool kept : {true, false}) {
    CAPTURE(kept);
    TestServer server{answering(200)};
    Client client{kept ? kept_call_to(server, 1h) : call_to(server.address() + "/notify")};
    for (std::uint64_t id = 1; id <= 5; ++id) {
      CHECK(client.run(test::attempt(id)).ending == Ending::kDone);
    }
    CHECK(server.connections() == (kept ? 1 : 5));
    CHECK(server.requests().back().header("Connection") == (kept ? "" : "close"));
  }
}

TEST_CASE("http: a connection that has been idle for longer than keep_alive is not used again") {
  TestServer server{answering(200)};
  Client client{kept_call_to(server, 1s)};
  CHECK(client.run(test::attempt(1)).ending == Ending::kDone);
  std::this_thread::sleep_for(3s);  // libcurl counts whole seconds
  CHECK(client.run(test::attempt(2)).ending == Ending::kDone);
  CHECK(server.connections() == 2);
}

TEST_CASE("http: a kept connection that closes before the reply gets the request once") {
  enum class Way { kEnds, kResets };
  for (const Way way : {Way::kEnds, Way::kResets}) {
    CAPTURE(static_cast<int>(way));
    std::atomic<int> served = 0;
    TestServer server{[&](const Received&, Connection& c) {
      if (++served == 1) return c.reply(200, "");
      if (way == Way::kEnds) return c.close_when_done();
      c.reset();
    }};
    Client client{kept_call_to(server, 1h)};
    CHECK(client.run(test::attempt(1)).ending == Ending::kDone);
    const Exit exit = client.run(test::attempt(2));
    CHECK(exit.ending == Ending::kRetry);
    CHECK(contains(exit.error, "closed the kept connection before it replied"));
    CHECK(server.requests().size() == 2);
    // The server read everything, so the request may have been carried out.
    CHECK(exit.taken == (way == Way::kEnds ? JobTaken::kYes : JobTaken::kHardly));
  }
}

TEST_CASE("http: without a descriptor there is no attempt") {
  TestServer server{answering(200)};
  Client client{server.address() + "/notify"};
  REQUIRE(client.run(attempt(1)).ending == Ending::kDone);
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const rlimit none{3, before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &none);
  const Exit exit = client.run(attempt(2));
  setrlimit(RLIMIT_NOFILE, &before);
  CHECK(exit.ending == Ending::kNotStarted);
  CHECK(exit.error.ends_with("/notify: no socket: Too many open files"));
  CHECK(client.run(attempt(3)).ending == Ending::kDone);
}

TEST_CASE("http: a receiver that refuses a token from a file may accept the next one") {
  const TemporaryFolder dir;
  write_file(dir / "token", "old");
  TestServer server{[](const Received& request, Connection& connection) {
    connection.reply(request.header("Authorization") == "Bearer new" ? 200 : 401, "");
  }};
  Client client{HttpCall{parse_http_target(server.address()).value(), {}, dir / "token", {}}};
  const Exit refused = client.run(attempt(1));
  CHECK(refused.ending == Ending::kPermanent);
  CHECK(refused.taken == JobTaken::kNo);
  write_file(dir / "token", "new");
  CHECK(client.run(attempt(2)).ending == Ending::kDone);
}

TEST_CASE("http: an endless reply is read in part, and no further") {
  // Each server writes until the client has closed the connection.
  const Exit body = end_against([](const Received&, Connection& c) {
    c.write("HTTP/1.1 200 OK\r\n\r\n");
    for (int i = 0; i < 4096; ++i) c.write(std::string(4096, 'x'));
    c.close_when_done();
  });
  CHECK(body.ending == Ending::kDone);
  CHECK(body.result_fault.ends_with("expected a reply of at most 1048576 bytes, got more"));
  CHECK(body.output_tail.size() <= 4096);

  const Exit page = end_against([](const Received&, Connection& c) {
    c.write("HTTP/1.1 500 Oh\r\n\r\n");
    // Three bytes a character, so that a cut between them would show.
    for (int i = 0; i < 4096; ++i) c.write("\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac");
    c.write(" last");
    c.close_when_done();
  });
  CHECK(contains(page.error, "status 500: "));
  CHECK(page.output_tail.ends_with("\xe2\x82\xac last"));
  CHECK(page.output_tail.size() <= 4096);
  CHECK(page.output_tail.starts_with("\xe2\x82\xac"));
  CHECK(is_utf8(page.output_tail));

  const Exit head = end_against([](const Received&, Connection& c) {
    c.write("HTTP/1.1 200 OK\r\n");
    for (int i = 0; i < 4096; ++i) c.write("X-Flood: " + std::string(1000, 'x') + "\r\n");
    c.close_when_done();
  });
  CHECK(head.ending == Ending::kRetry);
  CHECK(contains(head.error, "expected headers of at most 65536 bytes, got more"));
}

TEST_CASE("http: stop and the deadline end a request that nobody answers, and its connection") {
  std::atomic<int> closed = 0;
  TestServer server{[&](const Received&, Connection& c) {
    if (c.wait_until_closed()) ++closed;
  }};
  Client client{server.address()};
  client.start(1);
  client.start(2);
  REQUIRE(server.wait_for_requests(2));
  client.runner->stop(AttemptId{1}, 1h);
  client.runner->stop(AttemptId{1}, 1h);
  client.runner->stop(AttemptId{77}, 1h);
  const Exit stopped = client.of(1);
  CHECK(stopped.ending == Ending::kStopped);
  CHECK(stopped.error == "stopped; the request may have been carried out");
  CHECK(eventually([&] { return closed == 1; }));
  CHECK_FALSE(client.exits.has(AttemptId{2}));

  const Exit late = client.run(attempt(3), boot_now() + 20ms);
  CHECK(late.ending == Ending::kRetry);
  CHECK(contains(late.error, "the attempt timed out"));
  client.runner.reset();
  CHECK(client.of(2).ending == Ending::kStopped);
}

TEST_CASE("http: requests are counted on the lease's board until before their end is reported") {
  TestServer server{[](const Received&, Connection& c) { (void)c.wait_until_closed(); }};
  const HttpCall call = call_to(server.address());
  Client client{call, 4};
  std::atomic<std::uint32_t> at_exit = 99;
  REQUIRE(client.runner->start(attempt(1), Instant::max(),
                               [&, told = client.exits.callback()](Exit exit) {
                                 at_exit = client.board.in_process_jobs(4);
                                 told(std::move(exit));
                               }));
  CHECK(client.board.in_process_jobs(4) == 1);
  client.runner->stop(AttemptId{1}, 0ms);
  (void)client.of(1);
  CHECK(at_exit == 0);
  client.board.clear(4);
  CHECK(client.runner->start(attempt(2), Instant::max(), client.exits.callback()).error().code ==
        ErrorCode::kUnavailable);
  CHECK(client.board.in_process_jobs(4) == 0);
  Client outlives{call};
  outlives.start(1);
  CHECK(outlives.board.in_process_jobs(4) == 0);
}

TEST_CASE("http: credentials go to the receiver, and into no error") {
  TestServer server{answering(500)};
  const std::string host = server.address().substr(7);
  const Exit basic = Client{"http://me:s3cret@" + host + "/x?key=s3cret#s3cret"}.run();
  CHECK(basic.error == "POST http://" + host + "/x: status 500");
  CHECK(server.requests().back().header("Authorization") == "Basic bWU6czNjcmV0");

  const TemporaryFolder dir;
  HttpCall call{parse_http_target(server.address()).value(), {}, dir / "token", {}};
  Client client{std::move(call)};
  const Exit missing = client.run(attempt(1));
  CHECK(missing.ending == Ending::kNotStarted);
  CHECK(missing.error ==
        "token_file \"" + dir / "token" +
            "\": expected a readable file, got: No such file or directory; correct the path or its "
            "rights");
  write_file(dir / "token", "a\nb");
  CHECK(client.run(attempt(2))
            .error.ends_with(
                "got something else (not shown); write the token to it, and nothing else"));
  CHECK(server.requests().size() == 1);
  write_file(dir / "token", " t0ken\n");
  CHECK(client.run(attempt(3)).ending == Ending::kRetry);
  CHECK(server.requests().back().header("Authorization") == "Bearer t0ken");
}

TEST_CASE("http: TLS that cannot be had is a clear error, to be tried again") {
  // A server that does not speak TLS.
  TestServer server{answering(200)};
  const std::string url = "https" + server.address().substr(4) + "/notify";
  HttpCall call{parse_http_target(url).value(), {}, {}, "/no/such/ca.pem"};
  const Exit exit = Client{std::move(call)}.run();
  CHECK(exit.ending == Ending::kNotStarted);
  CHECK(contains(exit.error, "/notify: no connection: "));
  CHECK(contains(exit.error, "/no/such/ca.pem"));
}

TEST_CASE("http: a CA file that is replaced soon counts, and the old one no more") {
  if (!net::test::has_openssl()) return tell_skipped("needs openssl");
  const TemporaryFolder folder;
  net::test::make_certificate(folder, "server", "localhost");
  net::test::make_certificate(folder, "other", "localhost");
  net::test::TlsServer server{{"-cert", folder / "server.cert", "-key", folder / "server.key"}};
  const std::string port = server.address().substr(server.address().rfind(':'));
  HttpCall call{parse_http_target("https://localhost" + port).value(), {}, {}, folder / "ca.pem"};
  call.trusted_for = 1s;
  Client client{std::move(call)};
  std::uint64_t attempts = 0;
  // The receiver is connected to, and does not answer a POST.
  const auto trusted = [&] {
    const Exit exit = client.run(attempt(++attempts), boot_now() + 300ms);
    return exit.error.find("certificate") == std::string::npos;
  };
  REQUIRE(net::test::run("cp " + folder / "server.cert" + ' ' + folder / "ca.pem"));
  CHECK(trusted());
  REQUIRE(net::test::run("cp " + folder / "other.cert" + ' ' + folder / "ca.pem"));
  CHECK(eventually([&] { return !trusted(); }));
  REQUIRE(net::test::run("cp " + folder / "server.cert" + ' ' + folder / "ca.pem"));
  CHECK(eventually(trusted));
}

TEST_CASE("http: text that is no URL of http is refused, and not quoted") {
  for (const char* url : {"", "notify", "127.0.0.1:9000/notify", "ftp://me:s3cret@host/", "http://",
                          "http://me:s3cret@host:port/", "http://a b/", "http://h/\n"}) {
    CAPTURE(url);
    const Error error = refusal_of(parse_http_target(url));
    CHECK(
        error.message.starts_with("expected a URL such as \"http://127.0.0.1:9000/notify\", got "));
    CHECK_FALSE(contains(error.message, "s3cret"));
  }
  CHECK(parse_http_target("HTTPS://[::1]:8443/x")->shown == "https://[::1]:8443/x");
}

}  // namespace lictor::exec::test
