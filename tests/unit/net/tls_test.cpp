#include "harness.h"
#include "skip.h"
#include "tls_server.h"

using namespace lictor;
using namespace lictor::net;
using namespace lictor::net::test;

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
    Tuning tuning;
    tuning.check_ca_path_every = 10ms;
    const auto transport = open_for({server.address()}, tuning, options);
    const auto status = [&] {
      return transport->perform(request("GET", "/v1/status/leader")).status;
    };
    CHECK(status() == 0);
    const auto becomes = [&](int wanted) {
      const auto limit = std::chrono::steady_clock::now() + kGenerous;
      while (status() != wanted && std::chrono::steady_clock::now() < limit) {
      }
      return status() == wanted;
    };
    // Within the file that is there: the folder itself does not change.
    REQUIRE(run("(cat " + folder / "server.cert" + " >> " + options.ca_path + "/other.cert)"));
    CHECK(becomes(200));
    REQUIRE(run("cp " + folder / "other.cert" + ' ' + options.ca_path));
    CHECK(becomes(0));
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
  CHECK(contains(refused.error, "the server refuses our certificate"));
  options.client_cert = folder / "client.cert";
  options.client_key = folder / "client.key";
  CHECK(open_for({server.address()}, {}, options)->perform(get).status == 200);
}
