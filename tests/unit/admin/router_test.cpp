#include "admin/router.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

namespace lictor::admin {
namespace {

Router make_router() {
  Router router{Guard{{}}};
  router.add("GET", "/a", [](const Request&) { return Response{200, "text/plain", "a", {}}; });
  router.add("GET", "/tasks/*/why", [](const Request& request) {
    return Response{200, "text/plain", request.wildcard, {}};
  });
  router.add("POST", "/a", [](const Request& request) {
    return Response{200, "text/plain", request.body, {}};
  });
  return router;
}

Request request(const std::string& method, const std::string& path) {
  Request request;
  request.method = method;
  request.path = path;
  request.trusted_listener = true;
  return request;
}

}  // namespace

TEST_SUITE_BEGIN("admin");

TEST_CASE("a path is answered by its handler, HEAD as GET") {
  const Router router = make_router();
  CHECK(router.handle(request("GET", "/a")).body == "a");
  CHECK(router.handle(request("HEAD", "/a")).body == "a");
  Request post = request("POST", "/a");
  post.body = "x";
  CHECK(router.handle(post).body == "x");
}

TEST_CASE("a star stands for any text, slashes too, that is not empty") {
  const Router router = make_router();
  CHECK(router.handle(request("GET", "/tasks/42/why")).body == "42");
  CHECK(router.handle(request("GET", "/tasks/a/b/why/why")).body == "a/b/why");
  CHECK(router.handle(request("GET", "/tasks//why")).status == 404);
  CHECK(router.handle(request("GET", "/tasks/why")).status == 404);
  CHECK(router.handle(request("GET", "/tasks/42")).status == 404);
}

TEST_CASE("an unknown path is told the known ones") {
  const Response response = make_router().handle(request("GET", "/nope"));
  CHECK(response.status == 404);
  const auto told = nlohmann::json::parse(response.body);
  CHECK(told["paths"] == nlohmann::json{"/a", "/tasks/*/why", "/a"});
}

TEST_CASE("a wrong method is told the right ones, before anything is handled") {
  const Router router = make_router();
  const auto refused = router.refuse(request("DELETE", "/a"));
  REQUIRE(refused);
  CHECK(refused->status == 405);
  CHECK(refused->headers ==
        std::vector<std::pair<std::string, std::string>>{{"Allow", "GET, HEAD, POST"}});
  CHECK(router.refuse(request("POST", "/tasks/42/why"))->status == 405);
  CHECK_FALSE(router.refuse(request("POST", "/a")));
}

TEST_CASE("the guard is asked first") {
  Request evil = request("GET", "/a");
  evil.host = "evil.example";
  const Router router = make_router();
  CHECK(router.refuse(evil)->status == 421);
  CHECK(router.handle(evil).status == 421);
}

TEST_SUITE_END();

}  // namespace lictor::admin
