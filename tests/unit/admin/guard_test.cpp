#include "admin/guard.h"

#include <doctest/doctest.h>

namespace lictor::admin {
namespace {

Request asked(const std::string& host, bool trusted = true, const std::string& method = "GET") {
  Request request;
  request.method = method;
  request.headers["host"] = host;
  request.trusted_listener = trusted;
  request.local_address = "192.0.2.7";
  return request;
}

Guard guard(std::string token = {}) {
  return Guard{{{"node-a", "Host-A", "host-a.example", "10.0.0.5"},
                {"lictor.example.com"},
                [token = std::move(token)] { return token; }}};
}

int status_of(const Guard& guard, const Request& request) {
  const auto refused = guard.refuse(request);
  return refused ? refused->status : 200;
}

}  // namespace

TEST_CASE("a request under a name of ours passes, with any port") {
  for (const char* host : {"localhost", "localhost:8642", "127.0.0.1:1", "[::1]:8642", "node-a",
                           "HOST-A:80", "host-a.example.", "10.0.0.5:8642", "192.0.2.7",
                           "Lictor.Example.com", "lictor.example.com:8443"}) {
    CAPTURE(std::string{host});
    CHECK(status_of(guard(), asked(host)) == 200);
  }
  Request old = asked("");
  old.headers.clear();  // HTTP/1.0, as load balancers ask
  CHECK(status_of(guard(), old) == 200);
}

TEST_CASE("a request under another name is refused, whoever the name points to") {
  for (const char* host : {"evil.example", "localhost.evil.example", "127.0.0.1.evil.example",
                           "10.0.0.6", "0.0.0.0", "", ":80", "[::2]", "node-a.evil", "[::1"}) {
    CAPTURE(std::string{host});
    CHECK(status_of(guard(), asked(host)) == 421);
    CHECK(status_of(guard(), asked(host, true, "POST")) == 421);
  }
}

TEST_CASE("a page of another origin is refused, one of ours is not") {
  Request request = asked("localhost:8642");
  const auto with_origin = [&](const char* origin) {
    request.headers["origin"] = origin;
    return status_of(guard(), request);
  };
  CHECK(with_origin("http://localhost:8642") == 200);
  CHECK(with_origin("http://LOCALHOST:8642") == 200);
  for (const char* origin : {"http://evil.example", "http://localhost:9000", "http://localhost",
                             "null", "", "http://localhost:8642.evil.example"}) {
    CAPTURE(std::string{origin});
    CHECK(with_origin(origin) == 403);
  }
  request.headers.erase("host");
  CHECK(with_origin("http://localhost:8642") == 403);
}

TEST_CASE("a page that a proxy serves under another name may ask, whatever Host the proxy sends") {
  Request request = asked("127.0.0.1:8642");
  request.headers["origin"] = "https://lictor.example.com:8443";
  CHECK(status_of(guard(), request) == 200);
  request.headers["origin"] = "https://lictor.example.com.evil.example";
  CHECK(status_of(guard(), request) == 403);
}

TEST_CASE("a change from this host needs no token while none is set") {
  CHECK(status_of(guard(), asked("localhost", true, "POST")) == 200);
}

TEST_CASE("once a token is set, only a unix socket takes none") {
  const Guard with_token = guard("secret");
  Request request = asked("localhost", true, "POST");
  CHECK(status_of(with_token, request) == 401);
  request.headers["authorization"] = "Bearer secret";
  CHECK(status_of(with_token, request) == 200);
  request.headers.erase("authorization");
  request.local_address.clear();  // of a unix socket
  CHECK(status_of(with_token, request) == 200);

  const auto read = [&](const Request& asks, Access access) {
    return with_token.refuse_read(asks, access) ? 401 : 200;
  };
  CHECK(read(asked("localhost"), Access::kPrivate) == 401);
  CHECK(read(asked("node-a", false), Access::kPrivate) == 401);
  CHECK(read(asked("node-a", false), Access::kPublic) == 200);
  CHECK(read(request, Access::kPrivate) == 200);
}

TEST_CASE("a change from elsewhere needs the token") {
  for (const char* method : {"POST", "PUT", "DELETE", "PATCH", "OPTIONS"}) {
    Request request = asked("node-a", false, method);
    const auto with_token = [&](const char* authorization) {
      request.headers["authorization"] = authorization;
      return status_of(guard("secret"), request);
    };
    CAPTURE(std::string{method});
    CHECK(status_of(guard("secret"), request) == 401);
    for (const char* wrong : {"", "secret", "Bearer", "Bearer ", "Bearer secre", "Bearer secretx",
                              "Bearer Secret", "Basic secret", "Bearer secretsecret"}) {
      CAPTURE(std::string{wrong});
      CHECK(with_token(wrong) == 401);
    }
    CHECK(with_token("Bearer secret") == 200);
    CHECK(with_token("bearer secret") == 200);
  }
}

TEST_CASE("without a token set, changes from elsewhere are refused, whatever they bring") {
  Request request = asked("node-a", false, "POST");
  CHECK(status_of(guard(), request) == 403);
  request.headers["authorization"] = "Bearer ";
  CHECK(status_of(guard(), request) == 403);
}

}  // namespace lictor::admin
