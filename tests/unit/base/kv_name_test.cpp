#include "base/kv_name.h"

#include <string>

#include <doctest/doctest.h>

namespace lictor {
namespace {

TEST_CASE("a name fits a path if every Consul takes it there") {
  for (const char* good : {"", "a", "l/q/tasks/", "l/q/tasks/42", "a,7", "A_b-c.d",
                           "nightly/20261124T093000Z", "a/.b", "a/b.", ".a"}) {
    CAPTURE(good);
    CHECK(fits_path(good));
    CHECK(part_that_fits_path(good) == good);
  }
  for (const char* bad : {"a b",   " a",   "a ", "a~2",    "n@2026", "db7:8", "\u00fc", "a+b",
                          "a%20b", "a..b", "..", "a/../b", "a/..",   "a//b",  "/a",     "a/./b",
                          "./a",   "a/.",  ".",  "a?b",    "a=b",    "a&b",   "a\nb"}) {
    CAPTURE(bad);
    CHECK_FALSE(fits_path(bad));
    CHECK(fits_path(part_that_fits_path(bad)));
  }
}

TEST_CASE("the part of a name that fits a path is the longest beginning of it") {
  CHECK(part_that_fits_path("l/q/tasks/nightly@2026-11-24T09:30:00Z") == "l/q/tasks/nightly");
  CHECK(part_that_fits_path("l/q/dead/ a") == "l/q/dead/");
  CHECK(part_that_fits_path("l/q/dead/a..b") == "l/q/dead/a.");
  CHECK(part_that_fits_path("l/q/dead/a/../b") == "l/q/dead/a/");
  CHECK(part_that_fits_path("/a").empty());
}

TEST_CASE("a refusal for a name is told from a failure that may pass") {
  const auto answer = [](int status, std::string body = {}) {
    http::Response response;
    response.delivery = http::Delivery::kReplied;
    response.status = status;
    response.body = std::move(body);
    return response;
  };
  CHECK(refuses_name(answer(301)));
  CHECK(refuses_name(answer(400)));
  CHECK(refuses_name(answer(500, "invalid key name, use only ...")));
  CHECK(refuses_name(answer(400, "Invalid key in transaction: /a")));
  CHECK(refuses_name(answer(500, "Invalid key in transaction: /a")));
  CHECK_FALSE(refuses_name(answer(500, "No cluster leader")));
  CHECK_FALSE(refuses_name(answer(403, "Permission denied")));
  CHECK_FALSE(refuses_name(answer(404)));
  CHECK_FALSE(refuses_name(answer(200, R"(["l/q/tasks/invalid key name"])")));
  http::Response lost = answer(301);
  lost.delivery = http::Delivery::kLost;
  CHECK_FALSE(refuses_name(lost));
}

}  // namespace
}  // namespace lictor
