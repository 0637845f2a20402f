// A ConsulClient on the thread that drives it. The course of requests is tested through Transport,
// which drives one, too.

#include "net/consul_client.h"

#include <poll.h>

#include "base/clock.h"
#include "harness.h"
#include "unit/refusal.h"

using namespace lictor;
using namespace lictor::net;
using namespace lictor::net::test;

namespace {

std::unique_ptr<ConsulClient> client_to(const std::string& address) {
  Options options{.addresses = {address}};
  return ConsulClient::open(std::move(options)).value();
}

// Drives it as a loop does: waits until it is readable or due, and steps it.
template <class Done>
void drive(ConsulClient& consul_client, Done done) {
  const Instant give_up = boot_now() + kGenerous;
  while (!done()) {
    const Instant now = boot_now();
    REQUIRE(now < give_up);
    const Instant due = std::min(consul_client.next_deadline(), give_up);
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(due <= now ? 0ns : due - now);
    pollfd readable{consul_client.fd(), POLLIN, 0};
    poll(&readable, 1, static_cast<int>(wait.count()));
    consul_client.step();
  }
}

}  // namespace

TEST_CASE("a client's replies come within step(), on the thread that drives it") {
  TestServer server{answer};
  const auto consul_client = client_to(server.address());
  std::vector<Response> replies;
  bool stepping = true;
  const auto keep = [&](Response response) {
    CHECK(stepping);
    replies.push_back(std::move(response));
  };
  for (int i = 0; i < 3; ++i) {
    stepping = false;
    consul_client->send(request("PUT", "/v1/kv/a", "body"), keep);
    stepping = true;
    drive(*consul_client, [&] { return replies.size() == static_cast<std::size_t>(i) + 1; });
    CHECK(replies.back().status == 200);
    CHECK(replies.back().body == "ok");
  }
  CHECK(consul_client->idle());
  CHECK(server.connections() == 1);
}

TEST_CASE("a client reports requests that cannot be sent, take too long or are cancelled") {
  TestServer server{hold_polls};
  std::vector<Delivery> ends;
  const auto keep = [&](const Response& response) { ends.push_back(response.delivery); };
  {
    const auto nowhere = client_to("http://127.0.0.1:" + std::to_string(closed_port()));
    nowhere->send(request("GET", "/"), keep);
    drive(*nowhere, [&] { return ends.size() == 1; });
    CHECK(ends.back() == Delivery::kNotSent);
  }
  {
    const auto consul_client = client_to(server.address());
    consul_client->send(request("PUT", "/poll", "", 50ms), keep);
    drive(*consul_client, [&] { return ends.size() == 2; });
    CHECK(ends.back() == Delivery::kLost);
    const RequestId poll = consul_client->send(request("GET", "/poll"), keep);
    consul_client->cancel(poll);
    REQUIRE(ends.size() == 3);
    CHECK(ends.back() == Delivery::kCancelled);
    consul_client->send(request("GET", "/poll"), keep);
  }
  REQUIRE(ends.size() == 4);
  CHECK(ends.back() == Delivery::kCancelled);
}

TEST_CASE("open() refuses an unusable setting or file, and names it") {
  const TemporaryFolder folder;
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
    const Error error = refusal_of(Transport::open(each.options));
    CAPTURE(error.message);
    // A missing file may exist at the next start.
    const bool is_missing = error.message.find(", got: ") != std::string::npos;
    CHECK(error.code == (is_missing ? ErrorCode::kFailed : ErrorCode::kInvalid));
    CHECK(contains(error.message, each.words));
    CHECK(contains(error.message, "expected"));
    CHECK_FALSE(contains(error.message, "\n"));
  }
}

TEST_CASE("open() connects to nothing: Consul may start later") {
  Options options{.addresses = {"http://127.0.0.1:" + std::to_string(closed_port()),
                                "unix:///nowhere/consul.sock"}};
  CHECK(Transport::open(options));
}
