#include <atomic>
#include <cstdio>

#include "base/read_file.h"
#include "harness.h"
#include "net/token_source.h"
#include "skip.h"
#include "test_server.h"
#include "tls_server.h"
#include "unit/contains.h"
#include "unit/refusal.h"

namespace lictor::net::test {
namespace {

using namespace std::chrono_literals;

// The first token that is not `last`.
std::string next_token(TokenSource& source, const std::string& last) {
  std::string token;
  eventually([&] { return (token = source.current()) != last; });
  return token;
}

bool reaches(const std::atomic<int>& count, int wanted) {
  eventually([&] { return count >= wanted; });
  return count == wanted;
}

}  // namespace

TEST_CASE("a token file is trimmed, wins over the token, and is read again when it changes") {
  const TemporaryFolder folder;
  const std::string file = folder.write("token", "  first\r\n");
  TokenSource source;
  std::atomic<int> news = 0;
  REQUIRE(source.open("fixed", file, 1ms, [&](const std::string& of, const std::string& trouble) {
    if (of == file && trouble.empty()) ++news;
  }));
  CHECK(source.current() == "first");
  folder.write("token", "  other\r\n");
  CHECK(next_token(source, "first") == "other");
  folder.write("new", "third");
  REQUIRE(std::rename((folder / "new").c_str(), file.c_str()) == 0);
  CHECK(next_token(source, "other") == "third");
  CHECK(reaches(news, 2));
}

TEST_CASE("a token file that vanishes or is emptied leaves the last token in force, with a word") {
  const TemporaryFolder folder;
  const std::string file = folder.write("token", "first");
  TokenSource source;
  std::atomic<int> troubles = 0, news = 0;
  REQUIRE(source.open("", file, 1ms, [&](const std::string&, const std::string& trouble) {
    ++(trouble.empty() ? news : troubles);
  }));
  folder.write("token", "");
  CHECK(reaches(troubles, 1));
  REQUIRE(std::remove(file.c_str()) == 0);
  CHECK(source.current() == "first");
  folder.write("token", "second");
  CHECK(next_token(source, "first") == "second");
  CHECK(troubles == 1);
  REQUIRE(std::remove(file.c_str()) == 0);
  CHECK(reaches(troubles, 2));
  CHECK(source.current() == "second");
  folder.write("token", "second");
  CHECK(reaches(news, 2));  // it is usable again
}

TEST_CASE("a file system that does not answer holds up neither requests nor the end") {
  struct SlowFile {
    std::promise<void> asked, answer;
    std::shared_future<void> answered{answer.get_future()};
    int reads = 0;
  };
  const auto slow = std::make_shared<SlowFile>();  // the thread may outlive this case
  const TemporaryFolder folder;
  auto source = std::make_unique<TokenSource>([slow](const std::string&) -> Result<std::string> {
    if (++slow->reads == 1) return "first";
    if (slow->reads == 2) slow->asked.set_value();
    const bool in_time = slow->answered.wait_for(10s) == std::future_status::ready;
    return in_time ? "second" : "late";  // as if somebody had waited for this
  });
  REQUIRE(source->open("", folder.write("token", "unread"), 1ms));
  CHECK(source->current() == "first");
  slow->asked.get_future().wait();
  CHECK(source->current() == "first");
  SUBCASE("its answer counts once it comes") {
    slow->answer.set_value();
    CHECK(next_token(*source, "first") == "second");
  }
  SUBCASE("it may never come") {
    const auto begin = std::chrono::steady_clock::now();
    source.reset();
    CHECK(std::chrono::steady_clock::now() - begin < 5s);
    slow->answer.set_value();
  }
}

TEST_CASE("an unusable token is refused without being shown") {
  const TemporaryFolder folder;
  const std::string split = folder.write("split", "hush\r\nX-Other: 1");
  const std::string empty = folder.write("empty", " \n");
  for (const auto& [token, file] : std::vector<std::pair<std::string, std::string>>{
           {"hush\nX-Other: 1", ""}, {"", split}, {"", empty}, {"", folder / "absent"}}) {
    TokenSource source;
    const Error error = refusal_of(source.open(token, file, 1ms));
    const bool is_missing = file == empty || file == folder / "absent";
    CHECK(error.code == (is_missing ? ErrorCode::kFailed : ErrorCode::kInvalid));
    CHECK_FALSE(contains(error.message, "hush"));
    CHECK(contains(error.message, file));
  }
}

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
  SUBCASE("a client's key of another certificate") {
    Options options = right;
    options.client_cert = folder / "server.cert";
    options.client_key = folder / "other.key";
    CHECK(contains(ask(options).error, "check client_cert, and that client_key is its key"));
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
  SUBCASE("the authorities in a folder, as they are now") {
    Options options = right;
    options.ca_file.clear();
    options.ca_path = folder / "authorities";
    REQUIRE(run("mkdir " + options.ca_path + " && cp " + folder / "other.cert" + ' ' +
                options.ca_path));
    const auto transport = open_for({server.address()}, {.check_ca_path_every = 10ms}, options);
    const auto status = [&] {
      return transport->perform(request("GET", "/v1/status/leader")).status;
    };
    CHECK(status() == 0);
    const auto becomes = [&](int wanted) { return eventually([&] { return status() == wanted; }); };
    // Added to the file: the folder itself does not change.
    REQUIRE(run("(cat " + folder / "server.cert" + " >> " + options.ca_path + "/other.cert)"));
    CHECK(becomes(200));
    REQUIRE(run("cp " + folder / "other.cert" + ' ' + options.ca_path));
    CHECK(becomes(0));
  }
  SUBCASE("another or no authority, another name, the address's own name") {
    std::vector<Options> wrong(4, right);
    wrong[0].ca_file = folder / "other.cert";
    wrong[1].ca_file.clear();
    wrong[2].tls_server_name = "other.dc1.consul";
    wrong[3].tls_server_name.clear();
    for (const Options& options : wrong) check_refused(options);
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
  CHECK(contains(refused.error, "the server refuses our certificate"));
  options.client_cert = folder / "client.cert";
  options.client_key = folder / "client.key";
  CHECK(open_for({server.address()}, {}, options)->perform(get).status == 200);
}

}  // namespace lictor::net::test
