#include "httpd/listener.h"

#include <string>

#include "unit/contains.h"
#include "unit/refusal.h"

namespace lictor::httpd {

TEST_CASE("a listen address is a host and a port, or a unix socket") {
  const auto v4 = parse_listen_address("127.0.0.1:8642").value();
  CHECK(v4.host == "127.0.0.1");
  CHECK(v4.port == 8642);
  const auto v6 = parse_listen_address("[::1]:0").value();
  CHECK(v6.host == "::1");
  CHECK(v6.port == 0);
  CHECK(parse_listen_address("host-a.example:80").value().host == "host-a.example");
  const auto socket = parse_listen_address("unix:///run/lictor/admin.sock").value();
  CHECK(socket.unix_path == "/run/lictor/admin.sock");
  CHECK(socket.host.empty());
}

TEST_CASE("text that is no listen address is refused with the expected form") {
  for (const char* text : {"", "8642", ":8642", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536",
                           "127.0.0.1:-1", "::1:8642", "[::1]", "[nonsense]:80", "[::1]x:80",
                           "http://127.0.0.1:80", "a b:80", "unix://relative", "unix://"}) {
    CAPTURE(std::string{text});
    const Error error = refusal_of(parse_listen_address(text));
    CHECK(error.code == ErrorCode::kInvalid);
    CHECK(contains(error.message, "expected "));
  }
  CHECK_FALSE(parse_listen_address("unix:///" + std::string(200, 'x')));
}

TEST_CASE("only numbers of the loopback are loopback") {
  for (const char* host : {"127.0.0.1", "127.9.8.7", "::1"}) CHECK(is_loopback(host));
  for (const char* host :
       {"", "127.0.0.1.evil.example", "0.0.0.0", "::", "10.0.0.1", "localhost"}) {
    CAPTURE(std::string{host});
    CHECK_FALSE(is_loopback(host));
  }
  CHECK(host_part("[::1]:80") == "::1");
  CHECK(host_part("name:80") == "name");
  CHECK(host_part("name") == "name");
}

}  // namespace lictor::httpd
