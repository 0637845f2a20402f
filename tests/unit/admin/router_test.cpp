#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "fake_exchange.h"

namespace lictor::admin {
namespace {

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

TEST_CASE("an unknown path is told the known ones, but for the files of the web page") {
  Router router = make_router();
  router.add("GET", "/style.css", [](const Call&) { return Response{}; });
  const Response response = ask(router, make_request("GET", "/nope"));
  CHECK(response.status == 404);
  const auto told = nlohmann::json::parse(response.body);
  CHECK(told["paths"] == nlohmann::json{"/a", "/tasks/*/why", "/a"});
}

TEST_CASE("a wrong method is told the right ones, before anything is handled") {
  const Router router = make_router();
  const auto refused = router.refuse(make_request("DELETE", "/a")).value();
  CHECK(refused.status == 405);
  CHECK(refused.headers ==
        std::vector<std::pair<std::string, std::string>>{{"Allow", "GET, HEAD, POST"}});
  CHECK(router.refuse(make_request("POST", "/tasks/42/why"))->status == 405);
  CHECK_FALSE(router.refuse(make_request("POST", "/a")));
}

TEST_CASE("the guard is asked first") {
  Request evil = make_request("GET", "/a");
  evil.headers["host"] = "evil.example";
  const Router router = make_router();
  CHECK(router.refuse(evil)->status == 421);
  CHECK(ask(router, evil).status == 421);
}

}  // namespace lictor::admin
