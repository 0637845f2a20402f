#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "harness.h"
#include "skip.h"

using namespace lictor;
using namespace lictor::net;
using namespace lictor::net::test;

extern char** environ;

namespace {

bool run(const std::string& command) {
  return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
}

bool has_openssl() { return run("openssl version"); }

/// A certificate that is its own authority: name.cert and name.key.
void make_certificate(const TemporaryFolder& folder, const std::string& name,
                      const std::string& host) {
  REQUIRE(
      run("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
          " -subj /CN=" +
          host + " -addext subjectAltName=DNS:" + host + " -keyout " + folder / (name + ".key") +
          " -out " + folder / (name + ".cert")));
}

/// "openssl s_server -www": answers every GET with 200 and a page about the connection.
class TlsServer {
 public:
  explicit TlsServer(std::vector<std::string> arguments) {
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    arguments.insert(arguments.begin(), {"openssl", "s_server", "-accept", "127.0.0.1:0", "-www"});
    std::vector<char*> argv;
    argv.reserve(arguments.size() + 1);
    for (std::string& each : arguments) argv.push_back(each.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    const int failed = ::posix_spawnp(&pid_, "openssl", &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    output_ = ends[0];
    REQUIRE(failed == 0);
    read_port();
  }
  ~TlsServer() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    ::close(output_);
  }
  TlsServer(const TlsServer&) = delete;
  TlsServer& operator=(const TlsServer&) = delete;

  [[nodiscard]] std::string address() const { return "https://127.0.0.1:" + port_; }

 private:
  // "ACCEPT 127.0.0.1:12345"
  void read_port() {
    std::string text;
    char c = 0;
    while (::read(output_, &c, 1) == 1) {
      const std::size_t line = text.rfind("ACCEPT ");
      if (c == '\n' && line != std::string::npos) {
        port_ = text.substr(text.rfind(':') + 1);
        return;
      }
      text += c;
    }
    FAIL("openssl s_server did not start: " << text);
  }

  pid_t pid_ = -1;
  int output_ = -1;
  std::string port_;
};

}  // namespace

TEST_SUITE_BEGIN("net");

TEST_CASE("TLS: the server's name and authority are checked") {
  if (!has_openssl()) return tell_skipped("needs openssl");
  const TemporaryFolder folder;
  make_certificate(folder, "server", "server.dc1.consul");
  make_certificate(folder, "other", "server.dc1.consul");
  TlsServer server{{"-cert", folder / "server.cert", "-key", folder / "server.key",
                    // Refuses a client that does not send this name as SNI.
                    "-servername", "server.dc1.consul", "-servername_fatal", "-cert2",
                    folder / "server.cert", "-key2", folder / "server.key"}};
  Options right;
  right.ca_file = folder / "server.cert";
  right.tls_server_name = "server.dc1.consul";

  const auto ask = [&](const Options& options) {
    return open_for({server.address()}, {}, options)->perform(request("GET", "/v1/status/leader"));
  };
  const auto check_refused = [&](const Options& options) {
    const Response response = ask(options);
    CAPTURE(response.error);
    CHECK(response.delivery == Delivery::kNotSent);
    CHECK(contains(response.error, server.address() + ": no TLS connection: "));
    CHECK(contains(response.error, "check ca_file"));
  };

  SUBCASE("the right ones") {
    const Response response = ask(right);
    CAPTURE(response.error);
    CHECK(response.delivery == Delivery::kReplied);
    CHECK(response.status == 200);
    CHECK(response.endpoint == server.address());
  }
  SUBCASE("the authority in a folder, under any file name") {
    Options options = right;
    options.ca_file.clear();
    const std::string authorities = folder / "authorities";
    REQUIRE(run("mkdir " + authorities + " && cp " + folder / "server.cert" + ' ' +
                folder / "other.cert" + ' ' + authorities));
    options.ca_path = authorities;
    CHECK(ask(options).status == 200);
    REQUIRE(run("rm " + authorities + "/server.cert"));
    check_refused(options);
  }
  SUBCASE("another authority") {
    Options options = right;
    options.ca_file = folder / "other.cert";
    check_refused(options);
  }
  SUBCASE("no authority of ours") {
    Options options = right;
    options.ca_file.clear();
    check_refused(options);
  }
  SUBCASE("another name") {
    Options options = right;
    options.tls_server_name = "other.dc1.consul";
    check_refused(options);
  }
  SUBCASE("the address's own name") {
    Options options = right;
    options.tls_server_name.clear();
    check_refused(options);
  }
  SUBCASE("verification off") {
    Options options;
    options.tls_verify = false;
    CHECK(ask(options).status == 200);
  }
  SUBCASE("a failed handshake sends the request on to the next address") {
    TestServer plain{answer};
    Options options = right;
    options.ca_file = folder / "other.cert";
    const auto transport = open_for({server.address(), plain.address()}, {}, options);
    CHECK(transport->perform(request("PUT", "/", "x")).endpoint == plain.address());
  }
}

TEST_CASE("TLS: the client's certificate is sent") {
  if (!has_openssl()) return tell_skipped("needs openssl");
  const TemporaryFolder folder;
  make_certificate(folder, "server", "server.dc1.consul");
  make_certificate(folder, "client", "client.dc1.consul");
  TlsServer server{{"-cert", folder / "server.cert", "-key", folder / "server.key", "-CAfile",
                    folder / "client.cert", "-Verify", "1", "-verify_return_error"}};
  Options options;
  options.ca_file = folder / "server.cert";
  options.tls_server_name = "server.dc1.consul";
  const Request get = request("GET", "/");
  // Under TLS 1.3 the refusal comes only after the request has left, or the connection is gone by
  // then.
  const Response refused = open_for({server.address()}, {}, options)->perform(get);
  CHECK(refused.delivery != Delivery::kReplied);
  CHECK(refused.error.find("the server refuses our certificate") != std::string::npos);
  options.client_cert = folder / "client.cert";
  options.client_key = folder / "client.key";
  CHECK(open_for({server.address()}, {}, options)->perform(get).status == 200);
}

TEST_SUITE_END();
