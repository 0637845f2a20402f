#include <doctest/doctest.h>

#include "client/store.h"
#include "harness.h"

namespace lictor::cli {
namespace {

using test::contains;
using test::reply;
using test::undelivered;

int code_of(const http::Response& response) {
  return exit_code(client::store_error("read x", response).code);
}

TEST_CASE("each kind of error has the exit code of the contract") {
  CHECK(exit_code(ErrorCode::kInvalid) == 2);
  CHECK(exit_code(ErrorCode::kNotFound) == 3);
  CHECK(exit_code(ErrorCode::kUnavailable) == 4);
  CHECK(exit_code(ErrorCode::kTimeout) == 4);
  CHECK(exit_code(ErrorCode::kPermissionDenied) == 5);
  CHECK(exit_code(ErrorCode::kConflict) == 1);
  CHECK(exit_code(ErrorCode::kTooLarge) == 1);
  CHECK(exit_code(ErrorCode::kFailed) == 1);
}

TEST_CASE("a temporary failure of Consul is exit code 4, for any reason") {
  CHECK(code_of(undelivered(http::Delivery::kNotSent)) == 4);
  CHECK(code_of(undelivered(http::Delivery::kLost)) == 4);
  CHECK(code_of(reply(500, "No cluster leader")) == 4);
  CHECK(code_of(reply(500, "rpc error making call: EOF")) == 4);
  CHECK(code_of(reply(429, "")) == 4);
  CHECK(code_of(reply(404, "")) == 4);  // no index: not Consul
}

TEST_CASE("a refusal by Consul is exit code 5 for missing rights, else 1") {
  CHECK(code_of(reply(403, "Permission denied")) == 5);
  CHECK(code_of(reply(403, "ACL not found")) == 5);
  CHECK(code_of(reply(413, "Request body too large")) == 1);
  CHECK(code_of(reply(400, "Missing key name")) == 1);
}

TEST_CASE("an error says what to do") {
  const auto message = [](const http::Response& response) {
    return client::store_error("read x", response).message;
  };
  CHECK(contains(message(reply(403, "ACL not found")), "does not know the token"));
  CHECK(contains(message(reply(403, "Permission denied")), "--token-file"));
  for (const int status : {400, 403, 404, 429, 500}) {
    CHECK(contains(message(reply(status, "no")), "http://consul"));
  }
  CHECK(contains(message(reply(500, "No cluster leader")), "raft list-peers"));
  CHECK(message(undelivered(http::Delivery::kNotSent,
                            "GET /v1/kv/x: http://h:1: not sent: no; check that a Consul agent "
                            "listens there")) ==
        "cannot reach Consul at http://h:1: no; is the agent running? Set CONSUL_HTTP_ADDR or "
        "--consul");
}

}  // namespace
}  // namespace lictor::cli
