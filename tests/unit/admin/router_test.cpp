#include "admin/router.h"

#include <nlohmann/json.hpp>

#include "admin/routes.h"
#include "fake_backend.h"
#include "fake_exchange.h"
#include "unit/json_members.h"

namespace lictor::admin {
namespace {

using nlohmann::json;

Router make_router() {
  Router router{Guard{{}}};
  router.add("GET", "/a", [](const Call&) { return Response{200, "text/plain", "a", {}}; });
  router.add("GET", "/tasks/*/why", [](const Call& call) {
    return Response{200, "text/plain", std::string{call.wildcard}, {}};
  });
  router.add("POST", "/a", [](const Call& call) {
    return Response{200, "text/plain", call.request.body, {}};
  });
  return router;
}

}  // namespace

TEST_CASE("a path is answered by its handler, HEAD as GET") {
  const Router router = make_router();
  CHECK(ask(router, make_request("GET", "/a")).body == "a");
  CHECK(ask(router, make_request("HEAD", "/a")).body == "a");
  Request post = make_request("POST", "/a");
  post.body = "x";
  CHECK(ask(router, post).body == "x");
}

TEST_CASE("a star stands for any text, slashes too, that is not empty") {
  const Router router = make_router();
  CHECK(ask(router, make_request("GET", "/tasks/42/why")).body == "42");
  CHECK(ask(router, make_request("GET", "/tasks/a/b/why/why")).body == "a/b/why");
  CHECK(ask(router, make_request("GET", "/tasks//why")).status == 404);
  CHECK(ask(router, make_request("GET", "/tasks/why")).status == 404);
  CHECK(ask(router, make_request("GET", "/tasks/42")).status == 404);
}

TEST_CASE("the answer to an unknown path names the known ones, without the web page's files") {
  Router router = make_router();
  router.add("GET", "/style.css", [](const Call&) { return Response{}; });
  const Response response = ask(router, make_request("GET", "/nope"));
  CHECK(response.status == 404);
  const auto told = nlohmann::json::parse(response.body);
  CHECK(told["paths"] == nlohmann::json{"/a", "/tasks/*/why", "/a"});
}

TEST_CASE("a wrong method is answered with the right ones, before anything is handled") {
  Router router = make_router();
  const auto refused = router.refuse(make_request("DELETE", "/a")).value();
  CHECK(refused.status == 405);
  CHECK(refused.headers ==
        std::vector<std::pair<std::string, std::string>>{{"Allow", "GET, HEAD, POST"}});
  // Two routes take this one.
  router.add("GET", "/tasks/*", [](const Call&) { return Response{}; });
  const auto twice = router.refuse(make_request("POST", "/tasks/42/why")).value();
  CHECK(twice.status == 405);
  CHECK(twice.headers == std::vector<std::pair<std::string, std::string>>{{"Allow", "GET, HEAD"}});
  CHECK_FALSE(router.refuse(make_request("POST", "/a")));
}

TEST_CASE("the guard is asked first") {
  Request evil = make_request("GET", "/a");
  evil.headers["host"] = "evil.example";
  const Router router = make_router();
  CHECK(router.refuse(evil)->status == 421);
  CHECK(ask(router, evil).status == 421);
}

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

TEST_CASE("a request under another name is refused, whatever address the name points to") {
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

namespace {

Response get(Backend& backend, const std::string& path, const std::string& queue = {}) {
  Router router{Guard{{}}};
  add_status_routes(router, backend);
  return ask(router, make_request("GET", path + (queue.empty() ? "" : "?queue=" + queue)));
}

}  // namespace

TEST_CASE("readyz says why it is not ready; healthz says that the process lives, all the same") {
  FakeBackend backend;
  CHECK(get(backend, "/readyz").status == 200);
  backend.trouble.what = "Consul has no leader";
  CHECK(get(backend, "/readyz").status == 503);
  CHECK(get(backend, "/readyz").body == "Consul has no leader\n");
  backend.trouble = {};
  backend.known->waits_for = "waiting for Consul: 403";
  CHECK(get(backend, "/readyz").status == 503);
  CHECK(get(backend, "/readyz").body == "waiting for Consul: 403\n");
  CHECK(json::parse(get(backend, "/v1/status").body)["waits_for"] == "waiting for Consul: 403");
  backend.known->waits_for.clear();
  CHECK(json::parse(get(backend, "/v1/status").body)["waits_for"].is_null());
  backend.known->stopping = true;
  CHECK(get(backend, "/readyz").body == "stopping\n");
  backend.known.reset();
  CHECK(get(backend, "/readyz").status == 503);
  CHECK(get(backend, "/healthz").status == 200);
}

TEST_CASE("the status has the roles, and for a follower no list that it does not keep") {
  FakeBackend backend;
  using Role = QueueStatus::Role;
  backend.known->node = "a";
  backend.known->pid = 7;
  backend.known->uptime = std::chrono::milliseconds{61'900};
  backend.known->queues = {
      {"one", Role::kLeading, {{"waiting", 3}, {"claimed_ahead", 1}, {"running", 2}}},
      {"two", Role::kFollowing}};
  const json told = json::parse(get(backend, "/v1/status").body);
  check_members(told, {{"node", "a"}, {"pid", 7}, {"uptime_seconds", 61}});
  CHECK(told["queues"][0] ==
        json::parse(R"({"name": "one", "role": "leading", "partitions": 1, "leads": [],
                        "waiting": 3, "claimed_ahead": 1, "running": 2, "paused": false,
                        "unacked": 0, "oldest_due_ms": 0, "longest_running_ms": 0,
                        "lease_left_ms": 0})"));
  CHECK_FALSE(told["queues"][1].contains("cannot_start"));
  check_members(told["queues"][1], {{"waiting", nullptr}, {"claimed_ahead", nullptr}});
  backend.known->queues[0].partitions = 16;
  backend.known->queues[0].leads = {0, 7};
  backend.known->queues[1].partitions = 0;
  const json queues = json::parse(get(backend, "/v1/status").body)["queues"];
  check_members(queues[0], {{"partitions", 16}, {"leads", {0, 7}}});
  CHECK(queues[1]["partitions"].is_null());  // not known yet
  backend.known->queues[0].cannot_start = "no process";
  CHECK(json::parse(get(backend, "/v1/status").body)["queues"][0]["cannot_start"] == "no process");
  backend.known.reset();
  CHECK(get(backend, "/v1/status").status == 503);
}

TEST_CASE("why asks the daemon by queue and id") {
  FakeBackend backend;
  CHECK(json::parse(get(backend, "/v1/tasks/a/b/why", "q").body)[0]["reason"] == "paused");
  CHECK(get(backend, "/v1/tasks/a/b/why").status == 404);
  CHECK(get(backend, "/v1/tasks/a/c/why", "q").status == 404);
  backend.member_answers = "[the leader's answer]";
  CHECK(get(backend, "/v1/tasks/a/c/why", "q").body == "[the leader's answer]");
  CHECK(backend.asked == "leader of a/c /v1/tasks/a%2Fc/why?relayed=1&queue=q");
}

}  // namespace lictor::admin
