#include "net/endpoint.h"

#include <doctest/doctest.h>

#include "unit/refusal.h"

using namespace lictor;
using namespace lictor::net;
using Kind = Endpoint::Kind;

TEST_CASE("an address is read in each of its forms") {
  struct Row {
    std::string address;
    Kind kind;
    std::string origin;
  };
  for (const Row& row : {
           Row{"http://127.0.0.1:8500", Kind::kHttp, "http://127.0.0.1:8500"},
           Row{"127.0.0.1:8500", Kind::kHttp, "http://127.0.0.1:8500"},
           Row{"localhost:8500", Kind::kHttp, "http://localhost:8500"},
           Row{"http://consul.example:8500/", Kind::kHttp, "http://consul.example:8500"},
           Row{"http://consul.example", Kind::kHttp, "http://consul.example:80"},
           Row{"https://consul.example:8501", Kind::kHttps, "https://consul.example:8501"},
           Row{"https://consul.example", Kind::kHttps, "https://consul.example:443"},
           Row{"[::1]:8500", Kind::kHttp, "http://[::1]:8500"},
           Row{"http://[fe80::1%eth0]:8500", Kind::kHttp, "http://[fe80::1%eth0]:8500"},
           Row{"unix:///run/consul.sock", Kind::kUnix, "http://localhost"},
       }) {
    CAPTURE(row.address);
    const auto endpoint = parse_endpoint(row.address, "").value();
    CHECK(endpoint.kind == row.kind);
    CHECK(endpoint.origin == row.origin);
    CHECK(endpoint.address == row.address);
    CHECK(endpoint.connect_to.empty());
    CHECK(endpoint.unix_path == (row.kind == Kind::kUnix ? "/run/consul.sock" : ""));
  }
}

TEST_CASE("with a TLS server name, the origin bears that name and the connection the address") {
  const auto endpoint = parse_endpoint("https://[::1]:8501", "server.dc1.consul").value();
  CHECK(endpoint.origin == "https://server.dc1.consul:8501");
  CHECK(endpoint.connect_to == "::[::1]:8501");
  // It is of no use to the other kinds, and the variable may be set for other programs.
  CHECK(parse_endpoint("http://10.0.0.1:8500", "server.dc1.consul")->connect_to.empty());
  CHECK_FALSE(parse_endpoint("https://10.0.0.1:8501", "a b"));
}

TEST_CASE("an address that cannot be used is refused by name, with what to write instead") {
  for (const char* address : {"",
                              "consul",
                              "127.0.0.1:",
                              "127.0.0.1:0",
                              "127.0.0.1:65536",
                              "127.0.0.1:85x",
                              ":8500",
                              "::1:8500",
                              "[::1:8500",
                              "[::1]8500",
                              "ftp://127.0.0.1:8500",
                              "http://",
                              "http://a b:8500",
                              "http://127.0.0.1:8500/v1",
                              "http://127.0.0.1:8500?x",
                              "unix://",
                              "unix://relative",
                              "HTTP://127.0.0.1:8500",
                              "htp:/x:1",
                              "http:/x:1",
                              "unix:/x:1"}) {
    CAPTURE(address);
    const Error error = refusal_of(parse_endpoint(address, ""));
    CHECK(error.code == ErrorCode::kInvalid);
    CHECK(error.message.find("Consul address \"" + std::string{address}) == 0);
    CHECK(error.message.find("expected") != std::string::npos);
  }
  CHECK_FALSE(parse_endpoint("unix:///" + std::string(120, 'x'), ""));
}

TEST_CASE("a password in an address is refused without being shown") {
  for (const char* address : {"http://me:hush@127.0.0.1:8500", "me:hush@127.0.0.1:8500",
                              "ftp://me:hush@127.0.0.1:8500", "http://me:hush@a/b@c:1"}) {
    const Error error = refusal_of(parse_endpoint(address, ""));
    CHECK(error.message.find("hush") == std::string::npos);
    CHECK(error.message.find("basic_auth") != std::string::npos);
  }
}
