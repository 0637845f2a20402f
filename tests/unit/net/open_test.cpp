#include <doctest/doctest.h>

#include "net/transport.h"
#include "test_server.h"

using namespace lictor;
using namespace lictor::net;

TEST_SUITE_BEGIN("net");

TEST_CASE("open() refuses what cannot be used, and says which setting or file it is") {
  const test::TemporaryFolder folder;
  const std::string text = folder.write("text", "not a certificate");
  const std::string cert = folder.write("cert", "-----BEGIN CERTIFICATE-----\n");
  const std::string locked = folder.write("locked", "-----BEGIN ENCRYPTED PRIVATE KEY-----\n");
  struct Row {
    std::string words;
    Options options;
  };
  std::vector<Row> rows;
  const auto row = [&](const std::string& words, auto change) {
    Row& added = rows.emplace_back();
    added.words = words;
    change(added.options);
  };
  row("Consul addresses: expected 1 to 64, got 0", [](Options& o) { o.addresses.clear(); });
  row("Consul address \"nowhere\"", [](Options& o) { o.addresses.push_back("nowhere"); });
  row("connect_timeout", [](Options& o) { o.connect_timeout = std::chrono::milliseconds{0}; });
  row("namespace", [](Options& o) { o.consul_namespace = "a\r\nb"; });
  row("token_file \"" + folder / "absent", [&](Options& o) { o.token_file = folder / "absent"; });
  row("ca_file \"" + folder / "absent", [&](Options& o) { o.ca_file = folder / "absent"; });
  row("ca_file \"" + folder / ".", [&](Options& o) { o.ca_file = folder / "."; });
  row("ca_file \"" + text, [&](Options& o) { o.ca_file = text; });
  row("ca_path \"" + folder / "absent", [&](Options& o) { o.ca_path = folder / "absent"; });
  row("certificate in ca_path", [&](Options& o) { o.ca_path = folder / "."; });
  row("expected client_key", [&](Options& o) { o.client_cert = cert; });
  row("expected client_cert", [&](Options& o) { o.client_key = cert; });
  row("client_key \"" + text, [&](Options& o) {
    o.client_cert = cert;
    o.client_key = text;
  });
  row("encrypted", [&](Options& o) {
    o.client_cert = cert;
    o.client_key = locked;
  });
  for (const Row& each : rows) {
    CAPTURE(each.words);
    const auto transport = Transport::open(each.options);
    REQUIRE_FALSE(transport);
    CAPTURE(transport.error().message);
    // A file that is not there may be there at the next start.
    const bool is_missing = transport.error().message.find(", got: ") != std::string::npos;
    CHECK(transport.error().code == (is_missing ? ErrorCode::kFailed : ErrorCode::kInvalid));
    CHECK(transport.error().message.find(each.words) != std::string::npos);
    CHECK(transport.error().message.find("expected") != std::string::npos);
    CHECK(transport.error().message.find('\n') == std::string::npos);
  }
}

TEST_CASE("open() connects to nothing: Consul may start later") {
  Options options;
  options.addresses = {"http://127.0.0.1:" + std::to_string(test::closed_port()),
                       "unix:///nowhere/consul.sock"};
  CHECK(Transport::open(options));
}

TEST_SUITE_END();
